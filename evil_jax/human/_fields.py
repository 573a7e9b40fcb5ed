"""Values of the fields of a form, as whoever filled it in sent them: what the form cannot have sent is refused."""

from collections.abc import Sequence


def texts(name, values) -> list[str]:
    """The values of a field; one may be a text by itself.

    Raises:
      ValueError: not texts.
    """
    values = [values] if isinstance(values, str) else values
    if not isinstance(name, str) or not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
        raise ValueError(f'{str(name)[:40]!r}: wanted texts')
    return list(values)


def one(name: str, values: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The only value, one of `wanted`; None where there is none. Raises ValueError."""
    if len(values) > 1:
        raise ValueError(f'{name}: {len(values)} values, wanted one')
    if values and values[0] not in wanted:
        raise ValueError(f'{name}: {values[0][:40]!r}, wanted one of {", ".join(wanted)}')
    return values[0] if values else None


def several(name: str, values: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """The values, each of `wanted` and none twice, in that order. Raises ValueError."""
    for value in values:
        if value not in wanted:
            raise ValueError(f'{name}: {value[:40]!r}, wanted some of {", ".join(wanted)}')
    if len(set(values)) < len(values):
        raise ValueError(f'{name}: a value is there twice')
    return tuple(value for value in wanted if value in values)


def free(name: str, values: Sequence[str], most: int) -> str:
    """What somebody wrote, without blanks at its ends, of at most `most` characters. Raises ValueError."""
    if len(values) > 1:
        raise ValueError(f'{name}: {len(values)} values, wanted one')
    text = values[0].replace('\r\n', '\n').strip() if values else ''
    if len(text) > most:
        raise ValueError(f'{name}: {len(text)} characters, wanted at most {most}')
    # JSON can say half of a surrogate pair, which no file can hold.
    if any(c == '\x00' or '\ud800' <= c <= '\udfff' for c in text):
        raise ValueError(f'{name}: characters that are no text')
    return text
