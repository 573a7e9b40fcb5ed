"""Visual Genome: questions with one answer, scene graphs, and lists that are read element by element."""

import collections
import gzip
import json
import tracemalloc

import pytest
from written import write

from evil_jax.data import references
from evil_jax.data.sources import _elements, visual_genome


def asked(qa_id=7, **changes):
    row = {'qa_id': qa_id, 'image_id': 1, 'question': 'What color is the clock?', 'answer': 'Green.'}
    return row | {'q_objects': [], 'a_objects': []} | changes


def thing(number=5, **changes):
    return {
        'object_id': number,
        'names': ['clock'],
        'synsets': ['clock.n.01'],
        'x': 1,
        'y': 2,
        'w': 3,
        'h': 4,
    } | changes


def graph(**changes):
    related = {'relationship_id': 1, 'subject_id': 5, 'predicate': 'ON', 'object_id': 6, 'synsets': ['along.r.01']}
    things = [thing(5, attributes=['Green', 'tall']), thing(6, names=['wall', 'brick wall'], synsets=[])]
    return {'image_id': 1, 'objects': things, 'relationships': [related]} | changes


# --- questions ---


def test_an_answer_is_normalised_and_kept(tmp_path):
    rows = [asked(1), asked(2, answer='On the desk. '), asked(3, answer='Two.'), asked(4, answer='A.')]
    found = list(visual_genome.read(write(tmp_path / 'q.json', [{'id': 1, 'qas': rows}, {'id': 2, 'qas': []}])))
    assert [e.answers for e in found] == [{'green': 1.0}, {'on desk': 1.0}, {'2': 1.0}, {'A.': 1.0}]
    assert [e.extra['answer'] for e in found] == ['Green.', 'On the desk.', 'Two.', 'A.']
    assert (found[0].id, found[0].image_id, found[0].text) == ('1', '1', 'What color is the clock?')
    assert found[0].annotations is None and found[0].answer_type is None


def test_references_know_the_file(tmp_path):
    path = write(tmp_path / 'q.json', [{'id': 1, 'qas': [asked(1), asked(2)]}])
    assert references.read([path]) == list(visual_genome.read(path))
    with pytest.raises(ValueError, match=r'q\.json: holds no examples'):
        references.read([write(tmp_path / 'q.json', [{'id': 1, 'qas': []}])])


BAD_QUESTIONS = {
    'no list': ({'id': 1}, r'q\.json: wanted a JSON list'),
    'no object': ([3], r'q\.json: record 1 is 3, wanted object'),
    'no picture': ([{'qas': []}], r"q\.json: record 1: has no 'id', only qas"),
    'no questions': ([{'id': 1, 'qas': []}, {'id': 2}], r"q\.json: record 2: has no 'qas', only id"),
    'question': ([{'id': 1, 'qas': [asked(), 'x']}], r"record 1: question 2 of its list is 'x', wanted object"),
    'no id': ([{'id': 1, 'qas': [{'answer': 'x'}]}], r"record 1: question 1 of its list: has no 'qa_id', only answer"),
    'id': ([{'id': 1, 'qas': [asked(True)]}], 'qa_id is True, wanted int'),
    'twice': ([{'id': 1, 'qas': [asked(7), asked(7)]}], r'q\.json: question 7: the question id appears twice'),
    'text': ([{'id': 1, 'qas': [asked(question=4)]}], r'q\.json: question 7: question is 4, wanted text'),
    'empty': ([{'id': 1, 'qas': [asked(answer=' ')]}], r'q\.json: question 7: answer is empty'),
    'other': ([{'id': 2, 'qas': [asked()]}], r'q\.json: question 7: is about picture 1, in the list of picture 2'),
}


@pytest.mark.parametrize(('document', 'message'), BAD_QUESTIONS.values(), ids=BAD_QUESTIONS)
def test_malformed_questions_are_named(tmp_path, document, message):
    with pytest.raises(ValueError, match=message):
        list(visual_genome.read(write(tmp_path / 'q.json', document)))


def test_the_3393_real_questions(shared):
    path = shared / 'data' / 'counterfactual' / 'vg_samples' / 'question_answers.json_samples.json'
    found = references.read([path])
    assert len(found) == len({e.id for e in found}) == 3_393
    assert len({e.image_id for e in found}) == 50
    answers = collections.Counter(next(iter(e.answers)) for e in found)
    assert answers.most_common(3) == [('white', 194), ('black', 119), ('2', 100)]
    assert all(e.extra['answer'].strip() for e in found)


# --- scene graphs ---


def test_a_scene_graph(tmp_path):
    (found,) = visual_genome.read_scene_graphs(write(tmp_path / 's.json', [graph()]))
    clock, wall = found.things
    assert found.image_id == '1'
    assert clock == visual_genome.Thing(5, ('clock',), ('clock.n.01',), ('green', 'tall'), (1, 2, 3, 4))
    assert (wall.names, wall.synsets, wall.attributes) == (('wall', 'brick wall'), (), ())
    assert found.relationships == (visual_genome.Relationship(5, 'on', 6, ('along.r.01',)),)


def test_only_pictures_that_are_asked_for(tmp_path):
    path = write(tmp_path / 's.json', [graph(), graph(image_id=2), {'image_id': 3}])
    assert list(visual_genome.scene_graphs(path, {'2'})) == ['2']
    assert visual_genome.scene_graphs(path, ()) == {}
    with pytest.raises(ValueError, match=r"record 3, picture 3: has no 'objects'"):
        visual_genome.scene_graphs(path)


def test_objects_and_attributes_alone(tmp_path):
    objects = {'image_id': 1, 'objects': graph()['objects']}
    attributes = {'image_id': 1, 'attributes': graph()['objects']}
    for row in (objects, attributes):
        (found,) = visual_genome.read_scene_graphs(write(tmp_path / 'o.json', [row]))
        assert len(found.things) == 2 and found.relationships == ()


BAD_GRAPHS = {
    'no picture': ([{}], "record 1: has no 'image_id', only nothing"),
    'twice': ([graph(), graph()], 'record 2: picture 1 appears twice'),
    'names': ([graph(objects=[thing(names='clock')])], "record 1, picture 1: object 1: names is 'clock', wanted list"),
    'name': ([graph(objects=[thing(names=[3])])], 'object 1: names: an entry is 3, wanted text'),
    'synset': ([graph(objects=[thing(), thing(6, synsets=[None])])], 'object 2: synsets: an entry is None'),
    'same': ([graph(objects=[thing(), thing()])], 'record 1, picture 1: an object_id appears twice'),
    'box': ([graph(objects=[thing(w='3')])], "object 1: w is '3', wanted int or float"),
    'inf': ([graph(objects=[thing(x=float('inf'))])], 'object 1: x is inf, wanted pixels'),
    'end': ([graph(objects=[thing(5)])], 'relationship 1: 6 is the id of no object of the picture'),
    'relation': ([graph(relationships=[3])], 'relationship 1 is 3, wanted object'),
}


@pytest.mark.parametrize(('document', 'message'), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_malformed_graphs_are_named(tmp_path, document, message):
    with pytest.raises(ValueError, match=rf's\.json: .*{message}'):
        list(visual_genome.read_scene_graphs(write(tmp_path / 's.json', document)))


def test_the_100_real_scene_graphs(shared):
    folder = shared / 'data' / 'counterfactual' / 'vg_samples'
    graphs = visual_genome.scene_graphs(folder / 'scene_graphs.json_samples.json')
    assert len(graphs) == 100
    things = [thing for graph in graphs.values() for thing in graph.things]
    assert len(things) == 3_671 and sum(not t.synsets for t in things) == 395
    attributes = collections.Counter(a for t in things for a in t.attributes)
    assert attributes.most_common(2) == [('white', 361), ('black', 225)]
    assert sum(len(graph.relationships) for graph in graphs.values()) == 2_615
    assert sum(len(g.things) for g in visual_genome.read_scene_graphs(folder / 'objects.json_samples.json')) == 2_484
    attributes = visual_genome.read_scene_graphs(folder / 'attributes.json_samples.json', {'1'})
    assert {t.names[0]: t.attributes for t in next(attributes).things}['clock'] == ('green', 'tall')


# --- element by element ---


@pytest.mark.parametrize('document', [[], [1], [12.5, -3, 'a,]"\\', None, True, [[], {}], {'a': {'b': [1, 'é€😀']}}]])
@pytest.mark.parametrize('indent', [None, 1])
@pytest.mark.parametrize('size', [1, 2, 3, 7, 1 << 20])
def test_elements_whatever_the_blocks(tmp_path, monkeypatch, document, indent, size):
    monkeypatch.setattr(_elements._files, '_BLOCK', size)
    path = write(tmp_path / 'l.json', ' \n' + json.dumps(document, indent=indent, ensure_ascii=False) + '\n')
    assert [value for _, value in _elements.read(path)] == document
    path.write_bytes(b'\xef\xbb\xbf' + gzip.compress(path.read_bytes())[:0] + path.read_bytes())
    assert [where for where, _ in _elements.read(path)] == [f'{path}: record {n + 1}' for n in range(len(document))]
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert [value for _, value in _elements.read(path)] == document
    assert _elements.first(path) == (document or [None])[0]


@pytest.mark.parametrize(('content', 'message'), [
    ('', 'wanted a JSON list'), ('{}', 'wanted a JSON list'), ('[', 'record 1: not JSON'), ('[1', 'record 1: not JSON'),
    ('[1,]', 'record 2: not JSON'), ('[,1]', 'record 1: not JSON'), ('[1 2]', 'record 1: not JSON: wanted a comma'),
    ('[1]]', r"not JSON: behind the list there is '\]'"), ('[{"a": 1, "a": 2}]', "record 1: the key 'a' appears twice"),
    ('[' * 200_000, 'record 1: JSON nested too deeply'), ('[' + '9' * 5000 + ']', 'record 1: .*digits'),
    (b'["\xff"]', 'not UTF-8'), (b'["\xe2\x82', 'not UTF-8'), ('["a" "', 'record 1: not JSON'),
])  # fmt: skip
def test_what_is_no_list(tmp_path, content, message):
    path = tmp_path / 'l.json'
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf'l\.json: {message}'):
        list(_elements.read(path))
    assert _elements.first(path) in (None, 1, 'a')


def test_an_element_that_does_not_end(tmp_path):
    path = write(tmp_path / 'l.json', '["' + 'a' * 300)
    with pytest.raises(ValueError, match=r'l\.json: record 1: not JSON: Unterminated'):
        list(_elements.read(path))
    with pytest.raises(ValueError, match=r'l\.json: record 1: is longer than 100 characters, or not JSON'):
        list(_elements.read(path, max_element=100))
    with pytest.raises(ValueError, match=r'l\.json: is larger than 100 bytes'):
        list(_elements.read(path, max_bytes=100))


def test_a_long_list_needs_little_memory(tmp_path):
    with open(tmp_path / 'q.json', 'w', encoding='utf-8') as file:
        file.write('[')
        for image in range(250):
            rows = [asked(50 * image + n, image_id=image, question='Q' * 100) for n in range(50)]
            file.write(', ' * bool(image) + json.dumps({'id': image, 'qas': rows}))
        file.write(']')
    assert (tmp_path / 'q.json').stat().st_size > 2 << 20
    tracemalloc.start()
    assert sum(1 for _ in visual_genome.read(tmp_path / 'q.json')) == 12_500
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 7 << 20  # as a whole it takes 10
