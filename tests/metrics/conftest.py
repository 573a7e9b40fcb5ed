"""Golden values of pycocoevalcap, and Java where it is; helper modules of this folder are imported by their names."""

import json
import pathlib
import sys
from typing import NamedTuple

import pytest

from evil_jax.metrics import resources

sys.path.insert(0, str(pathlib.Path(__file__).parent))


class Golden(NamedTuple):
    """What pycocoevalcap made of texts: its `values` by metric, in the order of `ids`."""

    predictions: dict[str, str]
    references: dict[str, list[str]]
    values: dict[str, dict]
    ids: list[str]


@pytest.fixture(
    params=[(s, v) for s in ('synthetic24', 'esnlive200_ref1', 'esnlive200_ref3') for v in ('raw', 'ptb')],
    ids=lambda param: '-'.join(param),
)
def golden(shared, request):
    source, variant = request.param
    folder = shared / 'data' / 'metrics'
    found = json.loads((folder / f'coco_{source}.json').read_text())
    inputs = json.loads((folder / f'inputs_{source}.json').read_text())
    ids = [row['id'] for row in inputs]
    if variant == 'raw':
        texts = {row['id']: row['cand'] for row in inputs}, {row['id']: row['refs'] for row in inputs}
    else:
        tokens = found['ptb_tokens']
        texts = {i: words[0] for i, words in tokens['cand'].items()}, tokens['refs']
    return Golden(*texts, found[variant], ids)


@pytest.fixture(scope='session')
def java():
    try:
        return resources.java()
    except resources.Unavailable as error:
        pytest.skip(str(error))
