"""The published code's quirks: how they are asked for, and that every one of them is tested."""

import ast
import pathlib
import re

import pytest

from evil_jax import compat
from evil_jax import config as config_lib

TESTS = pathlib.Path(__file__).resolve().parent


def _config(value):
    config = config_lib.base()
    config.compat = value
    return config


@pytest.mark.parametrize(
    'value, wanted',
    [
        ('fixed', set()),
        ('original', set(compat.QUIRKS)),
        ('1', {1}),
        ('1,3', {1, 3}),
        (' 17 , 1,17', {1, 17}),
        ('12', {12}),  # not 1 and 2
    ],
)
def test_what_is_asked_for(value, wanted):
    assert compat.parse(value) == wanted
    config = _config(value)
    assert {n for n in compat.QUIRKS if compat.has(config, n)} == wanted
    config_lib.validate(config)


@pytest.mark.parametrize('value', ['', 'orignal', 'Fixed', '1,', '1;3', '9', '0', '-1', '1.0', 'fixed,1', '1 3', '²'])
def test_what_is_no_quirk(value):
    part = value if ',' not in value else {'1,': '', 'fixed,1': 'fixed'}[value]
    with pytest.raises(ValueError, match=re.escape(f'config.compat is {value!r}: {part!r} is no quirk; wanted')):
        config_lib.validate(_config(value))


def test_code_may_only_ask_for_quirks_that_exist():
    with pytest.raises(AssertionError, match='9 is no quirk'):
        compat.has(_config('fixed'), 9)


def test_attention_dropout_is_part_of_the_original_only():
    for value, wanted in (('fixed', 0.0), ('original', 0.1), (','.join(map(str, compat.QUIRKS)), 0.0)):
        assert compat.attention_dropout(_config(value)) == wanted
    config = _config('original')
    config.model.dropout = 0.0
    assert compat.attention_dropout(config) == 0.0


def _test_names():
    for path in sorted(TESTS.rglob('test_*.py')):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith('test_'):
                yield node.name


def test_every_quirk_has_a_test():
    """A test of quirk 7, both ways, says so in its name: test_quirk_7_...; a test of several names each of them:
    test_quirk_3_and_quirk_4_... No name stands for a quirk that does not exist."""
    tested = {int(number) for name in _test_names() for number in re.findall(r'quirk_(\d+)', name)}
    assert tested == set(compat.QUIRKS)


def test_every_quirk_is_told_in_one_line():
    for number, what in compat.QUIRKS.items():
        assert len(what) <= 110 and not what.endswith('.') and '\n' not in what, number
