"""Names of files, functions and tables, and what is said about wrong ones."""

import subprocess
import sys

import pytest

from evil_jax import lookup


def test_an_unknown_name_is_told_with_the_nearest():
    assert lookup.module('metrics', 'cider').__name__ == 'evil_jax.metrics.cider'
    with pytest.raises(ValueError, match=r"no 'cidr' in evil_jax/metrics\. Did you mean 'cider'\? It has: base, "):
        lookup.module('metrics', 'cidr')
    assert lookup.entry({'a': 1}, 'a', 'size') == 1
    with pytest.raises(ValueError, match=r"size is 'basse'\. Did you mean 'base'\? There are: base, tiny"):
        lookup.entry({'base': 1, 'tiny': 2}, 'basse', 'size')


def test_sources_are_searched_without_importing_them():
    code = (
        'import sys\n'
        'from evil_jax import lookup\n'
        "print(lookup.defining('models', 'build_task'), lookup.keys('models', 'gpt2', 'SIZES'))\n"
        "print('jax' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "['bert', 'mcb', 'uniter', 'updown', 'vit'] ['base', 'medium', 'distil', 'tiny']",
        'False',
    ]
    assert {'bleu', 'rouge', 'cider', 'chrf'} <= set(lookup.defining('metrics', 'table'))
    assert not {'vqa', 'evil', 'base'} & set(lookup.defining('metrics', 'table'))
    assert lookup.keys('models', 'gpt2', 'NOTHING') == []
