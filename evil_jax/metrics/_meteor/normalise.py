"""Text to words, as METEOR 1.5 does it with `-norm` for English.

Most punctuation stands alone, hyphens between words go, `isn't` becomes `isn 't` and `U.S.` becomes `us`; case goes.
Rules run in a fixed order over hits that do not overlap, so 'a-b-c' gives `a b-c`: quirks of the original are kept. Its
white space and digits are those of ASCII.
"""

import re

LETTERS = 'A-Za-z\u0160\u017d\u0161\u017e\u0178\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017e\u0400-\u04ff\u0500-\u0527' + (
    '\ua640-\ua66e\ua67e-\ua697\u1d00-\u1d7f'
)
_ALONE = re.compile(rf"([^0-9{LETTERS} \t\n\x0b\f\r.'`,\-\u2018\u2019])")
_DOTS = re.compile(r'\.(\.+)')
_LAST_DOT = re.compile(r'DOTMULTI\.([^.])')
_COMMAS = [re.compile(p) for p in ('([^0-9]),([^0-9])', '([0-9]),([^0-9])', '([^0-9]),([0-9])')]
_QUOTE = re.compile('[`\u2018\u2019]')
_DOUBLE_QUOTE = re.compile("[\u201c\u201d]|''")
_HYPHEN = re.compile(rf'([0-9{LETTERS}.])-([0-9{LETTERS}])')
_APOSTROPHES = [
    (re.compile(rf"([^{LETTERS}])'([^{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([^{LETTERS}0-9])'([{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([{LETTERS}])'([^{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([{LETTERS}])'([{LETTERS}])"), r"\1 '\2"),
    (re.compile("([0-9])'(s)"), r"\1 '\2"),
]
_LETTER = re.compile(f'[{LETTERS}]')
_LOWER = re.compile('[a-z]')
_DIGIT = re.compile('[0-9]')
_TOKEN = re.compile('[^ \t\n\r\f]+')
_WIDE = re.compile('[\u2000-\u200a\u202f\u205f\u3000\u00a0]')
_TRIMMED = ''.join(map(chr, range(33)))
_BREAKS = re.compile('[\r\n]')
_HALF = re.compile('[\ud800-\udfff]')

ANY, BEFORE_NUMBERS = 1, 2  # where a prefix keeps its full stop


def line(text: str) -> str:
    """A text as one line of the original's protocol.

    Line breaks become blanks, '|||' (its separator) goes, and half a surrogate pair becomes U+FFFD.
    """
    return _HALF.sub('\ufffd', _BREAKS.sub(' ', text).replace('|||', ''))


def words(text: str, prefixes: dict[str, int]) -> tuple[str, ...]:
    """Words of a text.

    Args:
      text: one line, from `line`.
      prefixes: abbreviation without its full stop -> `ANY` or `BEFORE_NUMBERS`.
    """
    text = _ALONE.sub(r' \1 ', f' {text.strip(_TRIMMED)} ')
    # Runs of dots are hidden from the rules for full stops, behind the very words that the original uses: where one of
    # them stands in a text, the same comes out as there.
    if '..' in text:
        text = _DOTS.sub(r' DOTMULTI\1', text)
    while 'DOTMULTI.' in text:
        text = _LAST_DOT.sub(r'DOTDOTMULTI \1', text).replace('DOTMULTI.', 'DOTDOTMULTI')
    if ',' in text:
        for pattern in _COMMAS:
            text = pattern.sub(r'\1 , \2', text)
    text = _DOUBLE_QUOTE.sub(' " ', _QUOTE.sub("'", text))
    text = text.replace('\u2013', '-').replace('--', '-')
    if '-' in text:
        text = _HYPHEN.sub(r'\1 \2', text)
    if "'" in text:
        for pattern, to in _APOSTROPHES:
            text = pattern.sub(to, text)
    tokens = _TOKEN.findall(text)
    if '.' in text:
        tokens = [_full_stop(tokens, i, prefixes) if t[-1] == '.' and len(t) > 1 else t for i, t in enumerate(tokens)]
    text = ' '.join(tokens)
    while 'DOTDOTMULTI' in text:
        text = text.replace('DOTDOTMULTI', 'DOTMULTI.')
    text = _WIDE.sub(' ', text.replace('DOTMULTI', '.')).strip(_TRIMMED).lower()
    return tuple(_TOKEN.findall(text))


def _full_stop(tokens: list[str], i: int, prefixes: dict[str, int]) -> str:
    """Token i, which ends in a full stop: without any dot, as it is, or with the last one set apart."""
    token, stem = tokens[i], tokens[i][:-1]
    if '.' in stem and _LETTER.search(stem):
        return token.replace('.', '')
    following = tokens[i + 1] if i + 1 < len(tokens) else ''
    kept = prefixes.get(stem)
    if kept == ANY or _LOWER.match(following) or (kept == BEFORE_NUMBERS and _DIGIT.match(following)):
        return token
    return f'{stem} .'
