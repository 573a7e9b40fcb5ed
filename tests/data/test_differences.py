from evil_jax.data.differences import different


def test_every_difference_is_named_by_its_path():
    found = {'a': {'b': 1, 'c': [{'d': 'x'}, {'d': 'y'}]}, 'same': 1.0, 'names': ['p', 'q'], 'gone': 0}
    wanted = {'a': {'b': 2, 'c': ({'d': 'x'}, {'d': 'z'})}, 'same': 1, 'names': ('p', 'q'), 'new': None}
    assert different(found, wanted) == [
        'a.b was 1 and is now 2',
        "a.c.1.d was 'y' and is now 'z'",
        "gone was 0 and is now 'absent'",
        "new was 'absent' and is now None",
    ]
    assert different(found, found) == []
