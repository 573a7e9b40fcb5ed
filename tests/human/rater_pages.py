"""A small study and a stand-in for the server of studies, whose failures a test can choose."""

import http.server
import io
import json
import threading
import urllib.parse

import PIL.Image

from evil_jax.human import form, questionnaire
from evil_jax.human.study import GOLD, TRUSTED, Item, Page, Shown, Study

RELATIONS = ('Entailment', 'Neutral', 'Contradiction')


def study(kind='statement', number=3, words='Two dogs run on the beach.', **changes):
    """One page; the right answers are 0, 1, 2, 0, ..."""
    items = {}
    for i in range(number):
        shown = (Shown('e-ug', f'{words} They leave traces in the sand.'), Shown(GOLD, f'{words} The sea is behind.'))
        if i == 1:
            shown = (Shown(TRUSTED, f'{words} Cats.', ('no',)), Shown(GOLD, words))
        boxes = (('person 1', 0.1, 0.2, 0.4, 0.9), ('dog 2', 0.75, 0.5, 0.95, 0.95)) if kind == 'question' else ()
        choices = RELATIONS if kind == 'statement' else (f'{words} Running', 'sleeping', 'eating')
        item = Item(f'i{i}', f'secret{i}', f'{i}.png', words, choices, i % 3, shown[:: (-1) ** i], boxes=boxes)
        items[item.id] = item
    settings = {'wrong_limit': 1, 'yes_limit': 4} | changes
    return Study('esnlive', kind, items, (Page('p1', tuple(items)),), 3, s_t={}, settings={}, made_from={}, **settings)


def finished(study, **changes):
    """Fields of a page that can be taken."""
    fields = {}
    for k, item in enumerate(study.of(study.pages[0]), 1):
        fields |= {f'c{k}': [str(item.gold)], f'{k}-e1': ['w_yes'], f'{k}-f1': ['3']}
        fields |= {f'{k}-e2': ['w_no'], f'{k}-f2': ['0', '1']}
    return fields | changes


class Server:
    """Answers as the server of studies does, and remembers: `fields` of the draft, `taken`, the last form `posted`."""

    def __init__(self, study):
        self.study, self.page = study, study.pages[0]
        self.fields, self.taken, self.posted, self.status = {}, None, None, 200
        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), self._handler())
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        threading.Thread(target=self._server.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def html(self):
        answers = form.parse(self.fields, **form.shape(self.study, self.page))
        urls = {item.id: f'/images/{item.image}' for item in self.study.items.values()}
        return questionnaire.page(
            self.study,
            self.page,
            urls=urls,
            draft_url='/page/p1/draft',
            submit_url='/page/p1/submit',
            token='t0ken',
            answers=answers,
            progress=(0, 3),
        )

    def mturk(self):
        urls = {item.id: f'/images/{item.image}' for item in self.study.items.values()}
        text = questionnaire.layout(self.study, self.page)
        for name, value in questionnaire.inputs(self.study, self.page, urls).items():
            text = text.replace(f'${{{name}}}', value)
        return f'<!DOCTYPE html><html><body><form action="/external" method="post">{text}</form></body></html>'

    def post(self, path, body):
        """(status, document) of a POST."""
        if path == '/external':
            self.posted = urllib.parse.parse_qs(body.decode())
            return 200, {}
        document = json.loads(body)
        assert document['token'] == 't0ken'
        if self.status != 200:
            return self.status, {'error': 'this page was given to somebody else'}
        answers = form.parse(document['fields'], **form.shape(self.study, self.page))
        if path == '/page/p1/draft':
            self.fields = answers.fields()
            return 200, {'saved': True}
        if problems := form.check(self.study, self.page, answers):
            keys = ('field', 'item', 'rule', 'message')
            return 422, {'problems': [{key: getattr(problem, key) for key in keys} for problem in problems]}
        self.taken = answers.fields()
        return 200, {'next': '/done'}

    def _handler(server):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                pages = {'/page': server.html, '/mturk': server.mturk, '/done': lambda: '<title>done</title>'}
                if self.path.startswith('/images/'):
                    return self._send(200, 'image/png', _picture(tall=self.path.endswith('/1.png')))
                if self.path not in pages:
                    return self._send(404, 'text/plain', b'')
                return self._send(200, 'text/html; charset=utf-8', pages[self.path]().encode())

            def do_POST(self):
                status, answer = server.post(self.path, self.rfile.read(int(self.headers['Content-Length'])))
                self._send(status, 'application/json', json.dumps(answer).encode())

            def _send(self, status, kind, body):
                self.send_response(status)
                self.send_header('Content-Type', kind)
                self.send_header('Content-Length', str(len(body)))
                self.send_header('Cache-Control', 'no-store')
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Tests are quiet."""

        return Handler


def _picture(tall):
    """Sky, sea and sand."""
    picture = PIL.Image.new('RGB', (640, 1400 if tall else 420), '#bcd7ea')
    picture.paste('#4f86a6', (0, 150, 640, 230))
    picture.paste('#e2cfa3', (0, 230, 640, 420))
    data = io.BytesIO()
    picture.save(data, 'PNG')
    return data.getvalue()
