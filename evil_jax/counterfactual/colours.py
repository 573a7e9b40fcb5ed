"""Named colours: how far apart they are, which are near and far, and where a text uses one as a colour.

Three metrics over the 148 names of CSS (Matplotlib's list):
    ciede2000    CIEDE2000 with unit weights (Sharma, Wu and Dalal, 2005) over CIELAB of sRGB, D65, 2 degrees.
    stoikou2023  the same formula over CIELAB of components that were never divided by 255. It gives the published
                 6.16 (violet, orchid) and 207.88 (violet, deepskyblue) of Stoikou et al. (2023). It is no measure of
                 what people see: black, which is 0 either way, is 132 to 140 from everything.
    rgb          Euclidean over red, green and blue, 0 to 255.
"""

import colorsys
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from evil_jax import lookup
from evil_jax.counterfactual import _colour_names as words

RGB = tuple[int, int, int]
NAMES: dict[str, RGB] = {name.replace(' ', ''): rgb for name, rgb in words.SPACED.items()}
BASIC = words.BASIC
_SPACED = {name.replace(' ', ''): name for name in words.SPACED}

_TO_XYZ = np.array([
    [0.412424, 0.357579, 0.180464], [0.212656, 0.715158, 0.0721856], [0.0193324, 0.119193, 0.950444],
])  # fmt: skip
_WHITE = np.array([0.95047, 1.0, 1.08883])
_ACHROMATIC = 8.0  # chroma in CIELAB below which a colour has no hue to order it by


def _lab(srgb):
    """CIELAB [..., 3] of sRGB components [..., 3], meant to be 0 to 1; no clipping."""
    linear = np.where(srgb > 0.04045, ((srgb + 0.055) / 1.055) ** 2.4, srgb / 12.92)
    t = linear @ _TO_XYZ.T / _WHITE
    x, y, z = np.moveaxis(np.where(t > 216 / 24389, np.cbrt(t), 7.787 * t + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def _ciede2000(one, two):
    """CIEDE2000 of CIELAB [..., 3] and [..., 3], kL = kC = kH = 1; equations (2) to (22) of Sharma et al."""
    l1, a1, b1 = np.moveaxis(one, -1, 0)
    l2, a2, b2 = np.moveaxis(two, -1, 0)
    g = 0.5 * (1 - np.sqrt(_saturating((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    grey = c1 * c2 == 0
    turn = (h2 - h1 + 180) % 360 - 180
    turn = np.where(grey, 0, np.where(turn == -180, np.sign(h2 - h1) * 180, turn))
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    apart = np.abs(h1 - h2) > 180
    hue = np.where(grey, h1 + h2, (h1 + h2 + np.where(apart, np.where(h1 + h2 < 360, 360, -360), 0)) / 2)

    def cos(degrees):
        return np.cos(np.radians(degrees))

    t = 1 - 0.17 * cos(hue - 30) + 0.24 * cos(2 * hue) + 0.32 * cos(3 * hue + 6) - 0.20 * cos(4 * hue - 63)
    dl = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2))
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * t)
    rotation = -np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2)))) * 2 * np.sqrt(_saturating(chroma))
    return np.sqrt(np.maximum(dl**2 + dc**2 + dh**2 + rotation * dc * dh, 0))


def _saturating(chroma):
    return chroma**7 / (chroma**7 + 25.0**7)


METRICS = {
    'ciede2000': lambda one, two: _ciede2000(_lab(one / 255), _lab(two / 255)),
    'stoikou2023': lambda one, two: _ciede2000(_lab(one), _lab(two)),
    'rgb': lambda one, two: np.linalg.norm(one - two, axis=-1),
}
Metric = str | Callable[[RGB, RGB], float]


def _rgb(colour) -> np.ndarray:
    if isinstance(colour, str):
        return np.array(lookup.entry(NAMES, colour.lower().replace(' ', ''), 'the colour'), float)
    values = np.array(colour, float)
    if values.shape != (3,) or not ((values >= 0) & (values <= 255)).all():
        raise ValueError(f'a colour is a name or three numbers from 0 to 255, not {colour!r}')
    if values.max() <= 1 and (values % 1).any():
        raise ValueError(f'{colour!r} looks like a colour from 0 to 1: multiply by 255')
    return values


def distance(a: str | Sequence[float], b: str | Sequence[float], metric: Metric = 'ciede2000') -> float:
    """How far apart two colours are.

    Args:
      a, b: names of `NAMES` (blanks allowed, 'deep sky blue'), or red, green and blue from 0 to 255.
      metric: 'ciede2000', 'stoikou2023', 'rgb', or a function of two (red, green, blue).

    Raises:
      ValueError: an unknown name or metric (with the nearest one), or components out of range.
    """
    return float(_distances(_rgb(a), _rgb(b)[None], metric)[0])


def matrix(names: Sequence[str], metric: Metric = 'ciede2000') -> np.ndarray:
    """Distances of every name to every other, [n, n] float64."""
    rgb = np.array([_rgb(name) for name in names], float).reshape(-1, 3)
    return np.array([_distances(one, rgb, metric) for one in rgb], float).reshape(len(rgb), len(rgb))


def _distances(one, many, metric) -> np.ndarray:
    """Of one colour [3] to each of many [n, 3]: [n]."""
    if callable(metric):
        return np.array([metric(tuple(one.tolist()), tuple(two)) for two in many.tolist()], float)
    return lookup.entry(METRICS, metric, 'the metric of colours')(one, many)


def neighbours(
    name: str, among: Iterable[str] = NAMES, metric: Metric = 'ciede2000', furthest: bool = False
) -> tuple[str, ...]:
    """The other colours, nearest (or furthest) first, ties in the order of the names.

    Of names for one and the same colour (gray, grey) only the first in alphabetical order stays, and none for the
    colour of `name` itself.
    """
    own = tuple(_rgb(name))
    distinct = {}
    for other in sorted({name.lower().replace(' ', '') for name in among}):
        distinct.setdefault(tuple(_rgb(other)), other)
    distinct.pop(own, None)
    # Equal distances may differ in the last bit from one processor to another.
    rounded = _distances(_rgb(name), np.array(list(distinct), float).reshape(-1, 3), metric).round(9)
    far = dict(zip(distinct.values(), rounded.tolist()))
    return tuple(sorted(far, key=lambda other: (-far[other] if furthest else far[other], other)))


def spaced(name: str) -> str:
    """'deepskyblue' as people write it: 'deep sky blue'."""
    return lookup.entry(_SPACED, name.lower().replace(' ', ''), 'the colour')


def basics(name: str) -> frozenset[str]:
    """The basic terms that people may call a colour by: of navy blue and black, of turquoise blue and green."""
    return lookup.entry(words.CALLED, name.lower().replace(' ', ''), 'the colour')


def is_a(seen: str, asked: str) -> bool | None:
    """Whether what has the colour `seen` may be called `asked`: navy is blue and is not red.

    None where it depends: a blue thing may be navy or not, turquoise may be called green.
    """
    if NAMES[seen] == NAMES[asked]:
        return True
    shared = basics(seen) & basics(asked)
    if not shared:
        return False
    return True if basics(seen) == basics(asked) == {asked} else None


def hue_order(names: Iterable[str]) -> list[str]:
    """For the axes of a table: greys from dark to light, then round the hues from red on, dark to light within one."""

    def place(name):
        rgb = _rgb(name) / 255
        lightness, a, b = _lab(rgb)
        hue = colorsys.rgb_to_hsv(*rgb)[0] * 360
        sector = -1 if np.hypot(a, b) < _ACHROMATIC else (hue + 15) % 360 // 30  # of 30 degrees, red in the middle of 0
        return sector, lightness, name

    return sorted(names, key=place)


def _written(name):
    return name.replace(' ', '' if name in words.TWO_WORDS else '[ -]?')


# Longest first; not inside of a compound ('red-haired') or quotes, nor with a possessive ('the blue's').
_NAME = re.compile(
    r'(?<![\w\'’"-])(?:{})(?![\w"-]|[\'’]\w)'.format('|'.join(map(_written, sorted(words.SPACED, key=len)[::-1]))),
    re.IGNORECASE,
)
_PROTECTED = re.compile(r'\b(?:' + '|'.join(words.PROTECTED) + r')\b', re.IGNORECASE)
_SEPARATOR = re.compile('[ -]')


def spans(text: str) -> list[tuple[int, int, str]]:
    """(start, end, name) of every name of a colour in a text, whatever it means there."""
    return [(*match.span(), _SEPARATOR.sub('', match[0].lower())) for match in _NAME.finditer(text)]


def mentions(tokens: Sequence, text: str) -> list[tuple[int, int, str, str]]:
    """Every colour name in a text, with how it is used.

    Args:
      tokens: of `text`, with `start`, `end` and `pos` ('n', 'v', 'a', ...), as a tagger gives them.
      text: the text.

    Returns:
      (start, end, name, use), in the order of the text. `use` is 'adjective' ('the red car', 'is it red'), 'noun'
      (of the colour: 'in red'), 'thing' ('an orange', 'snow') or 'protected' (a part of a fixed phrase or a name, or
      the colour of somebody's skin).
    """
    found = spans(text)
    if not found:
        return []
    fixed = [match.span() for match in _PROTECTED.finditer(text)]
    # A tagger's multi-word noun ('black bear', 'red pepper') is one thing.
    fixed += [(t.start, t.end) for t in tokens if t.pos == 'n' and ' ' in text[t.start : t.end]]
    coloured = [(start, end) for start, end, _ in found]
    rows = []
    for start, end, name in found:
        inside = any(low < end and start < high and (low, high) != (start, end) for low, high in fixed)
        if inside or _is_proper(text, start):
            use = 'protected'
        else:
            start, name = _without_subject(tokens, text, start, end, name)
            before = [t for t in tokens if t.end <= start]
            after = [t for t in tokens if t.start >= end]
            use = _use(name, before, after, coloured)
        rows.append((start, end, name, use))
    return rows


def _without_subject(tokens, text, start, end, name):
    """(start, name): in 'is the sky blue' the colour is blue; 'is the sky blue car old' has a sky blue one."""
    rest = text[start:end].partition(' ')[2].lower()
    at = next((at for at, token in enumerate(tokens) if token.start == start), 0)
    if rest in NAMES and at and tokens[at].pos == 'n' and tokens[at - 1].text.lower() in words.BEFORE_SUBJECTS:
        head = next((token for token in tokens if token.start >= end), None)
        if head is None or head.pos != 'n':
            return end - len(rest), rest
    return start, name


def find(tokens: Sequence, text: str) -> list[tuple[int, int, str]]:
    """(start, end, name) of the colour words of a text that may be exchanged: things and fixed phrases are not."""
    return [(start, end, name) for start, end, name, use in mentions(tokens, text) if use in ('adjective', 'noun')]


def uses(texts: Iterable[str], tagger: Callable[[str], Sequence]) -> Counter:
    """How often texts use each colour name as an adjective. `tagger(text)` gives tokens as `mentions` takes them."""
    return Counter(
        name
        for text in texts
        if _NAME.search(text)
        for _, _, name, use in mentions(tagger(text), text)
        if use == 'adjective'
    )


def split(uses: Counter, min_uses: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The common and the uncommon names: used at least `min_uses` times as an adjective, and the rest of `NAMES`.

    Another name of a common colour (grey beside gray) is in neither. Without any uses the basic terms are common.
    """
    common = tuple(sorted(name for name in NAMES if uses[name] >= min_uses)) if uses else tuple(sorted(BASIC))
    taken = {NAMES[name] for name in common}
    return common, tuple(sorted(name for name, rgb in NAMES.items() if rgb not in taken))


def _is_proper(text, start):
    """A capital inside of a sentence that isn't all titles: a surname, a brand, a place."""
    if not text[start].isupper():
        return False
    if re.search(r'(?:[.!?:]\s*|^\W*)$', text[:start]):  # begins a sentence: the next word tells
        return bool(re.match(r'\w+ [A-Z]', text[start:])) and not _is_title(text, start)
    return not _is_title(text, start)


def _is_title(text, start):
    """Every other word of some length has a capital, behind the first one."""
    others = [match[0] for match in re.finditer(r'(?<!^)\b\w{4,}', text) if match.start() != start]
    return bool(others) and all(word[0].isupper() for word in others)


def _use(name, before, after, coloured):
    previous = before[-1].text.lower() if before else ''
    following = after[0] if after else None
    if following is not None and re.fullmatch('colou?r(ed|s)?|ones?', following.text.lower()):
        return 'adjective'
    head = _head(after, coloured)
    predicate = bool(before) and before[-1].pos == 'n' and head is None
    if name in words.THINGS:
        bearer = head if head is not None else previous if predicate else ''
        return 'adjective' if bearer in words.BEARERS else 'thing'
    if head is not None:
        return 'thing' if name in words.MIXED and head in words.THING_HEADS else 'adjective'
    if name not in words.MIXED and previous in words.DETERMINERS and _is_content(following):
        return 'adjective'  # 'the blue uniform', where uniform is taken for an adjective
    if name in words.MIXED and previous in words.BE and len(before) > 1:
        return 'adjective'  # 'how many are orange'
    if previous in words.BEFORE_NOUNS or not before:
        return 'thing' if name in words.MIXED and previous not in ('in', 'wearing', 'wears', 'wear') else 'noun'
    if name in words.MIXED and not predicate and not _is_coloured(before[-1], coloured):
        return 'adjective' if before[-1].pos == 'v' or previous in ('or', 'and') else 'thing'
    return 'adjective'


def _is_content(token):
    return token is not None and token.pos in ('n', 'a', 'v') and not token.text.endswith('ing')


def _is_coloured(token, spans):
    return any(start <= token.start < end for start, end in spans)


def _head(after: Sequence, coloured: Collection):
    """The noun that a colour before `after` describes, past further colours and adjectives; None without one."""
    for token in after:
        if token.pos == 'n' and not _is_coloured(token, coloured):
            return token.text.lower()
        if not (token.pos == 'a' or _is_coloured(token, coloured) or token.text.lower() in ('and', 'or', '&')):
            return None
    return None
