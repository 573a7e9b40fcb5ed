"""From VCR's tokens back to a sentence: no blank before a comma, a full stop, n't or 's.

Blanks are not published, so this is a rule, not a record: hyphens and slashes join their neighbours, quotation marks
open and close in turn.
"""

from collections.abc import Iterable

_LEFT = frozenset(',.?!;:%)]}') | {"n't", 'n’t', '...', '…'}  # joins the token before it
_RIGHT = frozenset('([{$#')  # joins the token after it
_BOTH = frozenset('-/')
_ENDINGS = frozenset(('s', 'm', 're', 've', 'll', 'd', 't'))  # after an apostrophe
_QUOTES = {'"': '"', '``': '"', "''": '"', '“': '“', '”': '”'}


def join(tokens: Iterable[str]) -> str:
    """The sentence of some tokens, without blanks at its ends. Tokens that are blank are passed over."""
    sentence, glued, opened = [], True, False
    for token in filter(None, map(str.strip, tokens)):
        before = after = False
        if token in _QUOTES:
            closes = opened if token == '"' else token in ("''", '”')
            token, opened = _QUOTES[token], not closes
            before, after = closes, not closes
        elif token == "'":
            before = True  # of a plural: the boys' room
        elif token in _LEFT or _is_ending(token):
            before = True
        elif token in _RIGHT:
            after = True
        elif token in _BOTH:
            before = after = True
        if not (glued or before):
            sentence.append(' ')
        sentence.append(token)
        glued = after
    return ''.join(sentence).strip()


def _is_ending(token: str) -> bool:
    return token[0] in "'’" and token[1:].lower() in _ENDINGS
