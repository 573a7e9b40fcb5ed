"""Sizes that tests add to a model's table: one name, one size, since the tests of one process share the table."""

import collections
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
ADDED = re.compile(r"^ *(?:\w+\.)*(\w+)\.SIZES\['(\w+)'\] = ", re.MULTILINE)


def doubles(sources: dict[str, str]) -> dict:
    """(model, name): files, of names that more than one file adds."""
    found = collections.defaultdict(list)
    for file, source in sources.items():
        for key in ADDED.findall(source):
            found[key].append(file)
    return {key: files for key, files in found.items() if len(files) > 1}


def test_no_two_files_add_a_size_of_one_name():
    sources = {str(p.relative_to(TESTS)): p.read_text(encoding='utf-8') for p in sorted(TESTS.rglob('*.py'))}
    assert not doubles(sources)


@pytest.mark.parametrize('indent', ['', '    '])
def test_the_check_finds_what_it_looks_for(indent):
    line = f"{indent}gpt2.SIZES['toy'] = gpt2.Size(layers=1)\n"
    assert doubles({'a.py': line, 'b.py': 'x = 1\n' + line}) == {('gpt2', 'toy'): ['a.py', 'b.py']}
    assert not doubles({'a.py': line, 'b.py': line.replace('toy', 'other')})
