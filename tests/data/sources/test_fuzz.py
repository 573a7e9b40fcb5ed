"""Damaged annotation files: a reader yields sound examples or raises one ValueError that names file and record."""

import copy
import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evil_jax.data.builders import _base, _world
from evil_jax.data.sources import esnlive, vcr, visual_genome, vqav2, vqax
from evil_jax.records import Example

TEN = [{'answer': 'red', 'answer_id': n, 'answer_confidence': 'yes'} for n in range(10)]
VCR_PICTURE = 'film/a_1@0'


def _csv(rows):
    file = io.StringIO(newline='')
    csv.writer(file, lineterminator='\n').writerows(row if isinstance(row, list) else [row] for row in rows)
    return file.getvalue().encode('utf-8', 'surrogatepass')


def _esnlive_csv():
    header = ['', 'pairID', 'Flickr30kID', 'hypothesis', 'gold_label', 'explanation']
    return [header] + [
        [n, f'44{n}.jpg#2r1c', f'44{n}.jpg', 'A man, alone.', 'neutral', 'He "is" not.\nZoë is.'] for n in range(3)
    ]


def _esnlive_json():
    return [
        {'question_id': f'44{n}.jpg#2r1c', 'img_id': f'flickr30k_00000000{n}.npz', 'sent': 'A man.', 'label': 'neutral',
         'explanation': ['No.', 'Zoë is.']}
        for n in range(3)
    ]  # fmt: skip


def _questions():
    rows = [{'question_id': n, 'image_id': n, 'question': 'Zoë?'} for n in range(3)]
    return {'data_subtype': 'val2014', 'questions': rows}


def _annotations():
    rows = [
        {'question_id': n, 'image_id': n, 'answers': TEN, 'answer_type': 'other', 'question_type': 'what',
         'multiple_choice_answer': 'red'}
        for n in range(3)
    ]  # fmt: skip
    return {'annotations': rows}


def _nlx():
    row = {'question': 'What?', 'answers': TEN, 'image_id': '4', 'image_name': 'COCO_val2014_000000000004.jpg',
           'explanation': ['it is', 'so']}  # fmt: skip
    return {'1': row, '2': copy.deepcopy(row)}


def _lxmert():
    row = {'img_id': 'COCO_val2014_000000000004', 'sent': 'What?', 'label': {'red': 0.9, 'blue': 1},
           'explanation': ['so'], 'answer_type': 'other'}  # fmt: skip
    return [{'question_id': n} | copy.deepcopy(row) for n in range(3)]


def _vcr():
    row = {'movie': 'm', 'objects': ['person', 'dog'], 'img_fn': f'{VCR_PICTURE}.jpg',
           'metadata_fn': f'{VCR_PICTURE}.json', 'question': ['Is', [0, 1], '?'],
           'answer_choices': [['a'], [[0], 'is'], ['c'], ['d']], 'answer_label': 1,
           'rationale_choices': [['a'], [[0], 'is'], ['c'], [[1], 'Zoë']], 'rationale_label': 3}  # fmt: skip
    return [{'annot_id': f'train-{n}'} | copy.deepcopy(row) for n in range(3)]


def _metadata():
    return {'boxes': [[0, 1, 2, 3, 0.9], [4, 5, 6, 7.5, 1]], 'names': ['person', 'dog'], 'segms': [[], []],
            'width': 9, 'height': 8}  # fmt: skip


def _vcr_eug():
    row = {'img_id': 'vcr_train_a_1@0.npz', 'raw_img_id': f'{VCR_PICTURE}.jpg', 'movie': 'm',
           'objects': ['person', 'dog'], 'sent': 'Is <|det1|> <|det2|>?', 'answer_choices': ['a', '<|det1|>', 'c', 'd'],
           'label': 1, 'explanation': '<|det2|> Zoë'}  # fmt: skip
    return [{'question_id': f'train-{n}'} | copy.deepcopy(row) for n in range(3)]


def _visual_genome():
    row = {'question': 'Zoë?', 'answer': 'On the desk.', 'q_objects': [], 'a_objects': []}
    return [{'id': n, 'qas': [{'qa_id': 2 * n + m, 'image_id': n} | row for m in range(2)]} for n in range(3)]


def _scene_graphs():
    thing = {'object_id': 1, 'names': ['Zoë'], 'synsets': ['a.n.01'], 'attributes': ['x']} | dict(zip('xywh', range(4)))
    related = {'subject_id': 1, 'object_id': 2, 'predicate': 'ON', 'synsets': []}
    things = [thing, thing | {'object_id': 2}]
    return [copy.deepcopy({'image_id': n, 'objects': things, 'relationships': [related]}) for n in range(3)]


def _with_graphs(folder):
    graphs = visual_genome.scene_graphs(folder / 's.json')
    for example in visual_genome.read(folder / 'q.json'):
        if example.image_id in graphs:
            example.extra['things'] = [list(thing.names) for thing in graphs[example.image_id].things]
        yield example


def _scenes():
    return [
        {'image_id': f'44{n}', 'scene': {'size': [9, 9], 'things': [{'shape': 'cube', 'at': [1.5, 2]}]}}
        for n in range(3)
    ]


def _truth():
    return [{'id': f'44{n}.jpg#2r1c', 'objects': [0], 'words': ['man'], 'label': 'neutral'} for n in range(3)]


def _world_read(folder):
    files = {'scenes': folder / 'scenes.jsonl', 'truth': folder / 'truth.jsonl'}
    return _world.merge(esnlive.read(folder / 'esnlive.csv'), files)


# form -> (content of its files, reader); a list in a .jsonl or .csv file is its rows.
FORMS: dict[str, tuple[dict[str, object], Callable[[object], Iterator[Example]]]] = {
    'esnlive csv': ({'e.csv': _esnlive_csv()}, lambda f: esnlive.read(f / 'e.csv')),
    'esnlive csv original': ({'e.csv': _esnlive_csv()}, lambda f: esnlive.read(f / 'e.csv', 'original')),
    'esnlive json': ({'e.json': _esnlive_json()}, lambda f: esnlive.read(f / 'e.json')),
    'vqa v2': (
        {'q.json': _questions(), 'a.json': _annotations(), 'e.json': {'0': ['so'], '1': ['a', 'b']}},
        lambda f: vqav2.read(f / 'q.json', f / 'a.json', f / 'e.json'),
    ),
    'vqax original': (
        {'e.json': {'0': ['so'], '1': ['a', 'b']}, 'q.json': _questions(), 'a.json': _annotations()},
        lambda f: vqax.read(f / 'e.json', [f / 'q.json'], [f / 'a.json']),
    ),
    'vqax nlx': ({'n.json': _nlx()}, lambda f: vqax.read(f / 'n.json')),
    'vqax lxmert': ({'l.json': _lxmert()}, lambda f: vqax.read(f / 'l.json')),
    'vcr': (
        {'train.jsonl': _vcr(), f'{VCR_PICTURE}.json': _metadata()},
        lambda f: vcr.read(f / 'train.jsonl', metadata=f),
    ),
    'vcr eug': (
        {'vcr_train.json': _vcr_eug(), f'{VCR_PICTURE}.json': _metadata()},
        lambda f: vcr.read(f / 'vcr_train.json', metadata=f),
    ),
    'visual genome': ({'q.json': _visual_genome(), 's.json': _scene_graphs()}, _with_graphs),
    'world': ({'esnlive.csv': _esnlive_csv(), 'scenes.jsonl': _scenes(), 'truth.jsonl': _truth()}, _world_read),
}  # fmt: skip


def _bytes(name, content) -> bytes:
    if name.endswith('.csv'):
        return _csv(content)
    if name.endswith('.jsonl'):
        return ''.join(json.dumps(row) + '\n' for row in content).encode()
    return json.dumps(content).encode()


def _sound(examples):
    """What every later step takes for granted of examples."""
    assert len({e.id for e in examples}) == len(examples)
    for example in examples:
        assert example.id.strip()
        assert example.image_id.strip()
        assert example.text.strip()
        json.dumps(example.to_json(), ensure_ascii=False, allow_nan=False).encode()
        assert Example.from_json(example.to_json()) == example
        _base.features().encode_example(_base.encode(example))
        assert all(text.strip() for text in example.explanations)
        assert all(0 <= score <= 1 for score in (example.answers or {}).values())
        if example.choices is not None:
            assert len(example.choices) == 4
            assert example.label in (None, 0, 1, 2, 3)
            for number in re.findall(r'<\|det(\d+)\|>', ' '.join([example.text, *example.choices])):
                assert 1 <= int(number) <= len(example.objects)
            if 'boxes' in example.extra:
                assert [len(box) for box in example.extra['boxes']] == [4] * len(example.objects)


def _check(folder, form, files: dict[str, bytes], wants_record=False):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        examples = list(FORMS[form][1](folder))
    except ValueError as error:
        message = str(error)
        assert str(folder) in message, message
        assert any(name in message for name in files), message
        assert len(message) < 1000, message
        if wants_record:
            assert re.search(r':\d+|record \d|question |row of|@0\.json', message.replace(str(folder), '')), message
        return message
    _sound(examples)
    return None


def _paths(value, path=()):
    """The places of all values inside a document, without the document itself."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from _paths(item, (*path, key))


def _put(document, path, change):
    """`document` with `change(container, key)` applied at a path."""
    document = container = copy.deepcopy(document)
    for key in path[:-1]:
        container = container[key]
    change(container, path[-1])
    return document


WEIRD = [
    None, True, False, 0, -1, 4, 10**30, 10**400, 1.5, float('nan'), float('inf'), -float('inf'), '', ' ', 'x', '1',
    '\ud800', 'a\udfffb', '\0', '\r\n', 'neutral', '.jpg', '../x', '/', 'a' * 200_000, '<|det99999999999|>', '<|det0|>',
    [], {}, [[]], [None], [0], [[0]], ['x'], {'x': 1}, {'\ud800': 1}, [[[[['x']]]]], ['x'] * 10, [0.5] * 5,
]  # fmt: skip
DEEP = '@deep@'  # stands for lists nested 100,000 deep, which json.dumps cannot write
values = st.sampled_from([*WEIRD, DEEP]) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
JUNK = [
    b'\0', b'\xff', b'"', b'\\', b'\n', b'\r', b'\t', b',', b'{', b'}', b'[', b']', b'NaN', b'-', b'\\ud800', b'\\u',
    b'9' * 5000, b'1e999', b'[' * 100_000, b'{"a":' * 100_000, b'\x1f\x8b', b'\xef\xbb\xbf', b'"' * 999, b'<|det3|>',
]  # fmt: skip
FUZZ = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
forms = pytest.mark.parametrize('form', FORMS)


def _whole(form):
    return {name: _bytes(name, content) for name, content in FORMS[form][0].items()}


@forms
def test_sound_files_are_read(form, tmp_path):
    assert _check(tmp_path, form, _whole(form)) is None


@forms
def test_any_value_at_any_place(form, tmp_path_factory):
    folder = tmp_path_factory.mktemp('fuzz')
    places = [(name, path) for name, content in FORMS[form][0].items() for path in _paths(content)]

    @FUZZ
    @given(st.sampled_from(places), values, st.sampled_from(['replace', 'replace', 'remove', 'add', 'twice']))
    def fuzz(place, value, how):
        name, path = place
        content = FORMS[form][0][name]

        def change(container, key):
            if how == 'replace':
                container[key] = value
            elif how == 'remove':
                del container[key]
            elif isinstance(container, list):
                container.insert(key, copy.deepcopy(container[key]) if how == 'twice' else value)
            else:
                container[f'{key}\ud800' if how == 'twice' else 'new'] = value

        data = _bytes(name, _put(content, path, change)).replace(b'"@deep@"', b'[' * 100_000 + b']' * 100_000)
        is_record = len(path) > 1 and value != DEEP and not (name.endswith('.csv') and '\\ud' in ascii(value))
        _check(folder, form, _whole(form) | {name: data}, wants_record=is_record)

    fuzz()


@forms
def test_any_damage_to_the_bytes(form, tmp_path_factory):
    folder = tmp_path_factory.mktemp('fuzz')
    whole = _whole(form)
    where = st.floats(0, 1, exclude_max=True)

    @FUZZ
    @given(
        st.sampled_from(list(whole)),
        st.lists(st.tuples(where, st.integers(0, 7)), max_size=3),
        st.lists(st.tuples(where, st.sampled_from(JUNK)), max_size=2),
        st.none() | where,
        st.booleans(),
    )
    def fuzz(name, flips, inserts, cut, packed):
        data = gzip.compress(whole[name]) if packed else whole[name]
        for at, junk in inserts:
            at = int(at * len(data))
            data = data[:at] + junk + data[at:]
        data = bytearray(data)
        for at, bit in flips:
            data[int(at * len(data))] ^= 1 << bit
        if cut is not None:
            del data[int(cut * len(data)) :]
        _check(folder, form, whole | {name: bytes(data)})

    fuzz()
