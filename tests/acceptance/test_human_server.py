"""Fifty raters at once on a server that is killed in the middle of it: nothing acknowledged is lost, nothing doubled.

A minute: `bash launch/test.sh --acceptance tests/acceptance/test_human_server.py`.
"""

import collections
import functools
import http.client
import json
import pathlib
import signal
import sys
import threading
import time

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'human'))
import served_study
from served_study import Rater

from evil_jax.human import _store, collected

pytestmark = pytest.mark.acceptance
RATERS, PAGES, KILLS, PATIENCE = 50, 60, 3, 60
_LOST = (OSError, http.client.HTTPException, json.JSONDecodeError)


class _Crowd:
    """What raters were told by the server, and how long it took."""

    def __init__(self, made, port):
        self.made, self.port = made, port
        self.accepted, self.seconds, self.wrong = [], [], []

    def _ask(self, call):
        """An answer, also of a server that comes back; a rater's page asks again as well."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            begin = time.perf_counter()
            try:
                answer = call()
            except _LOST:  # killed, or not here yet
                time.sleep(0.05)
                continue
            self.seconds.append(time.perf_counter() - begin)
            return answer
        raise AssertionError('the server did not come back')

    def work(self, number):
        """One rater, until there are no more pages. Each page is opened again after its draft."""
        try:
            one = Rater(self.port, ids={'PROLIFIC_PID': f'person{number}'})
            self._ask(one.begin)
            while page := self._ask(one.open):
                text = f'said {number} {page}'
                filled = served_study.fields(self.made, page) | {'commentbox': [text]}
                answers = [self._ask(functools.partial(one.send, 'draft', filled))[0]]
                kept = self._ask(one.open) == page and f'{text}</textarea>' in one.html
                answers.append(self._ask(functools.partial(one.send, 'submit', filled))[0])
                if answers != [200, 200] or not kept:
                    self.wrong.append(f'{text}: {answers}, draft kept: {kept}')
                self.accepted.append(text)
        except BaseException as error:
            self.wrong.append(f'{number}: {error!r}')
            raise


def test_a_crowd_and_a_server_that_is_killed(tmp_path, measured):
    made = served_study.write(tmp_path, pages=PAGES, items=9, raters=3)
    process, port = served_study.start(tmp_path)
    crowd = _Crowd(made, port)
    threads = [threading.Thread(target=crowd.work, args=(number,)) for number in range(RATERS)]
    for thread in threads:
        thread.start()
    for kill in range(1, KILLS + 1):
        end = time.monotonic() + PATIENCE
        while len(crowd.accepted) < kill * PAGES * 3 // (KILLS + 1) and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process, _ = served_study.start(tmp_path, port)
    for thread in threads:
        thread.join()
    process.terminate()
    assert process.wait(20) == 0 and crowd.wrong == []
    store = _store.Store(tmp_path / _store.FILE, made)
    found = collected.pages(store)
    stored = collections.Counter((done.rater, done.page) for done in found)
    said = {done.fields['commentbox'][0] for done in found}
    numbers = collections.Counter(done.page for done in found)
    store.close()
    measured(f'{RATERS} raters, {KILLS} kills: pages handed in', '==', PAGES * 3, len(found))
    measured('acknowledged pages that are not in the database', '==', 0, len(set(crowd.accepted) - said))
    measured('pages twice by one rater', '==', 0, sum(number > 1 for number in stored.values()))
    measured('pages with more or fewer than three raters', '==', 0, sum(n != 3 for n in numbers.values()))
    measured('seconds of the median request', '<=', 1.0, sorted(crowd.seconds)[len(crowd.seconds) // 2])
