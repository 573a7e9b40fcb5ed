"""In what two JSON documents differ, in words: settings and sources of builds and stores."""


def different(found, wanted) -> list[str]:
    """One text for each value in which two nested dictionaries differ: `a.b was 1 and is now 2`."""
    there, now = _flat(found), _flat(wanted)
    texts = []
    for name in sorted(there.keys() | now.keys()):
        old, new = there.get(name, 'absent'), now.get(name, 'absent')
        if old != new:
            texts.append(f'{name} was {old!r} and is now {new!r}')
    return texts


def _flat(value, name='') -> dict[str, object]:
    """{'a.b': value of [a][b]}; lists of dictionaries count from 0."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        items = enumerate(value)
    else:
        return {name: list(value) if isinstance(value, tuple) else value}
    return {k: v for key, part in items for k, v in _flat(part, f'{name}.{key}' if name else str(key)).items()}
