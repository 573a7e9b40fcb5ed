"""Every bad file ends in one ValueError that names it, in bounded memory."""

import gzip
import json
import os
import tracemalloc

import pytest

from evil_jax.data.sources import _files


def put(tmp_path, content):
    path = tmp_path / 'x'
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_plain_gzip_and_byte_order_mark(tmp_path):
    for content in (b'[1]', b'\xef\xbb\xbf[1]', gzip.compress(b'[1]'), gzip.compress(b'[') + gzip.compress(b'1]')):
        path = put(tmp_path, content)
        assert _files.read_json(path) == [1]
        assert _files.first_character(path) == '['
        assert list(_files.iter_json(path)) == [(f'{path}:1', [1])]
    assert _files.first_character(put(tmp_path, b'')) == ''


def test_lines_across_blocks(tmp_path, monkeypatch):
    rows = [{'n': n, 'text': 'ü' * (n % 7)} for n in range(50)]
    content = '\n'.join(json.dumps(row, ensure_ascii=False) for row in rows)  # no line end at the end
    for size in (1, 2, 3, 17, 10_000):
        monkeypatch.setattr(_files, '_BLOCK', size)
        found = list(_files.iter_json(put(tmp_path, content + '\n\n \n')))
        assert [row for _, row in found] == rows
        assert [int(place.rsplit(':')[-1]) for place, _ in found] == list(range(1, 51))


def test_texts_by_lines(tmp_path, monkeypatch):
    lines = ['ü,"a\n', 'b"\r\n', '\r\n', 'x\r', 'y\u2028z\n', 'end']
    for size in (1, 2, 3, 7, 10_000):
        monkeypatch.setattr(_files, '_BLOCK', size)
        for mark in ('', '\ufeff'):
            assert list(_files.iter_lines(put(tmp_path, mark + ''.join(lines)))) == lines
            with pytest.raises(ValueError, match=f'x: not UTF-8 text at byte {len(mark.encode()) + 4}'):
                list(_files.iter_lines(put(tmp_path, mark.encode() + b'ab\nc\xff\n')))
        with pytest.raises(ValueError, match='x:2: the line is longer than 5 characters'):
            list(_files.iter_lines(put(tmp_path, 'a\n' + 'b' * 50 + '\n'), max_line=5))
    assert list(_files.iter_lines(put(tmp_path, ''))) == []


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'[1,\n2,,]', 'x:2: not JSON: .* at column 3'),
        (b'\xff\xfe', 'x: not UTF-8 text at byte 0'),
        (gzip.compress(b'[1]', mtime=0)[:-4], 'x: cannot be read: .*end-of-stream'),
        (gzip.compress(b'[1]' * 99, mtime=0)[:12] + b'zzzz', 'x: cannot be read'),
        (b'[' * 100_000, 'x: JSON nested too deeply'),
        (b'[' + b'9' * 5_000 + b']', 'x: Exceeds the limit'),
        (b'{"a": 1, "b": {"c": 2, "c": 3}}', "x: the key 'c' appears twice in one JSON object"),
    ],
)
def test_bad_documents(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        _files.read_json(put(tmp_path, content))
    if b'\n' not in content:
        with pytest.raises(ValueError, match=r'x:1: |x: cannot be read'):
            list(_files.iter_json(put(tmp_path, content)))


def test_largest_sizes(tmp_path):
    path = put(tmp_path, json.dumps(['x' * 90]))
    for read in (_files.read_json, _files.read_text, lambda *size: list(_files.iter_json(*size))):
        read(path, 94)
        with pytest.raises(ValueError, match='x: is larger than 93 bytes'):
            read(path, 93)
    with pytest.raises(ValueError, match='x:1: the line is longer than 93 bytes'):
        list(_files.iter_json(path, max_line=93))
    assert len(list(_files.iter_json(path, max_line=94))) == 1
    lines = put(tmp_path, b'1\n' + b'2' * 10 + b'\n3\n')
    with pytest.raises(ValueError, match='x:2: the line is longer than 9 bytes'):
        list(_files.iter_json(lines, max_line=9))


def test_an_archive_of_zeros_is_not_unpacked(tmp_path):
    path = tmp_path / 'x'
    with gzip.open(path, 'wb', compresslevel=1) as file:
        for _ in range(80):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r'x: is larger than [0-9,]+ bytes when unpacked'):
            _files.read_json(path)
        with pytest.raises(ValueError, match='x:1: the line is longer than'):
            list(_files.iter_json(path))
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / 'pipe')
    for path in (tmp_path, tmp_path / 'pipe', tmp_path / 'absent', tmp_path / ('x' * 300)):
        with pytest.raises(ValueError, match=f'{path.name}: cannot be read'):
            _files.read_text(path)


def test_texts_must_be_writable():
    assert _files.checked('Zoë 😀', str, 'here') == 'Zoë 😀'
    with pytest.raises(ValueError, match=r"here has half a surrogate pair, '\\ud83d'"):
        _files.checked(json.loads('"a\\ud83d"'), str, 'here')
    with pytest.raises(ValueError, match='here has 131,073 characters, wanted at most 131,072'):
        _files.checked('x' * 131_073, str, 'here')


def test_messages_stay_short():
    deep = []
    for _ in range(900):
        deep = [deep]
    for value in (deep, ['x' * 10_000] * 1000, {str(n): deep for n in range(1000)}, 10**4000, True):
        with pytest.raises(ValueError, match=r'here is .*wanted text') as caught:
            _files.checked(value, str, 'here')
        assert len(str(caught.value)) < 1000
    with pytest.raises(ValueError, match="has no 'b', only 0, 1, ") as caught:
        _files.field({str(n): n for n in range(10_000)}, 'b', str, 'here')
    assert len(str(caught.value)) < 200


def test_plain():
    value = {'a': [1, 2.5, None, True, {'ü': ['x']}]}
    assert _files.plain(value, 'here') is value
    deep = 'x'
    for _ in range(31):
        deep = [deep]
    for bad, message in (
        ({'\ud800': 1}, 'surrogate'),
        ([['\udfff']], 'surrogate'),
        ([float('nan')], 'nan is no JSON'),
        ({'a': -float('inf')}, '-inf is no JSON'),
        (deep, 'more than 30 deep'),
    ):
        with pytest.raises(ValueError, match=f'here.*{message}'):
            _files.plain(bad, 'here')


@pytest.mark.parametrize(
    ('content', 'wanted'),
    [
        (b'{"a": 1}\n{"a": 2}', {'a': 1}),
        (b'\xef\xbb\xbf \n\n [1, 2] \r\nrest', [1, 2]),
        (b'{"a":\n 1}', None),
        (b'word\n', None),
        (b'', None),
        (b'{"a": 1, "a": 2}', None),
        (b'"\xff"', None),
        (b' ' * (3 << 20) + b'{"a": "' + b'x' * (2 << 20) + b'"}\n', {'a': 'x' * (2 << 20)}),
        (b'[' + b' ' * (17 << 20) + b']', None),
    ],
)
def test_the_first_record(tmp_path, content, wanted):
    (tmp_path / 'f').write_bytes(content)
    assert _files.first_record(tmp_path / 'f') == wanted
    with pytest.raises(ValueError, match='cannot be read'):
        _files.first_record(tmp_path / 'nowhere')
