"""Named colours: every distance and neighbour of the golden files, and which words of a text are colours."""

import colorsys
import json
import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.colors import CSS4_COLORS

from evil_jax.counterfactual import colours

METRICS = {'paper': 'stoikou2023', 'ciede2000': 'ciede2000', 'rgb_euclid': 'rgb'}
# Of the data published with Sharma, Wu and Dalal (2005): L*, a*, b* twice, and their CIEDE2000.
SHARMA = [
    (50, 2.6772, -79.7751, 50, 0, -82.7485, 2.0425),
    (50, -1, 2, 50, 0, 0, 2.3669),
    (50, 2.49, -0.001, 50, -2.49, 0.0009, 7.1792),
    (50, 2.49, -0.001, 50, -2.49, 0.0011, 7.2195),
    (50, -0.001, 2.49, 50, 0.0011, -2.49, 4.7461),
    (50, 2.5, 0, 73, 25, -18, 27.1492),
    (60.2574, -34.0099, 36.2677, 60.4626, -34.1751, 39.4387, 1.2644),
    (22.7233, 20.0904, -46.694, 23.0331, 14.973, -42.5619, 2.0373),
    (90.9257, -0.5406, -0.9208, 88.6381, -0.8985, -0.7239, 1.5381),
    (2.0776, 0.0795, -1.135, 0.9033, -0.0636, -0.5514, 0.9082),
]


class Token(NamedTuple):
    text: str
    start: int
    end: int
    pos: str


def tagged(marked: str) -> tuple[list[Token], str]:
    """'the/f red_wine/n' to tokens and text; what has no mark is a function word."""
    tokens, text = [], ''
    for word in marked.split():
        form, _, pos = word.partition('/')
        form = form.replace('_', ' ')
        text += ' ' * bool(text)
        tokens.append(Token(form.rstrip('?.,'), len(text), len(text) + len(form.rstrip('?.,')), pos or 'f'))
        text += form
    return tokens, text


def used(marked: str) -> dict[str, str]:
    return {name: use for _, _, name, use in colours.mentions(*tagged(marked))}


def test_published_figures():
    assert round(colours.distance('violet', 'orchid', metric='stoikou2023'), 2) == 6.16
    assert round(colours.distance('violet', 'deepskyblue', metric='stoikou2023'), 2) == 207.88
    assert colours.neighbours('violet', metric='stoikou2023')[0] == 'orchid'
    assert colours.neighbours('violet', metric='stoikou2023', furthest=True)[0] == 'deepskyblue'
    assert colours.neighbours('violet', furthest=True)[0] == 'lime'


def test_every_golden_pair(shared):
    pairs = json.loads((shared / 'data/counterfactual/colour_pairs.json').read_text())['pairs']
    got = [{k: round(colours.distance(p['a'], p['b'], m), 4) for k, m in METRICS.items()} for p in pairs]
    assert got == [{k: p[k] for k in METRICS} for p in pairs]
    assert len(got) == 21


@pytest.mark.parametrize('metric', ['paper', 'ciede2000'])
@pytest.mark.parametrize('side', ['near', 'far'])
def test_every_golden_neighbour(shared, metric, side):
    golden = json.loads((shared / 'data/counterfactual/colour_neighbours.json').read_text())
    assert golden.keys() == colours.NAMES.keys()
    first = {rgb: name for name, rgb in reversed(colours.NAMES.items())}  # gray for grey, as neighbours() has it
    for name, row in golden.items():
        wanted = list(dict.fromkeys(first[colours.NAMES[other]] for other in row[f'{side}_{metric}']))
        ranked = colours.neighbours(name, metric=METRICS[metric], furthest=side == 'far')
        assert list(ranked[: len(wanted)]) == wanted, name
        assert len(ranked) == 138


@pytest.mark.parametrize('row', SHARMA)
def test_ciede2000_of_its_authors(row):
    one, two = np.array(row[:3]), np.array(row[3:6])
    assert colours._ciede2000(one, two) == pytest.approx(row[6], abs=5e-5)
    assert colours._ciede2000(two, one) == pytest.approx(row[6], abs=5e-5)


@pytest.mark.parametrize('metric', ['ciede2000', 'stoikou2023', 'rgb'])
def test_matrix_is_all_distances(metric):
    names = ['red', 'grey', 'gray', 'deepskyblue', 'black']
    got = colours.matrix(names, metric)
    assert got.shape == (5, 5) and got.dtype == np.float64
    assert got == pytest.approx(np.array([[colours.distance(a, b, metric) for b in names] for a in names]), abs=1e-9)
    assert got == pytest.approx(got.T, abs=1e-9) and got[1, 2] == 0 == np.diag(got).max()
    assert colours.matrix([], metric).shape == (0, 0)


def test_unscaled_metric_sees_black_at_one_distance_from_everything():
    far = colours.matrix(['black', *colours.NAMES], 'stoikou2023')[0]
    far = far[far > 0]
    assert len(far) == 147 and far.min() > 132 and far.max() < 140.1


def test_names_numbers_and_functions():
    assert colours.distance('Deep Sky Blue', (0, 191, 255)) == 0
    assert colours.distance('black', (3, 4, 0), 'rgb') == 5
    redness = lambda a, b: abs(a[0] - b[0])
    assert colours.distance('red', 'black', redness) == 255
    assert colours.neighbours('red', ['black', 'crimson', 'white'], redness) == ('white', 'crimson', 'black')
    assert colours.matrix(['red', 'black'], redness).tolist() == [[0, 255], [255, 0]]


@pytest.mark.parametrize('colour, message', [
    ('grean', "'green'"), ((0, 0, 256), '0 to 255'), ((0, 0), '0 to 255'), ((0.5, 0.1, 1.0), 'multiply by 255'),
    ((float('nan'), 0, 0), '0 to 255'), ('', 'colour'),
])  # fmt: skip
def test_what_is_no_colour(colour, message):
    with pytest.raises(ValueError, match=message):
        colours.distance('red', colour)


def test_unknown_metric_names_the_nearest():
    with pytest.raises(ValueError, match="'ciede2000'"):
        colours.distance('red', 'blue', 'ciede200')
    with pytest.raises(ValueError, match='rgb'):
        colours.matrix(['red'], 'lab')


def test_neighbours_collapse_duplicates_and_keep_what_was_asked_for():
    assert colours.neighbours('gray', ['grey', 'gray', 'black', 'silver']) == ('black', 'silver')[::-1]
    assert colours.neighbours('red', ['grey', 'gray', 'cyan', 'aqua']) == ('gray', 'aqua')
    assert colours.neighbours('red', ['grey', 'red']) == ('grey',)
    assert colours.neighbours('red', []) == ()


def test_ties_are_in_the_order_of_names():
    same = lambda a, b: 1.0
    assert colours.neighbours('red', ['white', 'black', 'blue'], same) == ('black', 'blue', 'white')
    assert colours.neighbours('red', ['white', 'black', 'blue'], same, furthest=True) == ('black', 'blue', 'white')


def test_spaced_names():
    assert colours.spaced('deepskyblue') == 'deep sky blue'
    assert colours.spaced('lightgoldenrodyellow') == 'light goldenrod yellow'
    assert colours.spaced('red') == 'red'
    assert all(colours.spaced(name).replace(' ', '') == name for name in colours.NAMES)
    # Every part of a name with blanks is a word, also of other names: none was cut in the wrong place.
    parts = Counter(part for name in colours.NAMES for part in colours.spaced(name).split())
    assert {p for p in parts if len(p) < 3} == set() and len(parts) < 110
    with pytest.raises(ValueError, match='skyblue'):
        colours.spaced('skyblu')


def test_names_are_those_of_css():
    assert len(colours.NAMES) == 148 and len(set(colours.NAMES.values())) == 139
    assert colours.NAMES['rebeccapurple'] == (102, 51, 153)
    assert set(colours.BASIC) <= colours.NAMES.keys() and len(colours.BASIC) == 11
    assert {n: tuple(bytes.fromhex(h[1:])) for n, h in CSS4_COLORS.items()} == colours.NAMES


def test_hue_order_is_greys_then_the_circle():
    order = colours.hue_order(['blue', 'white', 'navy', 'lime', 'red', 'gray', 'purple', 'black', 'yellow', 'green'])
    assert order == ['black', 'gray', 'white', 'red', 'yellow', 'green', 'lime', 'navy', 'blue', 'purple']
    every = colours.hue_order(colours.NAMES)
    assert sorted(every) == sorted(colours.NAMES)
    hues = [colorsys.rgb_to_hsv(*colours.NAMES[n])[0] for n in every[every.index('maroon') :]]
    assert np.diff([(h * 360 + 15) % 360 // 30 for h in hues]).min() >= 0


@pytest.mark.parametrize('marked, name, use', [
    ('What is on the red/a car/n ?', 'red', 'adjective'),
    ('Is the cat/n black/a ?', 'black', 'adjective'),
    ('How many red/a and blue/a chairs/n ?', 'blue', 'adjective'),
    ('Is the jet/n painted/v blue/a ?', 'blue', 'adjective'),
    ('How many boats/n are green/a ?', 'green', 'adjective'),
    ('Is the bus/n orange/n ?', 'orange', 'adjective'),
    ('Where is the orange/n cone/n ?', 'orange', 'adjective'),
    ('Is the cat/n orange/n and white/a ?', 'orange', 'adjective'),
    ('Is she wearing/v a salmon/n shirt/n ?', 'salmon', 'adjective'),
    ('Is the shirt/n salmon/n ?', 'salmon', 'adjective'),
    ('What is the silver/n car/n doing/v ?', 'silver', 'adjective'),
    ('A deep sky blue/a kite/n', 'deepskyblue', 'adjective'),
    ('Is the sky/n blue/a ?', 'blue', 'adjective'),
    ('Is the sky/n blue/a car/n old/a ?', 'skyblue', 'adjective'),
    ('Is it sky/n blue/a ?', 'skyblue', 'adjective'),
    ('A light-blue/a kite/n', 'lightblue', 'adjective'),
    ('Is it lime colored/a ?', 'lime', 'adjective'),
    ('How many balls/n are orange/n ?', 'orange', 'adjective'),
    ('Is it bigger/a than the blue/n one ?', 'blue', 'adjective'),
    ('What number/n is on the blue/n uniform/a ?', 'blue', 'adjective'),
    ('Who is in red/n ?', 'red', 'noun'),
    ('Who is the man/n in the white/n holding/v it ?', 'white', 'noun'),
    ('Is orange/n her colour/n ?', 'orange', 'thing'),
    ('Is the orange/n peeled/v ?', 'orange', 'thing'),
    ('How many bikers/n are wearing/v red/n ?', 'red', 'noun'),
    ('Is there any blue/n on it ?', 'blue', 'noun'),
    ('Is this an orange/n ?', 'orange', 'thing'),
    ('What type/n of orange/n is this hat/n ?', 'orange', 'thing'),
    ('Is there an orange/n slice/n ?', 'orange', 'thing'),
    ('Is there snow/n on the trees/n ?', 'snow', 'thing'),
    ('How many slices/n of tomato/n are on the pizza/n ?', 'tomato', 'thing'),
    ('Is this a salmon/n ?', 'salmon', 'thing'),
    ('Is the cake/n chocolate/n ?', 'chocolate', 'thing'),
    ('Did he win/v a gold/n medal/n ?', 'gold', 'thing'),
    ('Is this a black/a and white/a photo/n ?', 'black', 'protected'),
    ('Is the picture/n black/a and white/a ?', 'white', 'protected'),
    ('Is the traffic/n light/n green/a ?', 'lightgreen', 'protected'),
    ('Is the light/n green/a ?', 'lightgreen', 'protected'),
    ('Is the light/a green/a car/n old/a ?', 'lightgreen', 'adjective'),
    ('How many lights/n are red/a ?', 'red', 'protected'),
    ('Is there a red/a light/n ?', 'red', 'protected'),
    ('Is this a brown/a bear/n ?', 'brown', 'protected'),
    ('Is this red/a wine/n ?', 'red', 'protected'),
    ('Is it orange/n juice/n ?', 'orange', 'protected'),
    ('Does the red/a hat/n say/v so ?', 'red', 'protected'),
    ('Is there a black/a man/n ?', 'black', 'protected'),
    ('Who is the white/a old/a woman/n ?', 'white', 'protected'),
    ('Is the man/n white/a ?', 'white', 'protected'),
    ('Is this Gordon/n Brown/n ?', 'brown', 'protected'),
    ('Is he Mr/n Brown/n ?', 'brown', 'protected'),
    ('Are these red_peppers/n ?', 'red', 'protected'),
    ('Whose snow/n pants/n are these ?', 'snow', 'protected'),
])  # fmt: skip
def test_how_a_colour_is_used(marked, name, use):
    assert used(marked)[name] == use


@pytest.mark.parametrize('marked', [
    'Is she red-haired/a ?', "What is blue's/n name/n ?", 'Who is bored/a ?', 'What does the word/n "red"/a mean/v ?',
    '', 'Is there smoke/n ?', 'Where is the greenhouse/n ?',
])  # fmt: skip
def test_no_colour_at_all(marked):
    assert colours.mentions(*tagged(marked)) == []


def test_find_gives_what_may_be_exchanged():
    tokens, text = tagged('Is the white/a woman/n with an orange/n in the dark_blue/a shirt/n ?')
    assert colours.find(tokens, text) == [(41, 50, 'darkblue')]
    assert text[41:50] == 'dark blue'


def test_colour_of_a_title_is_no_surname():
    assert used('What Does The Red/a Sign/n Say/v ?') == {'red': 'adjective'}
    assert used('Red/a or blue/a shirt/n ?') == {'red': 'adjective', 'blue': 'adjective'}
    assert used('Red/n Sox/n are what team/n in this game/n ?') == {'red': 'protected'}


def test_uses_count_adjectives_only():
    texts = ['the red/a car/n', 'the red/a bus/n', 'in red/n', 'the snow/n', 'an orange/n', 'no word/n of it']
    plain = {re.sub('/[a-z]', '', text): text for text in texts}
    asked = []

    def tagger(text):
        asked.append(text)
        return tagged(plain[text])[0]

    assert colours.uses(plain, tagger) == Counter(red=2)
    assert len(asked) == 5  # a text without the name of a colour isn't tagged


def test_split_into_common_and_uncommon():
    common, uncommon = colours.split(Counter(red=9, gray=5, tan=2), 5)
    assert common == ('gray', 'red')
    assert 'tan' in uncommon and 'azure' in uncommon
    assert 'grey' not in uncommon and len(uncommon) == 145
    assert colours.split(Counter(), 5)[0] == tuple(sorted(colours.BASIC))
