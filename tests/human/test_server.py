"""The server of a study over HTTP: a rater's way, what is refused, what the experimenter sees, what survives."""

import concurrent.futures
import csv
import dataclasses
import hmac
import json
import re
import signal
import socket
import sys
import urllib.parse
from html import unescape

import pytest
import served_study
from served_study import Rater, fields

from evil_jax.human import _http, _secrets, collected, server
from evil_jax.human.study import IMAGES

IDS = {'PROLIFIC_PID': 'person-1', 'STUDY_ID': 'study-1', 'SESSION_ID': 'session-1'}


@pytest.fixture
def served(tmp_path):
    """A study of four pages for three raters each, and its server."""
    made = served_study.write(tmp_path)
    with served_study.running(made, tmp_path, max_pages=2, intro='Who we are.\n\nWhat <you> do.') as (
        port,
        store,
        keys,
    ):
        yield made, port, store, keys


@pytest.fixture
def rater(served):
    """Who has a page."""
    one = Rater(served[1])
    assert one.begin()[0] == 303 and one.open()
    return one


def test_a_rater_from_the_link_to_the_code(served):
    made, port, store, keys = served
    one = Rater(port, ids=IDS)
    query = '&'.join(f'{name}={value}' for name, value in IDS.items())
    status, headers, html = one.ask('GET', f'/?{query}')
    assert status == 200 and 'What &lt;you&gt; do.' in html and 'value="person-1"' in html and not one.cookies
    status, headers, _ = one.begin()
    assert (status, headers['location']) == (303, '/page')
    assert 'HttpOnly' in headers['set-cookie'] and 'SameSite=lax' in headers['set-cookie']
    first = one.open()
    assert one.send('draft', {'c1': ['2'], '1-f1': ['0', '2']}) == (200, {'saved': True})
    # The same person in another browser goes on there.
    again = Rater(port, ids=IDS)
    again.begin()
    assert again.open() == first and again.cookies != one.cookies
    checked = re.findall(r'<input[^>]*name="(c1|1-f1)"[^>]*value="(\d)"[^>]* checked', again.html)
    assert checked == [('c1', '2'), ('1-f1', '0'), ('1-f1', '2')]
    status, answer = again.send('submit', fields(made, first, wrong=2))
    assert status == 422 and [p['rule'] for p in answer['problems']] == ['wrong']
    status, answer = again.send('submit', fields(made, first) | {'1-f2': []})
    assert status == 422 and [(p['field'], p['item']) for p in answer['problems']] == [('1-f2', 1)]
    assert again.send('submit', fields(made, first)) == (200, {'next': '/page'})
    # An answer that got lost is asked for again; nothing is taken twice.
    assert again.send('submit', fields(made, first)) == (200, {'next': '/page'})
    assert again.send('submit', fields(made, first, rating='no'))[0] == 409  # a second tab: this was not kept
    assert again.send('draft', {})[0] == 409
    assert one.open() != first and keys.completion_code not in one.html
    assert one.send('submit', fields(made, one.page) | {'3-e1': ['no'], '3-f1': ['1']})[0] == 200
    assert one.open() == '' and f'<p class="big" id="code">{keys.completion_code}</p>' in one.html
    assert f'href="https://app.prolific.com/submissions/complete?cc={keys.completion_code}"' in one.html
    rows = collected.rows(made, store)
    assert len(rows) == 12 and {row.rater for row in rows} == {keys.rater('prolific:person-1')}
    assert [row.reason for row in rows[4:6] + rows[10:]] == ['trusted item'] * 2 + ['failed check', 'trusted item']


def test_people_without_a_place_get_no_code(served, tmp_path):
    made, port, _, keys = served
    for _ in range(6):
        one = Rater(port)
        one.begin()
        while one.open():
            assert one.send('submit', fields(made, one.page))[0] == 200
        assert keys.completion_code in one.html
    late = Rater(port)
    assert late.ask('GET', '/page')[1]['location'] == '/'
    late.begin()
    assert late.open() == '' and 'no page for you' in late.html and keys.completion_code not in late.html


def test_a_browser_stays_one_rater_and_takes_no_session_from_outside(served):
    _, port, store, _ = served
    one = Rater(port)
    one.begin()
    page, cookies = one.open(), dict(one.cookies)
    one.begin()
    assert one.open() == page and one.cookies == cookies
    other = Rater(port)
    other.cookies = dict.fromkeys(cookies, 'chosen by somebody else')
    other.begin()
    assert other.open() and 'chosen by somebody else' not in other.cookies.values()
    assert store.rows('SELECT COUNT(*) FROM raters') == [(2,)]


OUTSIDE = (
    '/images/../study.json', '/images/%2e%2e/study.json', '/images/..%2fstudy.json', '/images/..', '/images/',
    '/images/%2Fetc%2Fpasswd', '/images/a.png%00', '/images/secret.png', '/images/link.png', '/study.json',
    '/secrets.json', '/ratings.sqlite', '/images/page.html', '//etc/passwd', '/admin/../study.json',
    '/admin/ratings.csv', '/admin/payments.csv', '/admin/study.json',
)  # fmt: skip


def test_nothing_but_pictures_of_the_study_is_served(tmp_path):
    made = served_study.study()
    items = dict(made.items)  # two name files that are no pictures of the folder
    for item, name in (('i0000', 'link.png'), ('i0002', 'page.html')):
        items[item] = dataclasses.replace(items[item], image=name)
    made = served_study.write(tmp_path, dataclasses.replace(made, items=items))
    images = tmp_path / IMAGES
    (images / 'secret.png').write_bytes(b'not of the study')
    (images / 'page.html').write_text('<script>alert(1)</script>')
    (images / 'link.png').symlink_to(tmp_path / 'study.json')
    with served_study.running(made, tmp_path) as (port, _, _):
        one = Rater(port)
        one.begin()
        assert {path: one.ask('GET', path)[0] for path in OUTSIDE} == dict.fromkeys(OUTSIDE, 404)
        status, headers, _ = one.ask('GET', '/images/a.png')
        assert (status, headers['content-type']) == (200, 'image/png')
        assert headers['content-security-policy'] == "default-src 'none'; frame-ancestors 'none'"
        assert Rater(port).ask('GET', '/images/a.png')[0] == 404  # without a session


def test_every_field_is_checked(served, rater):
    made, _, store, _ = served
    for strange in (
        {'c9': ['0']}, {'c1': ['7']}, {'c1': ['0', '1']}, {'1-e1': ['5']}, {'1-e3': ['no']}, {'1-f1': ['4']},
        {'commentbox': ['x' * 2001]}, {'commentbox': ['\ud800']}, {'c1': [0]}, {'c1': {'a': 'b'}}, {'rater': ['x']},
    ):  # fmt: skip
        for what in ('draft', 'submit'):
            status, answer = rater.send(what, fields(made, rater.page) | strange)
            assert status == 400 and next(iter(strange)) in answer['error']
    path = f'/page/{rater.page}/draft'
    for document in ([], {}, {'token': rater.token}, {'token': rater.token, 'fields': []}, None, 'x',
                     {'token': rater.token, 'fields': {}, 'more': 1}):  # fmt: skip
        assert rater.json(path, document)[0] == 400
    for body in (b'{', b'\xff', b'[' * 60_000):
        assert rater.ask('POST', path, body, {'Content-Type': 'application/json'})[0] == 400
    assert rater.ask('POST', path, b'a=b', {'Content-Type': 'text/plain'})[0] == 415
    for bad in ({'PROLIFIC_PID': '../../x'}, {'STUDY_ID': 'only'}, {**IDS, 'SESSION_ID': 'x' * 65}):
        assert Rater(served[1], ids=bad).begin()[0] == 400
        assert Rater(served[1]).ask('GET', f'/?{urllib.parse.urlencode(bad)}')[0] == 400
    assert Rater(served[1], ids={f'x{i}': '' for i in range(21)}).begin()[0] == 400
    assert Rater(served[1]).ask('POST', '/begin', b'', {'Content-Type': 'text/plain'})[0] == 415
    assert store.rows('SELECT * FROM drafts') == []


def test_bodies_are_bounded_whatever_their_headers_say(served, rater, monkeypatch):
    path, kind = f'/page/{rater.page}/draft', {'Content-Type': 'application/json'}
    large = json.dumps({'token': rater.token, 'fields': {}, 'x': 'x' * _http.BODY}).encode()
    assert rater.ask('POST', path, large, kind)[0] == 413
    assert rater.ask('POST', path, iter([large]), kind)[0] == 413
    assert rater.ask('POST', path, None, kind | {'Content-Length': '1000000'})[0] == 413  # nothing is waited for
    assert rater.send('draft', {'commentbox': ['ü' * 2000]})[0] == 200
    monkeypatch.setattr(_http, '_PATIENCE', 0.1)
    assert rater.ask('POST', path, None, kind | {'Content-Length': '10'})[0] == 408


def test_foreign_sites_tokens_sessions_and_names_are_refused(served, rater):
    made, port, store, _ = served
    path, good = f'/page/{rater.page}/draft', {'token': rater.token, 'fields': {}}
    for origin in ('http://evil.example', 'null', f'http://127.0.0.1:{port + 1}', f'https://127.0.0.1:{port}', ''):
        assert rater.json(path, good, Origin=origin)[0] == 403
    assert rater.json(path, good, Host='evil.example', Origin='http://evil.example')[0] == 421
    assert rater.json(path, good | {'token': 'x' * 64})[0] == 403
    assert rater.json(path, good | {'token': None})[0] == 403
    assert rater.json(path, good | {'token': '\ud800'})[0] == 403
    other = Rater(port)
    other.begin()
    assert other.open() != rater.page
    assert other.json(path, good)[0] == 403  # the token of another session
    assert other.send('draft', {}, page=rater.page)[0] == 403
    assert other.send('submit', fields(made, rater.page), page=rater.page)[0] == 403
    assert other.send('draft', {}, page='p999')[0] == 403
    other.cookies = dict.fromkeys(other.cookies, 'guess')
    assert other.send('draft', {})[0] == 403
    assert store.rows('SELECT * FROM drafts') == [] and rater.json(path, good)[0] == 200
    sessions = str(store.rows('SELECT * FROM sessions'))
    assert not any(value in sessions for value in rater.cookies.values())


def test_nothing_untrusted_is_markup(served, rater):
    made, port, _, keys = served
    assert 'made &lt;b&gt;' in rater.html and not re.search('<b>[0-9]', rater.html)
    for secret in (keys.salt, 'gold_answer', '"gt"', 'eug', 'trusted'):
        assert secret not in rater.html.partition('<body>')[2]
    attack = '</script><img src=x onerror=alert(1)>'
    assert rater.send('submit', fields(made, rater.page) | {'commentbox': [attack]})[0] == 200
    admin = Rater(port)
    admin.form('/admin/login', token=keys.admin_token)
    _, headers, html = admin.ask('GET', '/admin')
    assert '&lt;/script&gt;&lt;img' in html and '<img' not in html
    assert "default-src 'none'" in unescape(html) and "frame-ancestors 'none'" in headers['content-security-policy']
    expected = {'x-content-type-options': 'nosniff', 'referrer-policy': 'same-origin', 'cache-control': 'no-store'}
    expected |= {'x-frame-options': 'DENY', 'cross-origin-resource-policy': 'same-origin'}
    own = "img-src 'self' data:; connect-src 'self'; form-action 'self'"
    for path in ('/', '/page', '/admin', '/nothing'):
        _, headers, html = rater.ask('GET', path)
        assert expected.items() <= headers.items() and f"default-src 'none'; {own}; style-src 'sha256-" in unescape(
            html
        )


def test_what_could_not_be_saved_is_not_acknowledged(served, rater):
    made, _, store, _ = served
    [[pages]] = store.rows('PRAGMA page_count')
    store.rows(f'PRAGMA max_page_count={pages}')  # the disk is full
    long = fields(made, rater.page) | {'commentbox': ['ü' * 2000]}
    answers = [rater.send('submit', long) for _ in range(2)]
    assert [(status, 'could not be saved' in answer['error']) for status, answer in answers] == [(503, True)] * 2
    assert collected.pages(store) == []
    store.rows('PRAGMA max_page_count=100000')
    assert rater.send('submit', long)[0] == 200 and len(collected.pages(store)) == 1


def test_too_many_requests_wait(served, rater):
    answers = [rater.send('draft', {})[0] for _ in range(110)]
    assert set(answers) == {200, 429} and answers[:100] == [200] * 100
    now = [0.0]
    limit = _http.Limit(2, 0.5, keys=3, clock=lambda: now[0])
    take = lambda key: [limit.take(key) for _ in range(2)]
    take('a')
    with pytest.raises(_http.Refused):
        limit.take('a')
    now[0] += 2
    limit.take('a')
    for key in 'bcd':
        take(key)
    take('a')  # forgotten
    one, text = Rater(served[1]), {'Content-Type': 'text/plain'}
    assert {one.ask('POST', '/begin', b'', text)[0] for _ in range(260)} == {415, 429}
    assert {one.form('/admin/login', token='guess')[0] for _ in range(15)} == {403, 429}


def test_the_experimenter_needs_the_token(served, rater, monkeypatch):
    made, port, store, keys = served
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, 'compare_digest', lambda a, b: compared.append((a, b)) or compare(a, b))
    admin = Rater(port)
    assert 'name="token"' in admin.ask('GET', '/admin')[2]
    for wrong in ('', 'x', keys.admin_token[:-1], 'ü'):
        status, _, html = admin.form('/admin/login', token=wrong)
        assert status == 403 and 'not the token' in html and not admin.cookies
    assert (keys.admin_token[:-1].encode(), keys.admin_token.encode()) in compared
    admin.cookies = {f'experimenter_{keys.digest("cookie", "")[:8]}': '9999999999.' + 'f' * 64}
    assert 'not the' not in admin.ask('GET', '/admin')[2] and admin.ask('GET', '/admin/ratings.csv')[0] == 404
    status, headers, _ = admin.form('/admin/login', token=keys.admin_token)
    assert status == 303 and all(
        part in headers['set-cookie'] for part in ('SameSite=strict', 'Path=/admin', 'HttpOnly')
    )
    [name], late = admin.cookies, Rater(port)
    for until, there in ((str(10**12), True), ('1', False)):  # sealed by us, but its time is over
        late.cookies = {name: f'{until}.{keys.digest("admin", keys.admin_token + chr(0) + until)}'}
        assert ('ratings.csv' in late.ask('GET', '/admin')[2]) == there
    rater.send('submit', fields(made, rater.page))
    [name] = {row.rater for row in collected.rows(made, store)}
    html = admin.ask('GET', '/admin')[2]
    assert name in html and '1 <span class="small">of 12' in html and 'http-equiv="refresh"' in html
    assert 'http-equiv="refresh"' not in admin.ask('GET', '/admin?refresh=0')[2]
    token = re.search(r'name="token" value="([0-9a-f]+)"', html)[1]
    assert admin.form('/admin/rater', rater=name, status='rejected', token='0' * 64)[0] == 403
    assert rater.form('/admin/rater', rater=name, status='approved', token=token)[0] == 403
    assert admin.form('/admin/rater', rater=name, status='best', token=token)[0] == 400
    assert admin.form('/admin/rater', rater='r0', status='approved', token=token)[0] == 404
    assert admin.form('/admin/rater', rater=name, status='rejected', token=token)[0] == 303
    status, headers, text = admin.ask('GET', '/admin/ratings.csv')
    rows = list(csv.DictReader(text.splitlines()))
    assert headers['content-disposition'] == 'attachment; filename="ratings.csv"'
    assert (
        len(rows) == 6
        and {row['reason'] for row in rows} == {'rejected', 'trusted item'}
        and {row['rater'] for row in rows} == {name}
    )
    assert len(admin.ask('GET', '/admin/ratings.jsonl')[2].splitlines()) == 6
    assert rater.open() == '' and keys.completion_code not in rater.html
    admin.form('/admin/logout', token=token)
    assert admin.ask('GET', '/admin/ratings.csv')[0] == 404


def test_payments_alone_have_the_ids_of_people(served):
    made, port, _, keys = served
    one = Rater(port, ids=IDS)
    one.begin()
    one.open()
    one.send('submit', fields(made, one.page))
    Rater(port, ids=IDS | {'PROLIFIC_PID': '-2'}).begin()
    admin = Rater(port)
    admin.form('/admin/login', token=keys.admin_token)
    table = admin.ask('GET', '/admin/payments.csv')[2]
    assert 'person-1,study-1,session-1' in table and "\n'-2,study-1" in table  # no formula
    assert one.ask('GET', '/admin/payments.csv')[0] == 404
    for path in ('/admin', '/admin/ratings.csv', '/admin/ratings.jsonl'):
        assert 'person-1' not in admin.ask('GET', path)[2]


def test_behind_a_proxy(tmp_path):
    made = served_study.write(tmp_path)
    with served_study.running(made, tmp_path, behind='https://lab.example/study') as (port, _, keys):
        for prefix in ('', '/study'):  # whether or not the proxy takes it away
            one = Rater(port, prefix)
            kind = {'Content-Type': 'application/x-www-form-urlencoded'}
            there = {'Origin': 'https://lab.example', 'Host': 'lab.example'}
            _, headers, _ = one.ask('POST', f'{prefix}/begin', b'', there | kind)
            assert headers['location'] == '/study/page'
            assert 'Secure' in headers['set-cookie'] and 'Path=/study;' in headers['set-cookie']
            one.open()
            path = f'{prefix}/page/{one.page}/draft'
            assert f'"/study/page/{one.page}/draft"' in one.html and 'src="/study/images/a.png"' in one.html
            good = {'token': one.token, 'fields': {}}
            assert one.json(path, good, Origin='https://lab.example')[0] == 200  # the proxy renamed the host
            assert one.json(path, good, Origin='https://other.example', Host='other.example')[0] == 421
            assert one.json(path, good, Origin='http://lab.example', Host='lab.example')[0] == 403  # not over https
            assert 'Secure' in one.form('/admin/login', token=keys.admin_token)[1]['set-cookie']
    for behind, origin in (('https://Lab.example:443/x', 'https://lab.example'), ('http://a:8080', 'http://a:8080')):
        assert _http.Address(True, behind).ours(origin, '') and not _http.Address(True, behind).ours('https://b', '')
    with pytest.raises(ValueError, match=r'wanted .https://HOST/PATH'):
        server.Options(behind='lab.example')


def _simulate(made, port, number, ids=None):
    """A rater with one page: [(what, page, fields)] that the server said it has."""
    one = Rater(port, ids=ids)
    one.begin()
    page, kept = one.open(), []
    if page:
        sent = fields(made, page) | {'commentbox': [str(number)]}
        for what in ('draft', 'submit'):
            if one.send(what, sent)[0] == 200:
                kept.append((what, page, sent))
    return kept


def test_fifty_raters_at_once(tmp_path):
    made = served_study.write(tmp_path, pages=10, raters=3)
    with served_study.running(made, tmp_path, max_pages=1) as (port, store, _):
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            found = list(pool.map(lambda i: _simulate(made, port, i), range(50)))
        pages = [kept[-1][1] for kept in found if kept]
        assert sorted(pages) == sorted(page.id for page in made.pages for _ in range(3))
        assert len(collected.rows(made, store)) == 30 * 6


def test_a_killed_server_has_all_that_it_took(tmp_path):
    made = served_study.write(tmp_path)
    process, port = served_study.start(tmp_path)
    with pytest.raises(ValueError, match='a server is at work on this study'):
        server.serve(tmp_path, port=0)
    one, other = Rater(port), Rater(port)
    one.begin()
    assert one.ask('GET', '/', None, {'Host': 'evil.example'})[0] == 421
    assert one.open() and one.send('submit', fields(made, one.page))[0] == 200
    other.begin()
    assert other.open() and other.send('draft', {'c1': ['2']})[0] == 200
    process.send_signal(signal.SIGKILL)
    process.wait()
    process, one.port = served_study.start(tmp_path)
    try:
        other.port, submitted = one.port, one.page
        assert one.send('submit', fields(made, submitted))[0] == 200  # the page's script may ask again
        assert one.open() not in ('', submitted)
        assert other.open() and re.search(r'name="c1"[^>]*value="2"[^>]* checked', other.html)
    finally:
        process.terminate()
        assert process.wait(20) == 0  # and lets the study go
    rows = collected.read(tmp_path)
    assert len(rows) == 6 and not (tmp_path / server.LOCK).exists()


def test_it_listens_to_this_machine_keeps_no_log_of_people_and_warns_of_the_net(tmp_path, monkeypatch):
    found, lines = [], []

    class Server:
        def __init__(self, config):
            self.config = config

        def run(self, sockets):
            found.append((self.config, sockets[0].getsockname()[0]))

    monkeypatch.setattr('uvicorn.Server', Server)
    served_study.write(tmp_path)
    server.serve(tmp_path, port=0, tell=lines.append)
    [(config, host)] = found
    assert (host, config.http, config.access_log, config.proxy_headers) == ('127.0.0.1', 'h11', False, False)
    assert not config.server_header and config.limit_concurrency
    keys = _secrets.open_or_make(tmp_path)
    assert keys.completion_code in str(lines) and not any(key in str(lines) for key in (keys.salt, keys.admin_token))
    monkeypatch.setattr(socket.socket, 'getsockname', lambda _: ('192.0.2.1', 80))
    with pytest.warns(UserWarning, match='other machines'):
        server.serve(tmp_path, port=0, tell=lines.append)


def test_what_cannot_be_served_is_told(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match='there is no study'):
        server.serve(tmp_path)
    served_study.write(tmp_path)
    taken = server.listen('127.0.0.1', 0)
    with taken, pytest.raises(ValueError, match='cannot serve there'):
        server.serve(tmp_path, port=taken.getsockname()[1])
    with pytest.raises(ValueError, match='cannot serve there'):
        server.serve(tmp_path, port=70_000)
    monkeypatch.setitem(sys.modules, 'uvicorn', None)
    with pytest.raises(ValueError, match=r'pip install .evil_jax\[human\]'):
        server.serve(tmp_path)
    assert not _secrets.same('a', 'b') and not _secrets.same(None, 'b') and _secrets.same('b', 'b')
