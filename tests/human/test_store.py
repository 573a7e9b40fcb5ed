"""Who gets which page, what is kept, and that what was said to be kept is on the disk."""

import dataclasses
import pathlib
import secrets
import stat
import subprocess
import sys
import threading

import pytest
import served_study

from evil_jax.human import _secrets, _store, collected


class _Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return _Clock()


@pytest.fixture
def opened(tmp_path, clock):
    """`opened(pages=..., ...)` makes a study and its store."""
    stores = []

    def make(name='ratings.sqlite', **changes):
        made = served_study.study(**changes)
        stores.append(_store.Store(tmp_path / name, made, clock=clock))
        return made, stores[-1]

    yield make
    for store in stores:
        store.close()


def _work(store, rater, number=1, timeout=60):
    """Pages given to a rater, who finishes them all."""
    store.begin(rater, secrets.token_hex(8))
    found = []
    for _ in range(number):
        given = store.next(rater, timeout=timeout)
        found.append(given.page or given.why)
        if given.page:
            assert store.submit(given.page, rater, {'c1': ['0']}) == 'done'
    return found


def test_pages_are_given_evenly_and_never_twice_to_one_rater(opened):
    made, store = opened(pages=3, raters=2)
    assert [_work(store, 'a'), _work(store, 'b'), _work(store, 'c')] == [['p000'], ['p001'], ['p002']]
    assert sorted(_work(store, 'd', 4)) == ['nothing', 'p000', 'p001', 'p002']
    assert _work(store, 'e') == ['nothing']
    assert collected.progress(made, store).finished_pages == 3


def test_no_rater_sees_an_example_again_but_known_items_may_repeat(opened):
    # Pages: (0, 1), (2, 0), (3, 4), with a known item that pages 0 and 2 share.
    _, store = opened(pages=3, raters=5, examples=[0, 1, 2, 0, 3, 4])
    assert _work(store, 'a', 3) == ['p000', 'p002', 'nothing']


def test_a_page_in_work_is_given_again_and_one_given_up_goes_to_others(opened, clock):
    _, store = opened(pages=1, raters=1)
    for rater in 'abc':
        store.begin(rater, rater)
    assert store.next('a', timeout=60).page == 'p000'
    assert store.save('p000', 'a', {'c1': ['1']}, timeout=60) == 'running'
    clock.now += 50
    again = store.next('a', timeout=60)
    assert (again.page, again.draft) == ('p000', {'c1': ['1']})
    clock.now += 50
    assert store.next('b', timeout=60).why == 'later'  # 'a' was here 50 seconds ago
    clock.now += 50
    assert store.next('b', timeout=60).page == 'p000'
    assert store.next('a', timeout=60).why == 'later'
    # Late work is kept, and told from that of the rater who has the place now.
    assert store.save('p000', 'a', {'c1': ['2']}, timeout=60) == 'released'
    assert store.submit('p000', 'a', {'c1': ['2']}) == 'surplus'
    assert store.submit('p000', 'b', {'c1': ['0']}) == 'done'
    assert [(d.rater, d.state, d.fields['c1']) for d in collected.pages(store)] == [
        ('a', 'surplus', ['2']),
        ('b', 'done', ['0']),
    ]
    assert store.next('c', timeout=60).why == 'nothing'


def test_late_work_takes_its_place_back_where_that_is_free(opened, clock):
    _, store = opened(pages=1, raters=1)
    for rater in 'ab':
        store.begin(rater, rater)
    store.next('a', timeout=60)
    clock.now += 100
    store.next('b', timeout=60)
    assert store.save('p000', 'a', {}, timeout=60) == 'released'
    clock.now += 100  # 'b' gave it up as well
    assert store.save('p000', 'a', {}, timeout=60) == 'running'
    assert store.next('b', timeout=60).why == 'later'
    clock.now += 100
    assert store.submit('p000', 'b', {}) == 'done'
    assert store.submit('p000', 'a', {}) == 'surplus'


def test_what_is_handed_in_stays_as_it_was(opened):
    _, store = opened(pages=1, raters=2)
    store.begin('a', 'a')
    store.begin('b', 'b')
    assert store.submit('p000', 'a', {'c1': ['0']}) is None and store.save('p000', 'a', {}, timeout=9) is None
    store.next('a', timeout=60)
    assert store.save('p000', 'a', {}, timeout=60, refused=True) == 'running'
    assert [store.submit('p000', 'a', {'c1': [value]}) for value in '012'] == ['done'] * 3
    assert store.save('p000', 'a', {'c1': ['1']}, timeout=60) == 'done'
    [done] = collected.pages(store)
    assert done.fields == {'c1': ['0']} and done.attempts == 1


def test_a_rejected_rater_gets_nothing_more_and_leaves_the_places(opened):
    made, store = opened(pages=1, raters=1)
    _work(store, 'a')
    assert _work(store, 'b') == ['nothing']
    assert store.judge('a', 'rejected') and not store.judge('nobody', 'approved')
    assert _work(store, 'a') == ['rejected'] and _work(store, 'b') == ['p000']
    assert {row.rater: row.status for row in collected.rows(made, store)} == {'a': 'rejected', 'b': 'submitted'}
    with pytest.raises(ValueError, match="status 'odd'"):
        store.judge('a', 'odd')


def test_who_is_taken_back_has_no_place_that_others_took(opened):
    _, store = opened(pages=1, raters=1)
    store.begin('a', 'a')
    store.next('a', timeout=60)
    store.judge('a', 'rejected')
    store.save('p000', 'a', {'c1': ['1']}, timeout=60)  # the page is still open
    assert _work(store, 'b') == ['p000']
    store.judge('a', 'submitted')
    assert store.next('a', timeout=60).why == 'nothing' and store.submit('p000', 'a', {}) == 'surplus'


def test_the_limit_of_one_rater_and_ids_for_payment(opened):
    _, store = opened(pages=3)
    store.begin('a', 'one', ('=PID', 'study', 'first'))
    store.begin('a', 'two', ('=PID', 'study', 'second'))
    assert store.rater_of('one') == store.rater_of('two') == 'a' and store.rater_of('three') is None
    given = store.next('a', timeout=60, max_pages=1)
    store.submit(given.page, 'a', {})
    given = store.next('a', timeout=60, max_pages=1)
    assert (given.why, given.done, given.paid) == ('enough', 1, True)
    assert collected.payments(store) == [('=PID', 'study', 'second', 'a', 'submitted', 1)]


def test_a_database_stays_with_its_items_and_only_the_owner_reads_it(opened, tmp_path):
    made, store = opened(pages=2)
    _work(store, 'a')
    assert store.rows('PRAGMA synchronous') == [(2,)] and store.rows('PRAGMA journal_mode') == [('wal',)]  # 2: full
    paths = list(tmp_path.glob('ratings.sqlite*'))
    assert len(paths) == 3 and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    for path in paths:
        path.chmod(0o644)  # as a copy may have it
    opened(pages=2, raters=5, wrong_limit=0)  # more raters are welcome
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    with pytest.raises(ValueError, match='other items or pages'):
        opened(pages=3)
    (tmp_path / 'odd.sqlite').write_bytes(b'no database at all ' * 200)
    with pytest.raises(ValueError, match='not the database of a study'):
        opened('odd.sqlite')
    made.write(tmp_path)
    assert len(collected.read(tmp_path)) == 6
    (tmp_path / 'ratings.sqlite').unlink()
    with pytest.raises(ValueError, match='no server has collected'):
        collected.read(tmp_path)


def test_fifty_raters_at_once_take_each_place_once(opened):
    made, store = opened(pages=10, raters=3)
    got, lock = [], threading.Lock()

    def rater(name):
        store.begin(name, name)
        given = store.next(name, timeout=60)
        with lock:
            got.append(given.page)

    threads = [threading.Thread(target=rater, args=(f'r{i}',)) for i in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(page for page in got if page) == sorted(page.id for page in made.pages for _ in range(3))
    assert got.count('') == 20


_DIES = """
import os, sys
sys.path[:0] = sys.argv[1:2]
import served_study
from evil_jax.human import _store
store = _store.Store(sys.argv[2], served_study.study(pages=1))
store.begin('a', 'a')
store.submit(store.next('a', timeout=60).page, 'a', {'c1': ['2']})
store.rows('BEGIN IMMEDIATE')
store.rows("UPDATE answers SET fields = '{}'")
os.kill(os.getpid(), 9)
"""


def test_a_killed_process_loses_nothing_that_was_kept_and_keeps_nothing_half_done(opened, tmp_path):
    here = pathlib.Path(served_study.__file__).parent
    died = subprocess.run([sys.executable, '-c', _DIES, here, tmp_path / 'ratings.sqlite'], timeout=60)
    assert died.returncode == -9
    _, store = opened(pages=1)
    assert [d.fields for d in collected.pages(store)] == [{'c1': ['2']}]


def test_a_full_disk_keeps_nothing_and_says_so(opened):
    _, store = opened(pages=1)
    store.begin('a', 'a')
    store.next('a', timeout=60)
    [[pages]] = store.rows('PRAGMA page_count')
    store.rows(f'PRAGMA max_page_count={pages}')
    with pytest.raises(Exception, match='full'):
        store.submit('p000', 'a', {'commentbox': ['x' * 100_000]})
    assert collected.pages(store) == [] and store.next('a', timeout=60).page == 'p000'
    assert store.submit('p000', 'a', {'c1': ['1']}) == 'done'


def test_secrets_are_made_once_and_for_the_owner_alone(tmp_path):
    keys = _secrets.open_or_make(tmp_path)
    path = tmp_path / 'secrets.json'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and _secrets.open_or_make(tmp_path) == keys
    assert len({keys.salt, keys.admin_token, keys.completion_code}) == 3
    assert keys.rater('a') == keys.rater('a') != keys.rater('b') and len(keys.rater('a')) == 13
    other = dataclasses.replace(keys, salt='0' * 64)
    assert other.rater('a') != keys.rater('a')
    path.chmod(0o640)
    with pytest.raises(ValueError, match='others can read it'):
        _secrets.open_or_make(tmp_path)
    path.chmod(0o600)
    path.write_text('{"salt": "00", "admin_token": "short", "completion_code": ""}')
    with pytest.raises(ValueError, match='wanted a salt of 32'):
        _secrets.open_or_make(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ['secrets.json']
