"""Files for tests to read."""

import json


def write(path, document):
    """Writes a text as it is, anything else as JSON. Gives the path."""
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding='utf-8')
    return path


def lines(path, *rows):
    """Writes JSON lines. Gives the path."""
    return write(path, ''.join(json.dumps(row) + '\n' for row in rows))
