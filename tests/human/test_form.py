"""The rater's form: what it can have sent, the rules of a finished page in their order, rows of the tidy table."""

import pytest

from evil_jax.human import form, responses
from evil_jax.human.study import GOLD, TRUSTED, Item, Page, Shown, Study


def _fields(number=2, **changes):
    fields = {}
    for k in range(1, number + 1):
        fields |= {f'c{k}': ['0'], f'{k}-e1': ['w_yes'], f'{k}-e2': ['no'], f'{k}-f1': ['3'], f'{k}-f2': ['0', '2']}
    return {name: value for name, value in (fields | changes).items() if value is not None}


def _problems(fields, number=2, **limits):
    answers = form.parse(fields, number, [3] * number)
    return [(p.field, p.rule) for p in form.problems(answers, **{'wrong_limit': 1, 'yes_limit': 3} | limits)]


def test_answers_come_back_from_their_fields():
    answers = form.parse(_fields(commentbox=' all\r\nfine '), 2, [3, 3])
    assert answers.tasks[1] == form.Task(
        0, (form.Rated('weak_yes', ('none',)), form.Rated('no', ('incorrect_description', 'confusing_sentence')))
    )
    assert answers.tasks[0].rated[0].shortcomings == () and answers.comment == 'all\nfine'
    assert form.parse(answers.fields(), 2, [3, 3]) == answers
    draft = form.parse({'2-f1': ['3', '1'], 'c1': '2', '1-e1': []}, 2, [3, 3])
    assert draft.fields() == {'c1': ['2'], '2-f1': ['1', '3']}


@pytest.mark.parametrize(
    'field, value, message',
    [
        ('c3', ['0'], "'c3': the form has no such field"),
        ('c0', ['0'], 'no such field'),
        ('1-e3', ['no'], 'no such field'),
        ('1-e1\n', ['no'], 'no such field'),
        ('rating', ['5'], 'no such field'),
        ('c1', ['3'], "c1: '3', wanted one of 0, 1, 2"),
        ('c1', ['0', '1'], 'c1: 2 values, wanted one'),
        ('c1', ['\u0661'], 'c1: '),
        ('1-e1', ['weak_yes'], "1-e1: 'weak_yes', wanted one of yes, w_yes, w_no, no"),
        ('2-f2', ['4'], "2-f2: '4', wanted some of 0, 1, 2, 3"),
        ('2-f2', ['1', '1'], '2-f2: a value is there twice'),
        ('2-f2', [1], "'2-f2': wanted texts"),
        ('c1', {'0': 1}, "'c1': wanted texts"),
        ('commentbox', ['x' * 2001], 'commentbox: 2001 characters, wanted at most 2000'),
        ('commentbox', ['\ud83d'], 'commentbox: characters that are no text'),
    ],
)
def test_what_the_form_cannot_have_sent_is_refused(field, value, message):
    with pytest.raises(ValueError) as error:
        form.parse(_fields() | {field: value}, 2, [3, 3])
    assert message in str(error.value)


def test_rules_are_held_in_their_order():
    assert _problems(_fields()) == []
    assert _problems({}, 1) == [(name, 'filled') for name in ('c1', '1-e1', '1-f1', '1-e2', '1-f2')]
    broken = _fields(**{'1-f2': ['3'], '1-e1': ['yes'], '1-f1': ['1'], '2-f1': ['3', '0'], 'c2': None})
    assert _problems(broken) == [('c2', 'filled'), ('2-f1', 'none'), ('1-f1', 'yes'), ('1-f2', 'no')]
    assert _problems(_fields(**{'1-e1': ['w_no']})) == [('1-f1', 'no')]
    # A weak yes may have shortcomings or none.
    assert _problems(_fields(**{'1-f1': ['0', '1', '2']})) == []


def test_rules_of_the_whole_page():
    yes = {f'{k}-e{e}': ['yes'] for k in (1, 2) for e in (1, 2)} | {'1-f2': ['3'], '2-f2': ['3']}
    assert _problems(_fields(**yes)) == [('', 'many_yes')] and _problems(_fields(**yes), yes_limit=4) == []
    assert _problems(_fields(), golds=[0, 1]) == [] and _problems(_fields(), golds=[1, 1]) == [('', 'wrong')]
    # Nobody learns from an unfinished page whether its answers are right.
    assert _problems(_fields(**{'1-e1': None}), golds=[1, 1]) == [('1-e1', 'filled')]
    [problem] = form.problems(form.parse(_fields(), 2, [3, 3]), golds=[1, 1], wrong_limit=0, yes_limit=3)
    assert problem.message.startswith('Some of your answers')


def _study():
    items = {
        'i1': Item('i1', 'x1', '', 'A?', ('a', 'b'), 1, (Shown('m', 'M'), Shown(GOLD, 'G')), image_id='im1'),
        'i2': Item('i2', 'x2', '', 'B?', ('a', 'b'), 0, (Shown(GOLD, 'G2'), Shown(TRUSTED, 'T', ('no', 'weak_no')))),
        'i3': Item('i3', 'x3', '', 'C?', ('a', 'b'), 0, (Shown('n', 'N'), Shown(GOLD, 'G3'))),
    }
    pages = (Page('p1', ('i1', 'i2')), Page('p2', ('i3',)))
    return Study('vqax', 'question', items, pages, 3, 1, 3, {}, {}, {})


def test_rows_of_the_tidy_table():
    study = _study()
    page = study.pages[0]
    answers = form.parse(_fields(c1=['0']), **form.shape(study, page))
    assert form.check(study, page, answers) == []
    model, gold, known, trusted = form.rows(study, page, answers, rater='r1', assignment='a1', seconds=9.5)
    assert (model.system, model.beside, model.item, model.rating) == ('m', 'm', 'x1', 'weak_yes')
    assert (model.task_answer, model.gold_answer, model.correct) == ('a', 'b', False)
    assert (model.references, model.image_id, model.seconds, model.reason) == (('G',), 'im1', 9.5, '')
    assert (gold.system, gold.beside, gold.references) == (GOLD, 'm', ())
    assert gold.shortcomings == ('incorrect_description', 'confusing_sentence')
    assert (known.beside, known.reason, trusted.reason) == (TRUSTED, responses.KNOWN, responses.KNOWN)
    careless = form.parse(_fields(**{'2-e2': ['yes'], '2-f2': ['3']}), **form.shape(study, page))
    assert form.rows(study, page, careless, rater='r1', assignment='a1')[3].reason == responses.CHECK


def test_a_shorter_page_has_fewer_yes():
    study = _study()
    assert [form.yes_limit(study, page) for page in study.pages] == [3, 1]
