"""A labelling study by the way of every other: served, exported to MTurk and read again."""

import csv
import io
import json
import re

import labelling_study
import pytest
import served_study

from evil_jax.human import collected, formats, label_form, label_page, labels, mturk

URLS = {'urls': {}, 'draft_url': '/d', 'submit_url': '/s', 'token': 't'}


def test_raters_label_on_the_server(tmp_path):
    study = labelling_study.make(tmp_path)
    by_id = {page.id: page for page in study.pages}
    with served_study.running(study, tmp_path) as (port, store, keys):
        one = served_study.Rater(port)
        assert 'Pictures and statements' in one.ask('GET', '/')[2]
        one.begin()
        page = by_id[one.open()]
        good = labelling_study.fields(study, page, 0)
        assert one.send('draft', {'c1': ['2'], '1-w': ['1'], '1-x': ['half </textarea> done']})[0] == 200
        one.open()
        assert 'half &lt;/textarea&gt; done' in one.html and re.search(r'name="1-w" value="1" checked', one.html)
        status, answer = one.send('submit', good | {'1-x': ['nothing of that sort'], '2-w': []})
        assert status == 422 and [(p['field'], p['rule']) for p in answer['problems']] == [('2-w', 'filled')]
        status, answer = one.send('submit', good | {'1-x': ['nothing of that sort']})
        assert status == 422 and [(p['field'], p['rule']) for p in answer['problems']] == [('1-x', 'half')]
        assert one.send('submit', good | {'1-w': ['999']})[0] == 400
        assert one.send('submit', good) == (200, {'next': '/page'})
        other = by_id[one.open()]
        assert one.send('submit', labelling_study.fields(study, other, fail=True))[0] == 200
        [rater] = collected.progress(study, store).raters
        assert (rater.pages, rater.answers, rater.checks, rater.failed, rater.attempts) == (2, 0, 2, 1, 2)
        admin = served_study.Rater(port)
        admin.form('/admin/login', token=keys.admin_token)
        assert 'href="/admin/labels.csv"' in admin.ask('GET', '/admin')[2]
        table = admin.ask('GET', '/admin/labels.csv')[2]
        assert admin.ask('GET', '/admin/ratings.csv')[0] == 404
    (tmp_path / 'labels.csv').write_text(table)
    rows = labels.read(tmp_path / 'labels.csv')
    assert rows == labels.mark(collected.read(tmp_path)) and len(rows) == 8
    assert {row.reason for row in rows[:4]} == {'', 'trusted item'} and {row.reason for row in rows[4:]} == {
        'failed check'
    }
    assert [row.label for row in rows if row.counts] == ['entailment'] * 3


@pytest.mark.parametrize('way', ['plain', 'boxes', 'json'])
def test_what_workers_of_mturk_say_comes_back(tmp_path, way):
    study = labelling_study.make(tmp_path)
    files = mturk.export(study, tmp_path / 'mturk', 'https://host/pictures')
    assert [path.name for path in files] == ['layout-004.html', 'batch-004.csv']
    layout, table = (path.read_text() for path in files)
    batch = list(csv.DictReader(io.StringIO(table)))
    variables = set(re.findall(r'\$\{(\w+)\}', layout))
    assert variables == {n for n in batch[0] if n != 'page' and not n.endswith('_ques_id')}
    assert not any(value.startswith(('=', '+', '-', '@')) for row in batch for value in row.values())
    results = []
    for number, (page, row) in enumerate(zip(study.pages, batch, strict=True)):
        fields = labelling_study.fields(study, page, 2)
        if way == 'plain':
            answers = {f'Answer.{name}': '|'.join(values) for name, values in fields.items()}
        elif way == 'boxes':
            answers = {f'Answer.{n}.{v}': 'true' for n, values in fields.items() if '-x' not in n for v in values}
            answers |= {f'Answer.{n}': v for n, (v, *_) in fields.items() if '-x' in n}
        else:
            said = {n: dict.fromkeys(values, True) if '-w' in n else values[0] for n, values in fields.items()}
            answers = {'Answer.taskAnswers': json.dumps([said])}
        work = {'AssignmentId': f'A{number}', 'WorkerId': 'W', 'AssignmentStatus': 'Approved', 'WorkTimeInSeconds': '9'}
        results.append(work | {f'Input.{name}': value for name, value in row.items()} | answers)
    names = list(dict.fromkeys(name for row in results for name in row))
    with open(tmp_path / 'results.csv', 'w', newline='') as file:
        writer = csv.DictWriter(file, names, restval='')
        writer.writeheader()
        writer.writerows(results)
    wanted = [
        row
        for number, page in enumerate(study.pages)
        for row in label_form.rows(
            study,
            page,
            label_form.parse(labelling_study.fields(study, page, 2), study, page),
            rater='w',
            assignment=f'A{number}',
            seconds=9.0,
            status='approved',
        )
    ]
    found = formats.read_labels([tmp_path / 'results.csv'], study, rater=str.lower)
    assert [(r.item, r.label, r.words, r.explanation, r.reason, r.status) for r in found] == [
        (r.item, r.label, r.words, r.explanation, r.reason, r.status) for r in wanted
    ]
    (tmp_path / 'again.csv').write_text((tmp_path / 'results.csv').read_text())
    with pytest.raises(ValueError, match=r"assignment 'A0' is in .*results.csv too"):
        formats.read_labels([tmp_path / 'results.csv', tmp_path / 'again.csv'], study, rater=str.lower)
    with pytest.raises(ValueError, match=r"human.to is 'potato': people label on mturk"):
        formats.export(study, 'potato', tmp_path / 'potato')


def test_a_page_tells_neither_labels_nor_checks_and_texts_are_text(tmp_path):
    attack = (
        '</script><script>alert(1)</script> <img src=x onerror=alert(1)> {{ 7777777 * 7 }} ${x} " onfocus="alert(1)'
    )
    texts, pages_ = (attack,), []
    for number, label in enumerate(('neutral', 'entailment')):
        folder = tmp_path / str(number)
        folder.mkdir()
        known = [labelling_study.Asked('k', 'k', attack, label)] if number else ()
        study = labelling_study.make(folder, number=3 - number, texts=texts, picture=False, trusted=known)
        text = label_page.page(study, study.pages[0], **URLS)
        pages_.append(text)
        assert not any(trace in text for trace in ('<script>alert', '<img src=x', '54444439', '" onfocus'))
        row = label_page.inputs(study, study.pages[0], {})
        assert not any(trace in row['words_1'] for trace in ('<script', '<img', '" onfocus'))
    assert pages_[0] == pages_[1]
