"""What a file looks like, for the message when it is not what it was said to be. Nothing is decided by this."""

from evil_jax.data.outputs import _fields, csv
from evil_jax.data.sources import _files, _references

_SAME = ({'coco', 'nlxgpt_exp'},)  # one form, two names
_JSON_LINES = {'generated_explanation': 'gen_test', 'id': 'jsonl'}


def hint(path, format: str) -> str:
    """' (the file looks like ...)' where a file obviously is of another format than `format`, else ''."""
    try:
        found = kind(path)
    except ValueError:
        return ''
    if found in (None, format) or any({found, format} <= names for names in _SAME):
        return ''
    return f' (the file looks like format {found!r}, not {format!r})'


def kind(path) -> str | None:
    """Name of the format that a file looks like, or None. ValueError where it cannot be read."""
    if _files.first_character(path) not in ('[', '{'):
        return 'csv' if csv.known(_files.read_text(path)) else None
    first = _files.first_record(path)
    if isinstance(first, dict) and not isinstance(first.get('id'), list):
        return next((name for key, name in _JSON_LINES.items() if key in first), None)
    document = _files.read_json(path)
    if isinstance(document, dict):
        return 'ofax' if isinstance(document.get('id'), list) and 'answer' in document else None
    rows = document[: _references.ENOUGH] if isinstance(document, list) else []
    texts = [row['caption'] for row in rows if isinstance(row, dict) and isinstance(row.get('caption'), str)]
    if not texts:
        return None
    return 'nlxgpt_full' if all(_fields.BECAUSE in text for text in texts) else 'coco'


def is_json(path) -> bool:
    """Whether the first line that is not blank is a JSON object or list."""
    return isinstance(_files.first_record(path), (dict, list))
