"""Word tokens as coco-caption scores them: Penn Treebank words, lower-cased, punctuation dropped; without Java.

coco-caption runs Stanford's PTBTokenizer (CoreNLP 3.4.1, lower-case, one text a line) and then drops a list of
punctuation marks. The same conventions are a few rules here: contractions and possessives are split ("ca n't",
"man 's"), 'cannot' is two words, initials, abbreviations and numbers keep their dots, hyphenated words and words around
a slash stay whole. Three oddities are kept, since scores depend on them: a parenthesis is a *word*, '-lrb-' or '-rrb-',
because the list has it in capitals and is looked up after lower-casing; so are '/', '&', '$', '%' and '#'; and so is a
run of marks such as '!!!'.

Residual: of 97,674 texts of e-SNLI-VE, e-SNLI, VQA-X and Cos-E four come out other than from the Java program, all rare
forms ("can'tbe", "diy'er", '140.6-distance', 'group o.'). Texts of another kind have more: web addresses, emoticons,
abbreviations that are not listed, other scripts.
"""

import re

NAME = 'ptb-like-1'  # in signatures; a change of the rules makes another one

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
    | (?:{_ABBREVIATIONS})\. {_END}
    | no\. (?=\s*\d)
    | (?:[a-z]\.)+ [a-z] {_END} \.? | [a-z]\. {_END}                            # initials: u.s., p.m., j.
    | can (?=not{_END}) | go (?:n(?=na{_END}) | t(?=ta{_END})) | wan (?=na{_END}) | (?:gim | lem) (?=me{_END})
    | 't (?=(?:is|was){_END})
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
