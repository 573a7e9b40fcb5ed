"""Questions of the form shapes_vqa: wording, sampling for a wanted answer, and ten simulated annotators."""

import re

import numpy as np

from evil_jax.data.shapes import language_ve
from evil_jax.data.shapes.queries import CONTRADICTION, ENTAILMENT, Noun, Query, judge, unique_shapes
from evil_jax.data.shapes.scene import COLOURS, RELATIONS, SHAPES, SIZES, Scene

ANNOTATORS = 10
# (kind, answer): share; None where the world's symmetry already balances the answers.
SHARES = {
    ('colour', None): 0.25, ('shape', None): 0.20, ('size', None): 0.10,
    ('count', '1'): 0.05, ('count', '2'): 0.05, ('count', '3'): 0.02,
    ('exists', 'yes'): 0.09, ('exists', 'no'): 0.09, ('relation', 'yes'): 0.05, ('relation', 'no'): 0.05,
    ('what', None): 0.05,
}  # fmt: skip
_GROUPS = {  # question type, answer type
    'colour': ('what colour is the', 'other'), 'shape': ('what shape is the', 'other'),
    'size': ('what size is the', 'other'), 'count': ('how many', 'number'), 'exists': ('is there a', 'yes/no'),
    'relation': ('is the', 'yes/no'), 'what': ('what is', 'other'),
}  # fmt: skip

_C, _S, _R = language_ve.C, language_ve.S, language_ve.R
_PATTERNS = {
    'colour': re.compile(f'what colour is the {_S}'),
    'shape': re.compile(f'what shape is the {_C} object'),
    'size': re.compile(f'what size is the {_S}'),
    'count': re.compile(f'how many {_S}s can be seen'),
    'exists': re.compile(f'is there a {_C} {_S}'),
    'relation': re.compile(f'is the {language_ve.PAIR}'),
    'what': re.compile(f'what is {_R} the {_C} {_S}'),
}
# How a careless annotator may say the same.
_SYNONYMS = {
    'red': ('dark red', 'scarlet'), 'green': ('dark green',), 'blue': ('dark blue', 'navy'),
    'yellow': ('gold', 'light yellow'), 'purple': ('violet',), 'pink': ('light red', 'magenta'),
    'circle': ('round', 'disc'), 'square': ('box', 'rectangle'), 'triangle': ('triangular', 'pyramid'),
    'star': ('star shape',), 'small': ('little', 'tiny'), 'large': ('big',), 'yes': ('yeah', 'it is'),
    'no': ('nope', 'none'), '1': ('one', 'single'), '2': ('two', 'pair'), '3': ('three',),
}  # fmt: skip
_ALIKE = (COLOURS, SHAPES, SIZES, ('yes', 'no'), ('1', '2', '3', '4'))


def parse(text: str) -> Query | None:
    """What a question asks, None if it is not of this language. Case and the final mark do not matter."""
    text = ' '.join(text.lower().split()).rstrip('?. ')
    for kind, form in _PATTERNS.items():
        if match := form.fullmatch(text):
            return language_ve.query_of(kind, match.groupdict(), asks=True)
    return None


def phrase(query: Query) -> str:
    """The question that asks `query`."""
    (shape, colour, *_), value, other = query.noun, query.value, query.other or Noun()
    return {
        'colour': f'What colour is the {shape}?',
        'shape': f'What shape is the {colour} object?',
        'size': f'What size is the {shape}?',
        'count': f'How many {shape}s can be seen?',
        'exists': f'Is there a {colour} {shape}?',
        'relation': f'Is the {colour} {shape} {value} the {other.colour} {other.shape}?',
        'what': f'What is {value} the {colour} {shape}?',
    }[query.kind]


def groups(query: Query) -> tuple[str, str]:
    """VQA's question type and answer type."""
    return _GROUPS[query.kind]


def sample(scene: Scene, kind: str, answer: str | None, rng: np.random.Generator) -> Query | None:
    """A random question of a kind with that answer (None: any); None where the scene has none."""
    if kind in ('exists', 'relation'):
        label = ENTAILMENT if answer == 'yes' else CONTRADICTION
        query = language_ve.sample(scene, kind, label, rng)
        return query and query._replace(asks=True)
    if kind in ('colour', 'size'):
        asked = [Noun(scene['things'][i]['shape']) for i in unique_shapes(scene)]
    elif kind == 'shape':
        asked = [Noun(None, colour) for colour in COLOURS]
    elif kind == 'count':
        asked = [Noun(shape) for shape in SHAPES]
    else:
        asked = [Noun(t['shape'], t['colour']) for t in scene['things'] if t['colour'] in COLOURS]
    values = RELATIONS if kind == 'what' else (None,)
    found = [
        query
        for noun in asked
        for value in values
        if _fits(scene, query := Query(kind, noun, value, asks=True), answer)
    ]
    return found[int(rng.integers(len(found)))] if found else None


def _fits(scene, query, answer):
    found = judge(scene, query).answer
    return found is not None and answer in (None, found)


def annotate(answer: str, rng: np.random.Generator) -> list[str]:
    """Ten answers of people: six to ten (mostly eight or more) say `answer`, others use a synonym or are mistaken."""
    right = int(rng.choice((6, 7, 8, 9, 10), p=(0.05, 0.10, 0.20, 0.30, 0.35)))
    said = [answer] * right
    while len(said) < ANNOTATORS:
        said.append(_other_word(answer, rng) if rng.random() < 0.6 else _mistake(answer, rng))
    return [said[i] for i in rng.permutation(ANNOTATORS)]


def _other_word(answer, rng):
    if answer in _SYNONYMS:
        words = _SYNONYMS[answer]
    else:
        words = (answer.split()[-1], f'the {answer}')  # 'red circle'
    return words[int(rng.integers(len(words)))]


def _mistake(answer, rng):
    def wrong(word):
        others = [w for w in next(words for words in _ALIKE if word in words) if w != word]
        return others[int(rng.integers(len(others)))]

    *front, last = answer.split()
    return ' '.join([*front, wrong(last)] if rng.random() < 0.5 or not front else [*map(wrong, front), last])
