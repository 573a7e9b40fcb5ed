"""What raters see of the server: consent, pages, pictures, the end. The paths stand in `server.py`."""

import dataclasses
import functools
import hashlib
import re
import secrets
import sqlite3
import urllib.parse
from collections.abc import Mapping

from starlette import applications, responses, routing
from starlette.concurrency import run_in_threadpool

from evil_jax.human import _admin, _answers, _http, _secrets, _store, forms
from evil_jax.human.study import IMAGES

_PLATFORM = ('PROLIFIC_PID', 'STUDY_ID', 'SESSION_ID')
_PLATFORM_ID = re.compile(r'[A-Za-z0-9_-]{1,64}')
_COMPLETE = 'https://app.prolific.com/submissions/complete?cc='
_MONTH = 30 * 24 * 3600
_KINDS = {'.png': 'image/png', '.jpg': 'image/jpeg', '.jpeg': 'image/jpeg', '.webp': 'image/webp', '.gif': 'image/gif'}
_ENDS = {
    'rejected': 'Your work in this study is over. If you think that this is a mistake, please tell us.',
    'enough': 'You have done all pages that one person may do. Thank you very much!',
    'nothing': 'There are no more pages for you. Thank you very much!',
    'later': 'Other people are working on the remaining pages. Thank you very much!',
}
_NO_PAGES = {
    'nothing': 'All places in this study are taken, so there is no page for you. We are sorry.',
    'later': 'Other people are working on the remaining pages. Please come back to this address in an hour.',
}
_NOT_YOURS = 'This page is not yours.'
_DONE = 'You have handed in this page already, and what you said then counts. Please reload to go on.'


def application(study, folder, store, keys, options):
    """As `server.app`."""
    address = _http.Address(options.local, options.behind)
    site = _Site(study, folder, store, keys, options, address)
    routes = [
        routing.Route('/', site.intro),
        routing.Route('/begin', site.begin, methods=['POST']),
        routing.Route('/page', site.page),
        routing.Route('/page/{page}/draft', site.draft, methods=['POST']),
        routing.Route('/page/{page}/submit', site.submit, methods=['POST']),
        routing.Route('/images/{name}', site.image),
        *_admin.routes(study, store, keys, address),
    ]
    handlers = {
        404: _answers.missing,
        405: _answers.missing,
        _http.Refused: _answers.refused,
        sqlite3.Error: _answers.not_saved,
    }
    inner = applications.Starlette(routes=routes, exception_handlers=handlers)
    inner.router.redirect_slashes = False
    return _http.Guard(inner, address, _answers.refusal)


class _Site:
    """What raters see."""

    def __init__(self, study, folder, store, keys, options, address):
        self._study, self._store, self._keys, self._options, self._address = study, store, keys, options, address
        self._form = forms.of(study)
        self._images = (folder / IMAGES).resolve()
        self._pictures = {item.image for item in study.items.values() if item.image}
        self._pages = {page.id: page for page in study.pages}
        self._timeout = options.timeout * 60
        self._root = address.prefix
        # Two studies on one machine have one host name, and cookies know no ports.
        self._cookie = 'rater_' + keys.digest('cookie', '')[:8]
        self._newcomers, self._requests = _http.Limit(200, 5), _http.Limit(100, 5)

    async def intro(self, request):
        """GET /: changes nothing, so that a link can be looked at by programs."""
        hidden = {name: request.query_params[name] for name in _PLATFORM if name in request.query_params}
        self._platform(hidden)
        form_ = {'action': f'{self._root}/begin', 'hidden': hidden, 'button': 'I agree: begin', 'secret': ''}
        text = self._options.intro.strip() or self._form.intro
        return _answers.notice(self._form.title, *re.split(r'\n\s*\n', text), form=form_)

    async def begin(self, request):
        self._newcomers.take()
        ids = self._platform(await _http.form(request))
        away = responses.RedirectResponse(f'{self._root}/page', status_code=303)
        if not ids and await self._rater(request):
            return away
        rater = self._keys.rater(f'prolific:{ids[0]}' if ids else f'browser:{secrets.token_hex(32)}')
        session = secrets.token_urlsafe(32)
        await run_in_threadpool(self._store.begin, rater, _hash(session), ids)
        away.set_cookie(
            self._cookie,
            session,
            max_age=_MONTH,
            path=self._root or '/',
            secure=self._address.secure,
            httponly=True,
            samesite='lax',  # strict would not come along with the link from a platform
        )
        return away

    async def page(self, request):
        rater = await self._rater(request)
        if rater is None:
            return responses.RedirectResponse(f'{self._root}/', status_code=303)
        given = await run_in_threadpool(
            self._store.next, rater, timeout=self._timeout, max_pages=self._options.max_pages
        )
        if not given.page:
            return self._end(given)
        page = self._pages[given.page]
        html = await run_in_threadpool(
            self._form.page,
            self._study,
            page,
            urls={item.id: f'{self._root}/images/{item.image}' for item in self._study.of(page) if item.image},
            draft_url=f'{self._root}/page/{page.id}/draft',
            submit_url=f'{self._root}/page/{page.id}/submit',
            token=self._token(request),
            answers=self._form.parse(given.draft, self._study, page),
            progress=(given.done, min(self._options.max_pages, len(self._pages))),
        )
        return responses.HTMLResponse(html)

    def _end(self, given: _store.Given):
        """Thanks. The code is for those who did something and may not do more."""
        if not given.done and given.why in _NO_PAGES:
            return _answers.notice('No page at the moment', _NO_PAGES[given.why])
        if given.why == 'rejected':
            return _answers.notice('The end', _ENDS['rejected'])
        code = self._keys.completion_code
        link = {'url': _COMPLETE + urllib.parse.quote(code), 'text': 'Back to Prolific'} if given.paid else None
        return _answers.notice(
            'The end', f'Pages that you have done: {given.done}. {_ENDS[given.why]}', code=code, link=link
        )

    async def draft(self, request):
        rater, page, answers = await self._sent(request)
        await self._save(page, rater, answers, refused=False)
        return responses.JSONResponse({'saved': True})

    async def submit(self, request):
        rater, page, answers = await self._sent(request)
        if problems := self._form.check(self._study, page, answers):
            await self._save(page, rater, answers, refused=True)
            return responses.JSONResponse({'problems': [dataclasses.asdict(p) for p in problems]}, status_code=422)
        if await run_in_threadpool(self._store.submit, page.id, rater, answers.fields()) is None:
            raise _http.Refused(403, _NOT_YOURS)
        # Asked again the answer is the same; of a second tab that says something else it would not be true.
        if await run_in_threadpool(self._store.answers, page.id, rater) != answers.fields():
            raise _http.Refused(409, _DONE)
        return responses.JSONResponse({'next': f'{self._root}/page'})

    async def image(self, request):
        name = request.path_params['name']
        path = self._images / name
        if name not in self._pictures or await self._rater(request) is None:
            return _answers.missing(request, None)
        # A link that leads out of the folder is none of the study's pictures.
        if not path.is_file() or path.resolve().parent != self._images or path.suffix.lower() not in _KINDS:
            return _answers.missing(request, None)
        kind = _KINDS[path.suffix.lower()]
        return responses.FileResponse(path, media_type=kind, headers={'cache-control': 'private, max-age=86400'})

    async def _sent(self, request):
        """(rater, page, answers) of a JSON request."""
        rater = await self._rater(request)
        if rater is None:
            raise _http.Refused(403, 'Your session is over: open the page again.')
        self._requests.take(rater)
        document = await _http.document(request)
        page = self._pages.get(request.path_params['page'])
        if page is None:
            raise _http.Refused(403, _NOT_YOURS)
        if set(document) != {'token', 'fields'} or not isinstance(document['fields'], Mapping):
            raise _http.Refused(400, 'Wanted token and fields.')
        if not _secrets.same(document['token'], self._token(request)):
            raise _http.Refused(403, 'Your session has changed: open the page again.')
        try:
            return rater, page, self._form.parse(document['fields'], self._study, page)
        except ValueError as error:
            raise _http.Refused(400, str(error)) from error

    async def _save(self, page, rater, answers, refused) -> None:
        save = functools.partial(self._store.save, timeout=self._timeout, refused=refused)
        state = await run_in_threadpool(save, page.id, rater, answers.fields())
        if state is None:
            raise _http.Refused(403, _NOT_YOURS)
        if state in (_store.DONE, _store.SURPLUS):
            raise _http.Refused(409, _DONE)

    async def _rater(self, request) -> str | None:
        session = request.cookies.get(self._cookie, '')
        return await run_in_threadpool(self._store.rater_of, _hash(session)) if session else None

    def _token(self, request) -> str:
        """Of the forms of this session; a page of another site cannot know it."""
        return self._keys.digest('form', request.cookies[self._cookie])

    def _platform(self, fields: Mapping[str, str]) -> tuple[str, str, str] | None:
        ids = tuple(fields.get(name, '') for name in _PLATFORM)
        if not any(ids):
            return None
        for name, value in zip(_PLATFORM, ids, strict=True):
            if (value or name == _PLATFORM[0]) and not _PLATFORM_ID.fullmatch(value):
                raise _http.Refused(400, f'The address of this page is not complete: {name} is missing or wrong.')
        return ids


def _hash(session: str) -> str:
    """What the database keeps of a session's token: who reads the file cannot use it."""
    return hashlib.sha256(session.encode()).hexdigest()
