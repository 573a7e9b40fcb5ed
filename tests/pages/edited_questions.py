"""Edits of questions with answers, and the document of counterfactual.html that they make."""

import functools

import numpy as np
import PIL.Image

from evil_jax.counterfactual import consistency, coverage, judged, mentions, score, views

_NOUNS = {
    'dog': 'dog.n.01', 'cat': 'cat.n.01', 'horse': 'horse.n.01', 'bus': 'bus.n.01', 'car': 'car.n.01',
    'kitchen': 'kitchen.n.01', 'bedroom': 'bedroom.n.01', 'shirt': 'shirt.n.01', 'hat': 'hat.n.01',
}  # fmt: skip
_COLOURS = ('red', 'green', 'blue', 'grey', 'white', 'black', 'yellow')
_CHANGED = {'grey': 0.01, 'kitchen': 0.97, 'bedroom': 0.97}
_FAR = ('lime', 'midnight blue', 'deep sky blue', 'gold', 'crimson')
# What the tree of kinds would be: 'synset', 'parent', 'name' and the nouns below.
_KINDS = (
    ('whole.n.02', '', 'whole', tuple(_NOUNS)),
    ('animal.n.01', 'whole.n.02', 'animal', ('dog', 'cat', 'horse')),
    ('carnivore.n.01', 'animal.n.01', 'carnivore', ('dog', 'cat')),
    ('vehicle.n.01', 'whole.n.02', 'vehicle', ('bus', 'car')),
    ('room.n.01', 'whole.n.02', 'room', ('kitchen', 'bedroom')),
    ('clothing.n.01', 'whole.n.02', 'clothing', ('shirt', 'hat')),
)


def rows(n=3000, seed=0):
    """Rows of `Judged`: a model that ignores grey, keeps its answer about animals, and is confused by rooms."""
    generator = np.random.default_rng(seed)
    pick = lambda words: str(generator.choice(list(words)))
    for i in range(n):
        family = pick(('colour_max_common', 'colour_min_common', 'sibling', 'hypernym', 'delete'))
        colour = family.startswith('colour')
        source = pick(_COLOURS) if colour else pick(_NOUNS)
        target = '' if family == 'delete' else pick(_FAR) if colour else pick(word for word in _NOUNS if word != source)
        far = float(generator.uniform(40, 110) if 'max' in family else generator.uniform(5, 40)) if colour else np.nan
        p = _CHANGED.get(source, 0.02 if family == 'hypernym' else 0.4)
        p = min(1.0, p + far / 300) if colour and source != 'grey' else p
        kept, right = generator.random() > p, generator.random() < 0.7
        answer = pick(('yes', 'no', 'red', '2', 'outside'))
        star = answer if kept else pick(other for other in ('yes', 'no', 'blue', 'unknown') if other != answer)
        turn = 'right->wrong' if right else pick(('wrong->right', 'wrong->other'))
        expectation = {'hypernym': 'INV', 'sibling': 'CHANGE'}.get(family, 'FREE')
        yield dict(
            family=family, example=f'q{i}', image=f'image{generator.integers(n // 3)}', offset=i, source=source,
            target=target, source_synset=_NOUNS.get(source, ''), asks=pick(('colour', 'yes/no', 'where')),
            distance=far, answer=answer, answer_star=star, gold=answer if right else 'red', right=float(right),
            right_star=float(right if kept else turn == 'wrong->right'), kept=kept, uncertain=star == 'unknown',
            transition=('kept right' if right else 'kept wrong') if kept else turn, expectation=expectation,
            shift=float(generator.uniform(0, 0.2) if kept else generator.uniform(0.5, 1)),
            met={'INV': int(kept), 'CHANGE': int(not kept)}.get(expectation, -1),
            expected_right=int(not kept) if family == 'sibling' and i % 2 else -1,
        )  # fmt: skip


@functools.cache
def table(n=3000):
    found = list(rows(n))
    beside = [
        dict(family=family, example=row['example'], image=row['image'], kept=i % 3 > 0 or family in ('noop', 'repeat'))
        for i, row in enumerate(found)
        for family in ('noop', 'random_noun', 'random_adjective', 'blank', 'repeat')
    ]
    return judged.of_rows(found, signature='accuracy:official', baselines=judged.of_rows(beside))


def _kinds(found, family):
    source = found.texts('source')
    here = found.where(family=family)
    out = []
    for synset, parent, name, words in _KINDS:
        mine = here & np.isin(source, words)
        out.append(
            {'synset': synset, 'parent': parent, 'name': name} | views.rates.of(~found.kept[mine], found.image[mine])
        )
    return [row for row in out if row['n']]


# Family, word, kind, what is done to it.
_RULES = (
    ('colour_max_common', 'grey', 'STABLE', 'is replaced by distant colours on average'),
    ('colour_min_common', 'grey', 'STABLE', 'is replaced by near colours on average'),
    ('delete', 'kitchen', 'SENSITIVE', 'is deleted'),
    ('hypernym', 'kitchen', 'SENSITIVE', 'is replaced by more general words on average'),
)


def _rule(found, family, source, kind, done):
    rows = np.flatnonzero(found.where(family=family) & ((found.texts('source') == source) | (source == '')))
    holds = rows[found.kept[rows] == (kind == 'STABLE')]
    share = views.rates.of(np.isin(rows, holds), found.image[rows])
    k, n, (low, high) = share['k'], share['n'], share['ci95']
    outcome = 'is kept' if kind == 'STABLE' else 'changes'
    unwarranted = family == 'hypernym' and kind == 'SENSITIVE'
    return {
        'family': family, 'kind': kind, 'level': 'source', 'source': source, 'members': [], 'k': k, 'n': n,
        'outcome': 'unwarranted' if unwarranted else 'kept' if kind == 'STABLE' else 'changed', 'n_effective': n - 2.5,
        'questions': n, 'images': share['images'], 'rate': k / n, 'low': low, 'high': high, 'p': 0.0001, 'q': 0.0053,
        'p_other': 0.0001, 'rate_other': 0.363, 'discovery': [k // 2, n // 2], 'confirmation': [k - k // 2, n - n // 2],
        'confirmed': True, 'targets': 5, 'heterogeneity': 0.66, 'any_target': False,
        'examples': [found.id(row) for row in holds[:3]],
        'sentence': f'Where {source or "a noun"} {done}, the answer {outcome}: {k} of {n}, 95 % interval ...',
    }  # fmt: skip


class _Words:
    """Stands in for a `mentions.Finder`: words as they are written."""

    def named(self, text, words):
        where = lambda wanted: [(i, i + 1) for i, word in enumerate(text) if word in wanted]
        return where(words.added), where(words.removed)


def _pairs(found):
    for row in range(len(found)):
        source, target = (found.names[c][getattr(found, c)[row]] for c in ('source', 'target'))
        said = f'because there is a {source} here'
        after = said if found.kept[row] or row % 3 == 0 else f'because there is a {target} over there'
        words = mentions.Terms('n', (source,), (target,) if target else (), ())
        family = found.names['family'][found.family[row]]
        yield consistency.Pair(
            found.id(row), family, str(found.image[row]), words, bool(found.kept[row]), said, after,
            float(found.shift[row]), 'INV' if family == 'hypernym' else '',
        )  # fmt: skip


def record(found, row, **more):
    """A record of the browser."""
    name = lambda column: found.names[column][getattr(found, column)[row]]
    source, target = name('source'), name('target')
    known = found.met[row] >= 0
    return {
        'id': found.id(row), 'example_id': name('example'), 'image_id': name('image'), 'family': name('family'),
        'original': f'Is the {source} old?', 'text': f'Is the {target} old?', 'span': (7, 7 + len(source)),
        'target_span': (7, 7 + len(target)), 'source': source, 'target': target, 'sense_rank': 1, 'sense_count': 4,
        'distance': None if np.isnan(found.distance[row]) else float(found.distance[row]), 'quality': 0.75,
        'answer': name('answer').title(), 'answer_star': name('answer_star').title(),
        'compared': [name('answer'), name('answer_star')], 'gold': [name('gold')],
        'scores': {name('answer'): 0.8, 'other': 0.15}, 'scores_star': {name('answer_star'): 0.6},
        'right': float(found.right[row]), 'right_star': float(found.right_star[row]), 'kept': bool(found.kept[row]),
        'transition': name('transition'), 'expectation': name('expectation'),
        'met': bool(found.met[row]) if known else None, 'why': 'the scene says so' if known else '',
        'explanation': f'there is a {source}', 'explanation_star': f'there is a {target}',
    } | more  # fmt: skip


def pictures(folder, n=3):
    """Small files with something in them."""
    paths = []
    for i in range(n):
        down, across = np.mgrid[:120, :160]
        pixels = np.stack([across + 60, down * 2, 255 - across - 20 * i], axis=2).clip(0, 255).astype(np.uint8)
        paths.append(folder / f'secret_{i}.png')
        PIL.Image.fromarray(pixels).save(paths[-1])
    return paths


@functools.cache
def _parts(n):
    found = table(n)
    return {
        'summary': score.summary(found, resamples=100),
        'rules': {
            'rules': [_rule(found, *about) for about in _RULES],
            'unconfirmed': [_rule(found, 'sibling', 'hat', 'STABLE', 'is replaced')],
            'families': [_rule(found, 'hypernym', '', 'STABLE', 'is replaced by a more general word')],
            'tested': {'sibling STABLE': 90, 'hypernym STABLE': 7},
            'settings': {'tau': 0.8, 'min_questions': 20, 'min_images': 10, 'alpha': 0.05, 'halves': True},
        },
        'colours': views.colour_map(found, support=5),
        'distance': views.by_distance(found, resamples=100),
        'trees': {family: _kinds(found, family) for family in ('sibling', 'delete')},
        'transitions': views.transitions(found),
        'explanations': consistency.measure(_pairs(found), _Words(), resamples=100),
    }


def document(folder=None, n=3000, examples=60, **more):
    """A whole document; with a folder, with pictures."""
    found, parts = table(n), _parts(n)
    counts = coverage.Coverage(['sibling', 'delete'])
    for i in range(100):
        counts.add('sibling', i % 10 > 0, 'no noun')
        counts.add('delete', i % 4 > 0, 'protected')
    files = pictures(folder) if folder else []
    told = [name for rule in parts['rules']['rules'] for name in rule['examples']]
    chosen = views.sample(found, examples, first=told)
    shown = [
        record(found, row, picture=files[i % len(files)] if files and i % 7 else None) for i, row in enumerate(chosen)
    ]
    return parts | {
        'title': 'planted', 'facts': {'model': 'vilt', 'data': 'vqa v2, dev'}, 'human': consistency.HUMAN,
        'coverage': counts.table(), 'metric': 'ciede2000', 'oracle': 'the scene graph of the picture', 'records': shown,
        'settings': {'sense': 'lexicon', 'seed': 0}, 'files': {'edits.jsonl': 'all edits', 'rules.json': 'all rules'},
    } | more  # fmt: skip
