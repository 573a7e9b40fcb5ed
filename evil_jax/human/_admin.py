"""What the experimenter sees of the server: progress, raters to approve or reject, files. Behind the admin token."""

import csv
import io
import pathlib
import tempfile
import time

from starlette import responses, routing
from starlette.concurrency import run_in_threadpool

from evil_jax import pages, text
from evil_jax.human import _answers, _http, _secrets, collected, forms
from evil_jax.human.study import STATUSES

_COOKIE = 'experimenter'
_HOURS = 12  # of a session
_PERIOD = 15  # seconds until the page is fetched anew


def routes(study, store, keys, address) -> list[routing.Route]:
    """The paths below /admin."""
    admin = _Admin(study, store, keys, address)
    return [
        routing.Route('/admin', admin.page),
        routing.Route('/admin/login', admin.login, methods=['POST']),
        routing.Route('/admin/logout', admin.logout, methods=['POST']),
        routing.Route('/admin/rater', admin.rater, methods=['POST']),
        routing.Route('/admin/payments.csv', admin.payments),
        routing.Route('/admin/{name:str}', admin.table),
    ]


class _Admin:
    def __init__(self, study, store, keys, address):
        self._study, self._store, self._keys, self._root = study, store, keys, address.prefix
        self._form = forms.of(study)
        self._secure = address.secure
        self._cookie = f'{_COOKIE}_{keys.digest("cookie", "")[:8]}'
        self._attempts = _http.Limit(10, 0.2)

    async def page(self, request):
        if not self._known(request):
            return self._door()
        now = await run_in_threadpool(collected.progress, self._study, self._store)
        html = pages.render(
            'study_progress',
            served=True,
            title=f'{self._study.dataset}: {", ".join(self._study.systems) or self._study.asks}',
            files=self._form.files,
            now=now,
            raters=self._study.raters,
            comments=[(one.rater, comment) for one in now.raters for comment in one.comments],
            token=self._token(request),
            root=self._root,
            period=_PERIOD,
            refreshing=request.query_params.get('refresh') != '0',
        )
        return responses.HTMLResponse(html)

    async def login(self, request):
        self._attempts.take()
        fields = await _http.form(request)
        if not _secrets.same(fields.get('token', ''), self._keys.admin_token):
            return self._door('This is not the token.', status=403)
        until = str(int(time.time()) + _HOURS * 3600)
        answer = responses.RedirectResponse(f'{self._root}/admin', status_code=303)
        answer.set_cookie(
            self._cookie,
            f'{until}.{self._seal(until)}',
            max_age=_HOURS * 3600,
            path=f'{self._root}/admin',
            secure=self._secure,
            httponly=True,
            samesite='strict',
        )
        return answer

    async def logout(self, request):
        await self._sent(request)
        answer = responses.RedirectResponse(f'{self._root}/admin', status_code=303)
        answer.delete_cookie(self._cookie, path=f'{self._root}/admin')
        return answer

    async def rater(self, request):
        fields = await self._sent(request)
        status = fields.get('status', '')
        if status not in STATUSES:
            raise _http.Refused(400, f'Wanted a status of {", ".join(STATUSES)}.')
        if not await run_in_threadpool(self._store.judge, fields.get('rater', ''), status):
            raise _http.Refused(404, 'There is no such rater.')
        return responses.RedirectResponse(f'{self._root}/admin', status_code=303)

    async def table(self, request):
        name = request.path_params['name']
        if name not in self._form.files or not self._known(request):
            return _answers.missing(request, None)
        return _file(name, await run_in_threadpool(self._table, name))

    def _table(self, name: str) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / other for other in self._form.files]
            self._form.write(*paths, self._form.mark(collected.rows(self._study, self._store)))
            return (pathlib.Path(folder) / name).read_bytes()

    async def payments(self, request):
        if not self._known(request):
            return _answers.missing(request, None)
        rows = await run_in_threadpool(collected.payments, self._store)
        table = io.StringIO()
        writer = csv.writer(table, lineterminator='\n')
        writer.writerow(collected.PAYMENT_COLUMNS)
        writer.writerows([text.csv_cell(value) for value in row] for row in rows)
        return _file('payments.csv', table.getvalue().encode())

    async def _sent(self, request) -> dict[str, str]:
        """Fields of a form of ours."""
        fields = await _http.form(request)
        if not self._known(request) or not _secrets.same(fields.get('token', ''), self._token(request)):
            raise _http.Refused(403, 'Please log in again.')
        return fields

    def _known(self, request) -> bool:
        until, _, seal = request.cookies.get(self._cookie, '').partition('.')
        return _secrets.same(seal, self._seal(until)) and until.isdigit() and int(until) > time.time()

    def _seal(self, until: str) -> str:
        """Who changes the token in secrets.json ends all sessions, as does time."""
        return self._keys.digest('admin', f'{self._keys.admin_token}\0{until}')

    def _token(self, request) -> str:
        return self._keys.digest('admin form', request.cookies[self._cookie])

    def _door(self, *lines: str, status: int = 200):
        form = {'action': f'{self._root}/admin/login', 'hidden': {}, 'button': 'Log in', 'secret': 'Token'}
        where = f'The token is admin_token in {_secrets.FILE} in the folder of the study.'
        return _answers.notice('Progress of the study', *lines, where, status=status, form=form)


def _file(name: str, content: bytes):
    kind = 'text/csv; charset=utf-8' if name.endswith('.csv') else 'application/x-ndjson'
    headers = {'content-disposition': f'attachment; filename="{name}"'}
    return responses.Response(content, media_type=kind, headers=headers)
