"""The working size: 570,000 pairs and five captions of each picture through --mode=construct, all but the model's own
time: what it would say is drawn from a hash. A quarter of an hour on two cores.
"""

import csv
import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.acceptance
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAIRS, IMAGES, CAPTIONS = 570_000, 31_783, 5
WORDS = [
    'a',
    'man',
    'dog',
    'woman',
    'child',
    'runs',
    'sits',
    'plays',
    'walks',
    'eats',
    'in',
    'on',
    'near',
    'the',
    'park',
    'street',
    'ball',
    'table',
    'water',
    'red',
    'blue',
]
LABELS = ('contradiction', 'neutral', 'entailment')
# Runs the mode as the binary does, with scores of no model; prints the peak of its memory in MiB.
PROBE = """
import hashlib, resource, sys
import numpy as np
from evil_jax import main
from evil_jax.modes import _nli_scores

class Model:
    digest, truncated, signature, stated = 'hash', 0, {}, ('contradiction', 'neutral', 'entailment')
    def __call__(self, pairs):
        numbers = [hashlib.blake2b('|'.join(pair).encode(), digest_size=6).digest() for pair in pairs]
        raw = np.frombuffer(b''.join(numbers), '<u2').reshape(-1, 3) + 1.0
        return (raw / raw.sum(1, keepdims=True)).astype(np.float32)

_nli_scores.open_model = lambda config: Model()
try:
    main.run()
finally:
    print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def sentence(n: int, length: int) -> str:
    picked = []
    for _ in range(length):
        n, word = divmod(n * 2_654_435_761 % 2**61 + 17, len(WORDS))
        picked.append(WORDS[word])
    return ' '.join(picked)


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """Files of SNLI's, e-SNLI's and Flickr30k's form; texts are words by chance."""
    folder = tmp_path_factory.mktemp('sources')
    images = [str(100_000_000 + n) for n in range(IMAGES)]
    caption = lambda image, number: sentence(int(image) * CAPTIONS + number, 12)
    with open(folder / 'captions.token', 'w') as file:
        file.writelines(f'{i}.jpg#{n}\t{caption(i, n)} .\n' for i in images for n in range(CAPTIONS))
    (folder / 'trainval.lst').write_text('\n'.join(images[:-1_000]))
    (folder / 'test.lst').write_text('\n'.join(images[-1_000:]))
    with open(folder / 'snli.jsonl', 'w') as pairs, open(folder / 'esnli.csv', 'w', newline='') as explanations:
        table = csv.writer(explanations)
        table.writerow(['pairID', 'gold_label', 'Sentence1', 'Sentence2', 'Explanation_1'])
        for n in range(PAIRS):
            image, number, label = images[n % IMAGES], n // IMAGES % CAPTIONS, LABELS[n % 3]
            pair_id, premise = f'{image}.jpg#{number}r{n // IMAGES}{label[0]}', caption(image, number)
            hypothesis, explanation = sentence(n, 7), sentence(n + PAIRS, 12)
            row = {'pairID': pair_id, 'gold_label': label, 'sentence1': premise, 'sentence2': hypothesis}
            pairs.write(json.dumps(row) + '\n')
            table.writerow([pair_id, label, premise, hypothesis, explanation])
    return folder


def test_the_working_size_streams(sources, tmp_path, measured):
    command = [
        '--mode=construct', '--config=esnlive_construction', f'--workdir={tmp_path}/work',
        f'--config.construct.pairs={sources}/snli.jsonl', f'--config.construct.explanations={sources}/esnli.csv',
        f'--config.construct.captions={sources}/captions.token',
        f'--config.construct.splits=trainval={sources}/trainval.lst,test={sources}/test.lst',
    ]  # fmt: skip
    took = []
    for more in ([], ['--config.construct.false_neutral.threshold=2.2']):
        done = subprocess.run(
            [sys.executable, '-c', PROBE, *command, *more], cwd=ROOT, capture_output=True, text=True, check=True
        )
        peak = float(done.stdout.rpartition('peak ')[2])
        took.append(int(done.stdout.rpartition('construct took ')[2].split()[0]))
        measured(f'peak of memory, MiB, {more[0].rpartition(".")[2] if more else "first run"}', '<=', 1_500, peak)
    print(done.stdout)
    numbers = json.loads((tmp_path / 'work/construct.json').read_text())
    removed = 0
    with open(tmp_path / 'work/construct/esnlive/removed.jsonl') as file:
        removed = sum(1 for _ in file)
    kept = sum(numbers[f'{split} kept'] for split in ('train', 'dev', 'test'))
    measured('pairs that are kept or removed', '==', PAIRS, kept + removed)
    measured('minutes without the model, first run', '<=', 20, took[0] / 60)
    measured('minutes after a changed threshold', '<=', 10, took[1] / 60)
