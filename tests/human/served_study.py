"""A small study, its server on a free port, and raters that speak HTTP, for tests of several files."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import urllib.parse

from evil_jax.human import _secrets, _store, server
from evil_jax.human.study import GOLD, IMAGES, TRUSTED, Item, Page, Shown, Study

PIXEL = bytes.fromhex(
    '89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f64540'
    '0000000049454e44ae426082'
)


def study(pages=4, items=2, raters=3, examples=None, **changes) -> Study:
    """Each page has `items` items and one trusted one. Example `examples[i]` is item i (default: all differ)."""
    found, sheets = {}, []
    for p in range(pages):
        names = []
        for i in range(items):
            number = p * items + i
            example = f'x{(examples or range(pages * items))[number]}'
            shown = [Shown(GOLD, f'gold {number}'), Shown('eug', f'made <b>{number}</b> & "so"')]
            shown = tuple(shown if number % 2 else shown[::-1])
            name = f'i{number:04d}'
            found[name] = Item(
                name, example, 'a.png', f'Question {number}?', ('yes', 'no', 'red'), number % 3, shown, f'p{number}',
            )  # fmt: skip
            names.append(name)
        name = f't{p:04d}'
        shown = (Shown(GOLD, 'fitting', ('yes', 'weak_yes')), Shown(TRUSTED, 'foreign', ('no', 'weak_no')))
        found[name] = Item(name, f'known{p % 2}', '', 'Known?', ('yes', 'no', 'red'), 0, shown)
        sheets.append(Page(f'p{p:03d}', (*names, name)))
    values = dict(
        dataset='vqax', kind='question', items=found, pages=tuple(sheets), raters=raters, wrong_limit=1,
        yes_limit=2 * (items + 1) - 1, s_t={'eug': 0.8}, settings={}, made_from={},
    )  # fmt: skip
    return Study(**values | changes)


def write(folder, made: Study | None = None, **changes) -> Study:
    """A study with its picture in a folder."""
    made = made or study(**changes)
    made.write(folder)
    (folder / IMAGES).mkdir(exist_ok=True)
    (folder / IMAGES / 'a.png').write_bytes(PIXEL)
    return made


def fields(made: Study, page: str, *, wrong=0, rating='weak_yes') -> dict[str, list[str]]:
    """A page filled in: right but for `wrong` task answers."""
    words = {'weak_yes': ('w_yes', '3'), 'no': ('no', '1'), 'yes': ('yes', '3')}
    [sheet] = (p for p in made.pages if p.id == page)
    filled = {}
    for k, item in enumerate(made.of(sheet), 1):
        filled[f'c{k}'] = [str((item.gold + (k <= wrong)) % 3)]
        for e, shown in enumerate(item.explanations, 1):
            word, tick = words['no' if shown.system == TRUSTED else rating]
            filled |= {f'{k}-e{e}': [word], f'{k}-f{e}': [tick]}
    return filled


@contextlib.contextmanager
def running(made: Study, folder, **options):
    """(port, store, secrets) of a server in a thread of this process."""
    import uvicorn

    keys = _secrets.open_or_make(folder)
    store = _store.Store(folder / _store.FILE, made)
    application = server.app(made, folder, store, keys, server.Options(**options))
    listening = server.listen('127.0.0.1', 0)
    running_ = uvicorn.Server(uvicorn.Config(application, log_level='error', lifespan='off', access_log=False))
    thread = threading.Thread(target=running_.run, kwargs={'sockets': [listening]}, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], store, keys
    finally:
        running_.should_exit = True
        thread.join(20)
        listening.close()
        store.close()


_SERVE = """
import sys
from evil_jax.human import server
server.serve(sys.argv[1], port=int(sys.argv[2]), tell=lambda line: print(line, flush=True))
"""


def start(folder, port=0):
    """(process, port) of a server of its own."""
    root = pathlib.Path(__file__).resolve().parents[2]
    command = [sys.executable, '-c', _SERVE, str(folder), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {'PYTHONPATH': str(root)})
    return process, int(re.search(r':(\d+)/', process.stdout.readline())[1])


class Rater:
    """A browser without a window: keeps cookies, tells its origin."""

    def __init__(self, port: int, prefix='', ids=None):
        self.port, self.prefix, self.ids = port, prefix, ids
        self.cookies: dict[str, str] = {}
        self.token = self.page = ''

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, text)."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        cookie = {'Cookie': '; '.join(f'{k}={v}' for k, v in self.cookies.items())} if self.cookies else {}
        origin = {'Origin': f'http://127.0.0.1:{self.port}'} if method == 'POST' else {}
        try:
            connection.request(method, path, body, {**origin, **cookie, **(headers or {})})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        for name, value in answer.getheaders():
            if name.lower() == 'set-cookie':
                key, _, rest = value.partition('=')
                self.cookies[key] = rest.partition(';')[0].strip('"')
        return answer.status, dict(answer.getheaders()), text.decode('utf-8', 'replace')

    def form(self, path, **values):
        kind = {'Content-Type': 'application/x-www-form-urlencoded'}
        return self.ask('POST', self.prefix + path, urllib.parse.urlencode(values), kind)

    def json(self, path, document, **headers):
        status, _, text = self.ask('POST', path, json.dumps(document), {'Content-Type': 'application/json', **headers})
        return status, json.loads(text)

    def begin(self):
        return self.form('/begin', **(self.ids or {}))

    def open(self) -> str:
        """The page to work on: its id, '' = there is none. Keeps its token."""
        status, _, self.html = self.ask('GET', f'{self.prefix}/page')
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', self.html, re.S)
        data = json.loads(found[1]) if status == 200 and found else {}
        self.token, self.page = data.get('token', ''), data.get('submit_url', '//').split('/')[-2]
        return self.page

    def send(self, what, fields, page=None):
        """(status, JSON) of a draft or a submission."""
        path = f'{self.prefix}/page/{page or self.page}/{what}'
        return self.json(path, {'token': self.token, 'fields': fields})
