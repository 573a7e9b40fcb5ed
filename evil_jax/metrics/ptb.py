"""Word tokens as coco-caption scores them: Penn Treebank words, lower-cased, punctuation dropped; with Java or without.

coco-caption runs Stanford's PTBTokenizer (CoreNLP 3.4.1, lower-case, one text a line) and then drops a list of
punctuation marks. `tokenise` runs it where the user has pycocoevalcap and Java; elsewhere `words` follows the same
conventions by a few rules. Contractions and possessives are split ("ca n't", "man 's"), 'cannot' is two words,
initials, abbreviations and numbers keep their dots, hyphenated words and words around a slash stay whole. Three
oddities are kept, since scores depend on them: a parenthesis is a *word*, '-lrb-' or '-rrb-', because the list has it
in capitals and is looked up after lower-casing; so are '/', '&', '$', '%' and '#'; and so is a run of marks such as
'!!!'.

Residual of `words`: of 185,900 different texts of e-SNLI-VE, e-SNLI, VQA-X and Cos-E 17 come out other than from the
Java program: nine with broken letters, eight rare forms ("can'tbe", "diy'er", '140.6-distance', 'Rt. 1'). Texts of
another kind have more: web addresses, emoticons, abbreviations that are not listed, other scripts.
"""

import re
from collections.abc import Sequence

from evil_jax.metrics import _java, resources

NAME = 'ptb-like-2'  # in signatures; a change of the rules makes another one
RESIDUAL = (17, 185_900)  # of so many texts, so many come out other than from the Java program
PYTHON = f'{NAME}(residual:{RESIDUAL[0]}/{RESIDUAL[1]})'
JAVA = 'ptb-java-3.4.1'
BACKENDS = ('auto', 'java', 'python')

# With a dot behind, one word, also at the end of a text.
_ABBREVIATIONS = (
    'mr|mrs|ms|messrs|dr|prof|rev|hon|gen|col|capt|cmdr|lt|sgt|sen|rep|gov|adm|st|mt|ft|jr|sr|bros|inc|co|corp|ltd|etc|vs'
    '|dept|est|univ|ave|blvd|calif|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec|mon|tue|tues|wed|thu|thurs|fri|ph\\.d'
)
_LETTER = r'[^\W\d_]'
_CHARACTER = r'[^\W_]'
_END = rf'(?!{_CHARACTER})'
_SHORT = rf'(?:s|m|d|re|ve|ll){_END}'
_TOKEN = re.compile(
    rf"""
      <[/!]?[a-z][^<>|]*>                                                      # a tag of a mark-up language
    | -[lr][rsc]b-                                                              # a parenthesis, as treebanks write it
    | (?:{_ABBREVIATIONS})\. {_END}
    | no\. (?=\s*\d)
    | (?:[a-z]\.)+ [a-z] {_END} \.? | [a-z]\. {_END}                            # initials: u.s., p.m., j.
    | can (?=not{_END}) | go (?:n(?=na{_END}) | t(?=ta{_END})) | wan (?=na{_END}) | (?:gim | lem) (?=me{_END})
    | 't (?=(?:is|was){_END}) | y' (?=all{_END})
    | {_LETTER}+? (?=n't{_END}) | n't {_END}
    | '{_SHORT} | '(?:em|cause|n(?=')) | '\d\ds {_END}
    | {_LETTER}+\. (?=,)
    | [+-]? (?:\d+ (?:[.,:/-]\d+)* | [.,]\d+) (?!{_CHARACTER} | -{_CHARACTER})
    | (?:\d+ (?:[.,:/]\d+)* -)? {_CHARACTER}+
      (?: (?:[-_/.@&] | (?<=\bo)'(?=clock) | (?<=\b[dlo])'(?!{_SHORT})) (?!n't{_END}) {_CHARACTER}+ )*
    | [@\#] {_LETTER} {_CHARACTER}*
    | [!?]{{2,}} | -{{2,}} | '' | `` | \S
    """,
    re.VERBOSE,
)
_MARKS = {'(': '-lrb-', ')': '-rrb-', '[': '-lsb-', ']': '-rsb-', '{': '-lcb-', '}': '-rcb-', '£': '#', '€': '$'}
_DROPPED = frozenset(("''", "'", '``', '`', '"', '.', '?', '!', ',', ':', '-', '--', '…', ';'))
_PICTOGRAMS = re.compile('[\ufffd\U00010000-\U0010ffff]')  # the Java program leaves them out
_STRAIGHT = str.maketrans('‘’‛“”–—', "'''\"\"--")


def words(text: str) -> list[str]:
    """The words of a text; [] for one that is empty or all punctuation."""
    tokens = _TOKEN.findall(_PICTOGRAMS.sub(' ', text).translate(_STRAIGHT).lower())
    return [_MARKS.get(token, token) for token in tokens if token not in _DROPPED and token.strip('-')]


def tokenise(texts: Sequence[str], backend: str = 'auto', folder: str = '', java: str = '') -> tuple[list[str], str]:
    """The words of each text, joined by blanks; and the name of what made them, for signatures.

    A line break of any kind in a text is a blank. The Java program starts once, so give it all texts at once. It reads
    each different text once, with a line 'x' behind: in coco-caption's hands the end of a text ('no.', 'so it is b.')
    sometimes comes out by what the next text begins with.

    Args:
      texts: any texts; empty ones give ''.
      backend: 'java' = coco-caption's program, 'python' = `words`, 'auto' = Java where it can run.
      folder: of pycocoevalcap, as in `resources.pycocoevalcap`.
      java: as in `resources.java`.

    Raises:
      Unavailable: backend 'java', and Java or the program is missing; with 'auto' too where it was there and failed.
      ValueError: another backend.
    """
    if backend not in BACKENDS:
        raise ValueError(f'PTB tokeniser {backend!r}: wanted one of {", ".join(BACKENDS)}')
    program = None
    if backend != 'python':
        try:
            program = find(folder, java)
        except resources.Unavailable:
            if backend == 'java':
                raise
    cleaned = [_BREAK.sub(' ', text) for text in texts]
    distinct = list(dict.fromkeys(cleaned))
    outputs = [' '.join(words(text)) for text in distinct] if program is None else _by_java(distinct, *program)
    known = dict(zip(distinct, outputs, strict=True))
    return [known[text] for text in cleaned], PYTHON if program is None else JAVA


def find(folder: str = '', java: str = '') -> tuple[str, str]:
    """Paths of Java and of the jar. Raises Unavailable, naming what is missing."""
    program = resources.java(java)
    _java.version(program)
    jar = resources.pycocoevalcap(folder) / 'tokenizer' / 'stanford-corenlp-3.4.1.jar'
    if not jar.is_file():
        raise resources.Unavailable(f'needs {jar.name}, which pip install pycocoevalcap brings')
    return program, str(jar)


_BREAK = re.compile('[\n\r\v\f\u2028\u2029\ud800-\udfff]')  # ends a line for Java; or is half a surrogate pair
_DROPPED_BY_COCO = frozenset(("''", "'", '``', '`', '.', '?', '!', ',', ':', '-', '--', '...', ';'))


def _by_java(texts: list[str], program: str, jar: str) -> list[str]:
    if not texts:
        return []
    lines = [line for text in texts for line in (text, 'x')]
    command = ['edu.stanford.nlp.process.PTBTokenizer', '-preserveLines', '-lowerCase', '-encoding', 'utf-8']
    found = _java.run(program, command, lines, classpath=[jar])
    if len(found) != len(lines):
        raise _java.Failed(f'the PTB tokeniser gave {len(found)} lines for {len(lines)}: use evaluate.ptb=python')
    return [
        ' '.join(token for token in line.split(' ') if token and token not in _DROPPED_BY_COCO) for line in found[::2]
    ]
