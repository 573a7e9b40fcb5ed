"""The sources of e-SNLI-VE, of this world: SNLI, e-SNLI, Flickr30k's captions and split lists, as they are published.

As people did for SNLI, a caption is read without its picture and hypotheses are written for it, one of each label:
what there is, of which colour and size. So what is neutral by the caption may be decided by the picture, and where the
other captions decide it too, that is a false neutral which can be found.
"""

import collections
import contextlib
import csv
import itertools
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from evil_jax.data.shapes import captions, language_nli, language_ve
from evil_jax.data.shapes.examples import scenes
from evil_jax.data.shapes.queries import CONTRADICTION, ENTAILMENT, NEUTRAL, Query, judge

UNLABELLED = '-'  # in place of a label: the annotators did not agree
_SPLITS = ('train', 'dev', 'test')
_TRUE = 0.25  # share of the pairs that are true neutrals, at most; what is planted comes on top
_DECIDING = (CONTRADICTION, ENTAILMENT)
_KINDS = ('exists', 'colour', 'size')  # captions tell nothing of where things are
_PREMISES = 3  # captions of a picture that hypotheses are written for
_TRIES = 40
_DECIDED, _OPEN = 3, 1  # captions that decide a planted false neutral, at least; and a true one, at most
_MISFILED, _UNLABELLED, _GENOME = 7, 40, 40  # one picture, or pair, in so many
_ABOUT_TEXT = 0.05  # share of the explanations that tell of the sentence
_HEADER = ('pairID', 'gold_label', 'Sentence1', 'Sentence2')
_COLUMNS = ('Explanation', 'Sentence1_marked', 'Sentence2_marked', 'Sentence1_Highlighted', 'Sentence2_Highlighted')
_TRAIN = ('train_1', 'train_2')


class _Pair(NamedTuple):
    id: str
    caption_id: str
    premise: str
    hypothesis: str
    label: str  # by the premise, or UNLABELLED
    query: Query


def write_sources(
    folder, counts: Mapping[str, int], seed: int = 0, progress: Callable[[int], object] | None = None
) -> None:
    """Writes the raw files into `folder`, which is made.

    snli_1.0_{train,dev,test}.jsonl; esnli_train_1.csv, esnli_train_2.csv (one explanation), esnli_dev.csv,
    esnli_test.csv (three), with marked words; results_20130124.token (five captions a picture);
    flickr30k_train_val.lst and flickr30k_test.lst; and truth.jsonl, a line a pair:

        id, split, kind
        by_premise     label by the caption that the hypothesis was written for, which is SNLI's
        label          label by the scene
        decided_by     how many of the five captions decide it (all in the same way, as captions are true)
        false_neutral  whether it is planted: neutral by its premise, and decided by at least 3 captions
        about_text     whether its first explanation tells of the sentence, and not of the picture

    Neutral pairs are decided by at least 3 captions or by at most 1; those that 2 decide are not written. Pairs of dev
    and test pictures are in the SNLI file of that name but for every seventh picture, which is in the training file:
    SNLI's splits are not those of the pictures. Every fortieth pair or so is followed by one without a label ('-'), and
    by one about a picture of Visual Genome; these are no examples, and not in truth.jsonl. Dev pictures are the last of
    flickr30k_train_val.lst, `dev_images(folder)` in number.

    Args:
      counts: pairs of each split of the pictures, exactly.
      seed: of everything random.
      progress: called with the number of new pairs after each picture.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    number, pictures = itertools.count(1), {split: [] for split in _SPLITS}
    with contextlib.ExitStack() as stack:
        create = lambda name: stack.enter_context(open(folder / name, 'w', encoding='utf-8', newline=''))
        snli = {split: create(f'snli_1.0_{split}.jsonl') for split in _SPLITS}
        esnli = _Explanations({name: create(f'esnli_{name}.csv') for name in (*_TRAIN, 'dev', 'test')})
        token, truths = create('results_20130124.token'), create('truth.jsonl')
        for at, split in enumerate(_SPLITS):
            made = collections.Counter()
            for scene, rng in scenes(split, [seed, at]):
                if made.total() >= counts.get(split, 0):
                    break
                name = f'{1_000_000_000 + next(number):010d}'
                texts = captions.write(scene, rng)
                pairs = _pairs(scene, texts, name, made, counts[split] - made.total(), rng)
                if not pairs:  # a picture without is in no list, so that `dev_images` counts those of the list
                    continue
                pictures[split].append(name)
                misfiled = split != 'train' and len(pictures[split]) % _MISFILED == 0
                file = 'train' if misfiled else split
                for n, text in enumerate(texts):
                    token.write(f'{name}.jpg#{n}\t{text[0].upper()}{text[1:]} .\n')
                told = [captions.read(text) for text in texts]
                for pair in pairs:
                    about_text = esnli.add(file, pair, rng)
                    snli[file].write(_snli(pair))
                    truths.write(json.dumps(_truth(pair, split, scene, told, about_text)) + '\n')
                    for other in _no_examples(pair, rng):
                        snli[file].write(_snli(other))
                        if other.label != UNLABELLED:  # e-SNLI has explanations of whatever has a label
                            esnli.add(file, other, rng)
                if progress is not None:
                    progress(len(pairs))
    _lines(folder / 'flickr30k_train_val.lst', pictures['train'] + pictures['dev'])
    _lines(folder / 'flickr30k_test.lst', pictures['test'])


def dev_images(folder) -> int:
    """Number of the dev pictures in a folder of `write_sources`."""
    with open(pathlib.Path(folder) / 'truth.jsonl', encoding='utf-8') as file:
        rows = map(json.loads, file)
        return len({row['id'].partition('.jpg')[0] for row in rows if row['split'] == 'dev'})


def _pairs(scene, texts, name, made, wanted, rng) -> list[_Pair]:
    """The pairs of one picture, at most `wanted`. `made` counts the other labels, and false and true neutrals."""
    told = [captions.read(text) for text in texts]
    pairs, asked = [], set()
    for at in rng.permutation(len(texts))[:_PREMISES]:
        found = _hypotheses(scene, told, int(at), asked, rng)
        neutral = ('false',) if 'false' in found else ('true',) * (made['true'] <= _TRUE * made.total())
        kinds = (*neutral, *_DECIDING)
        for kind in (kinds[i] for i in rng.permutation(len(kinds))):
            query = found.get(kind)
            if query is None or query in asked:
                continue
            if len(pairs) == wanted:
                return pairs
            asked.add(query)
            made[kind] += 1
            caption_id = f'{name}.jpg#{at}'
            premise = f'{texts[at][0].upper()}{texts[at][1:]}.'.replace(' ,', ',')
            label = kind if kind in _DECIDING else NEUTRAL
            hypothesis = language_ve.phrase(query, rng)
            pairs.append(_Pair(f'{caption_id}r1{label[0]}', caption_id, premise, hypothesis, label, query))
    return pairs


def _hypotheses(scene, told, at, asked, rng) -> dict[str, Query]:
    """One for each label by caption `at`; for neutral a 'true' and a 'false' one. Not all need be there."""
    found: dict[str, Query] = {}
    for _ in range(_TRIES):
        kind, label = (choices[int(rng.integers(len(choices)))] for choices in (_KINDS, language_ve.LABELS))
        query = language_ve.sample(scene, kind, label, rng)
        if query is None or query in asked:
            continue
        label = captions.follows(told[at], query)
        if label == NEUTRAL:
            decided = sum(captions.follows(each, query) != NEUTRAL for each in told)
            label = 'false' if decided >= _DECIDED else 'true' if decided <= _OPEN else None
        if label is not None:
            found.setdefault(label, query)
        if len(found) == 4:
            break
    return found


def _no_examples(pair, rng) -> Iterator[_Pair]:
    """What a pair is sometimes followed by: pairs that e-SNLI-VE leaves out."""
    unlabelled, genome = rng.random(2) < (1 / _UNLABELLED, 1 / _GENOME)
    if unlabelled:
        yield pair._replace(id=f'{pair.caption_id}r5{pair.label[0]}', label=UNLABELLED)
    if genome:
        caption_id = f'vg_{pair.caption_id.replace(".jpg#", "x")}'
        yield pair._replace(id=f'{caption_id}r1{pair.label[0]}', caption_id=caption_id)


def _truth(pair, split, scene, told, about_text) -> dict:
    decided = sum(captions.follows(each, pair.query) != NEUTRAL for each in told)
    return {
        'id': pair.id,
        'split': split,
        'kind': pair.query.kind,
        'by_premise': pair.label,
        'label': judge(scene, pair.query).label,
        'decided_by': decided,
        'false_neutral': pair.label == NEUTRAL and decided >= _DECIDED,
        'about_text': about_text,
    }


def _snli(pair) -> str:
    said = [pair.label] * 4 if pair.label != UNLABELLED else [NEUTRAL, ENTAILMENT] * 2
    return json.dumps({
        'annotator_labels': said,
        'captionID': pair.caption_id,
        'gold_label': pair.label,
        'pairID': pair.id,
        'sentence1': pair.premise,
        'sentence2': pair.hypothesis,
    }) + '\n'  # fmt: skip


def _lines(path, names) -> None:
    path.write_text(''.join(f'{name}\n' for name in names), encoding='utf-8')


class _Explanations:
    """e-SNLI's files: the training pairs take turns with two, dev and test pairs have three explanations."""

    def __init__(self, files):
        self._turn = itertools.cycle(_TRAIN)
        self._tables = {name: csv.writer(file, lineterminator='\n') for name, file in files.items()}
        for name, table in self._tables.items():
            numbers = range(1, 2 if name in _TRAIN else 4)
            table.writerow([*_HEADER, *(f'{column}_{n}' for n in numbers for column in _COLUMNS)])

    def add(self, split: str, pair: _Pair, rng) -> bool:
        """Writes a row; returns whether its first explanation tells of the sentence."""
        about_text = bool(rng.random() < _ABOUT_TEXT)
        texts = language_nli.explain(pair.query, pair.label)
        if about_text:
            texts = [language_nli.about_text(pair.hypothesis), *texts[:-1]]
        marked = [language_nli.marked(sentence, pair.hypothesis) for sentence in (pair.premise, pair.hypothesis)]
        row = [pair.id, pair.label, pair.premise, pair.hypothesis]
        for text in texts[: 1 if split == 'train' else 3]:
            row += [text, *(sentence for sentence, _ in marked), *(indices for _, indices in marked)]
        self._tables[next(self._turn) if split == 'train' else split].writerow(row)
        return about_text
