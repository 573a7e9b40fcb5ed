"""Captions of Flickr30k (Young et al. 2014), five a picture, in the forms they travel in; and lists of pictures.

- results_20130124.token: `1000092795.jpg#0<tab>text`;
- Kaggle's results.csv: `image_name| comment_number| comment`;
- other CSV: a column image, image_name or filename, and caption or comment (a row each), or raw (a JSON list of texts);
- Karpathy's dataset_flickr30k.json: `{images: [{filename, sentences: [{raw}]}]}`.
"""

import re

from evil_jax.data.sources import _files

_TOKEN = re.compile(r'(\S+)#(\d+)\t(.*)', re.ASCII)
# One line of the published table lacks its second bar: '2199200615.jpg| 4   A dog runs across the grass .'
_BARS = re.compile(r'([^|]+?)\s*\|\s*(\d+)\s*\|?\s*(.*)', re.ASCII)
_NAMES, _TEXTS, _NUMBERS, _LIST = ('image', 'image_name', 'filename'), ('caption', 'comment'), 'comment_number', 'raw'


def captions(path) -> dict[str, list[str]]:
    """{number of the picture: its captions, in order} of a file, plain or gzip.

    Raises:
      ValueError: a form that is none of these, an empty caption, a number that a picture has twice or lacks.
    """
    found: dict[str, dict[int, str]] = {}
    for where, picture, number, text in _rows(path):
        name, text = _files.picture_name(picture, f'{where}: the picture'), _files.text(text.strip(), where)
        texts = found.setdefault(name, {})
        number = len(texts) if number is None else number
        if number in texts:
            raise ValueError(f'{where}: picture {name} has caption {number} twice')
        if not text:
            raise ValueError(f'{where}: caption {number} of picture {name} is empty')
        texts[number] = text
    if not found:
        raise ValueError(f'{path}: has no captions')
    for name, texts in found.items():
        if max(texts) != len(texts) - 1:
            have = ', '.join(map(str, sorted(texts)[:20]))
            raise ValueError(f'{path}: picture {name} has captions {have}, wanted all from 0 on: lines are missing')
    return {name: [texts[i] for i in range(len(texts))] for name, texts in found.items()}


def image_ids(path) -> list[str]:
    """The pictures of a list, a line each, in their order; folder and ending of a name are left out.

    Raises:
      ValueError: a picture that stands there twice, no picture at all.
    """
    seen = {}
    for number, line in enumerate(_files.iter_lines(path), 1):
        if line.strip():
            name = _files.picture_name(line, f'{path}:{number}')
            if name in seen:
                raise ValueError(f'{path}:{number}: picture {name!r} was already in line {seen[name]}')
            seen[name] = number
    if not seen:
        raise ValueError(f'{path}: has no pictures, wanted the name of one in each line')
    return list(seen)


def _rows(path):
    """(where, picture, number or None, text) of each caption."""
    if _files.first_character(path) == '{':
        return _json(path)
    first = next(_files.iter_lines(path), '')
    if _TOKEN.match(first):
        return _lines(path, _TOKEN, 0, "'NUMBER.jpg#0<tab>text'")
    if '|' in first:
        return _lines(path, _BARS, 1, "'NUMBER.jpg| 0| text'")
    return _csv(path)


def _lines(path, pattern, header, wanted):
    for number, line in enumerate(_files.iter_lines(path), 1):
        line = line.strip('\r\n')
        if number <= header or not line.strip():
            continue
        match = pattern.fullmatch(line)
        if not match:
            raise ValueError(f'{path}:{number}: is {_files.shown(line)}, wanted {wanted}')
        yield f'{path}:{number}', match[1], int(match[2]), match[3]


def _csv(path):
    header = None
    for where, cells in _files.csv_rows(path, _files.iter_lines(path)):
        if header is None:
            header = [cell.strip() for cell in cells]
            name = next((name for name in _NAMES if name in header), None)
            text = next((text for text in (_LIST, *_TEXTS) if text in header), None)
            if name is None or text is None:
                have = ', '.join(_files.keys(dict.fromkeys(header)))
                raise ValueError(
                    f'{where}: no captions of Flickr30k: wanted lines such as results_20130124.token has them, or a '
                    f'column {" or ".join(_NAMES)} and one {" or ".join((*_TEXTS, _LIST))}; found {have[:200]}'
                )
            continue
        row = dict(zip(header, cells))
        if text == _LIST:
            texts = _files.checked(_files.parse_json(row[text], f'{where}: {text}', lines=False), list, where)
            for i, entry in enumerate(texts):
                yield where, row[name], i, _files.checked(entry, str, f'{where}: {text}')
        else:
            yield where, row[name], _number(row[_NUMBERS], where) if _NUMBERS in row else None, row[text]


def _number(cell, where) -> int:
    if not re.fullmatch(r'\s*\d{1,6}\s*', cell, re.ASCII):
        raise ValueError(f'{where}: {_NUMBERS} is {cell[:80]!r}, wanted a number')
    return int(cell)


def _json(path):
    pictures = _files.field(_files.checked(_files.read_json(path), dict, path), 'images', list, str(path))
    for i, row in enumerate(pictures):
        where = f'{path}: images[{i}]'
        row = _files.checked(row, dict, where)
        name = _files.filled(row, 'filename', where)
        for n, sentence in enumerate(_files.field(row, 'sentences', list, where)):
            yield where, name, n, _files.filled(_files.checked(sentence, dict, where), 'raw', where)
