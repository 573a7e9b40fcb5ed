"""The server of a study: pages to raters, one at a time, and what they said into a database (`_store.py`).

Paths (below the path of `behind`, if there is one):

    GET  /                      what this is, and consent; with ?PROLIFIC_PID=&STUDY_ID=&SESSION_ID= for that rater
    POST /begin                 form; a session for this browser, in a cookie
    GET  /page                  the page that this rater works on, with what was filled in before; after the last one
                                thanks and the completion code
    POST /page/{page}/draft     JSON {"token": TEXT, "fields": {NAME: [VALUE, ...]}} -> 200 {"saved": true}
    POST /page/{page}/submit    the same -> 200 {"next": URL}; 422 {"problems": [{"field", "item", "rule", "message"}]}
    GET  /images/{name}         a picture of the study
    GET  /admin                 progress, for who has the token; POST /admin/login, /admin/logout, /admin/rater;
                                GET /admin/ratings.csv, /admin/ratings.jsonl, /admin/payments.csv (`_admin.py`)

Any other answer is JSON {"error": TEXT} to a POST of JSON (400 what was sent is no form, 403 no session or not this
rater's page, 409 handed in already, with other answers, 413 too large, 429 too fast, 503 not saved) and a page that
says it otherwise.

What was answered with 200 is on the disk. A rater who comes with the ids of Prolific goes on where this rater stopped,
in any browser; without, in the same browser.
"""

import contextlib
import dataclasses
import importlib
import ipaddress
import pathlib
import signal
import socket
import warnings
from collections.abc import Iterator

from evil_jax import records
from evil_jax.human import _http, _secrets, _store
from evil_jax.human.study import Study

LOCK = 'server.lock'
_PROLIFIC = 'PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}'


@dataclasses.dataclass(frozen=True)
class Options:
    """How a study is served.

    Attributes:
      intro: text before the first page: who asks, consent, contact. Paragraphs have blank lines between them.
      behind: 'https://HOST/PATH' where a proxy makes this server known, and passes the Host header on or not.
      max_pages: of one rater; 0 = as many as there are.
      timeout: minutes until a page that nobody touched is given to somebody else.
      local: bound to the loopback interface: no other name is answered to than localhost, 127.0.0.1, ::1 and `behind`.
    """

    intro: str = ''
    behind: str = ''
    max_pages: int = 0
    timeout: float = 60
    local: bool = True

    def __post_init__(self):
        _http.Address(self.local, self.behind)
        if self.max_pages < 0 or self.timeout <= 0:
            raise ValueError(
                f'max_pages {self.max_pages} and timeout {self.timeout}, wanted 0 or more, and more than 0'
            )


def serve(folder, *, host: str = '127.0.0.1', port: int = 8080, options: Options | None = None, tell=print) -> None:
    """Serves the study in `folder` until it is interrupted (SIGINT, SIGTERM).

    Args:
      folder: has study.json and images/; the database, secrets.json and the lock are written there.
      host: address of this machine; one that is not a loopback address is warned of.
      port: 0 = any that is free.
      options: as for `app`; `local` is found from the host.
      tell: is given each line of what to know, the address first.

    Raises:
      ValueError: no study, another server in the folder, the port is taken, packages are missing.
    """
    uvicorn = _needed('uvicorn')
    folder, study = pathlib.Path(folder), Study.open(folder)
    with contextlib.ExitStack() as stack:
        stack.enter_context(records.locked(folder / LOCK, f'{folder}: a server is at work on this study'))
        listening = stack.enter_context(listen(host, port))
        local = ipaddress.ip_address(listening.getsockname()[0]).is_loopback
        options = dataclasses.replace(options or Options(), local=local)
        keys = _secrets.open_or_make(folder)
        store = stack.enter_context(contextlib.closing(_store.Store(folder / _store.FILE, study)))
        application = app(study, folder, store, keys, options)
        shown = socket.gethostname() if host in ('0.0.0.0', '::') else f'[{host}]' if ':' in host else host
        address = options.behind.rstrip('/') or f'http://{shown}:{listening.getsockname()[1]}'
        if not local:
            message = f'{host} can be reached from other machines; without https anybody between can read along'
            warnings.warn(message, stacklevel=2)
        tell(f'Raters:     {address}/')
        tell(f'Experiment: {address}/admin  (token: admin_token in {folder / _secrets.FILE})')
        tell(f'Completion: {keys.completion_code}  (completion_code in the same file)')
        tell(f'Prolific:   {address}/?{_PROLIFIC}')
        config = uvicorn.Config(
            application,
            access_log=False,  # addresses have ids of people
            log_level='warning',
            server_header=False,
            proxy_headers=False,
            lifespan='off',
            http='h11',  # the other one, which is taken where it is installed, bounds no headers
            ws='none',
            limit_concurrency=1_000,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=10,
        )
        running = uvicorn.Server(config)
        with _signals(running):
            running.run(sockets=[listening])


@contextlib.contextmanager
def _signals(running) -> Iterator[None]:
    """SIGINT and SIGTERM end the server and no more: it raises them again when it is done, and then all is well."""

    def end(*_):
        running.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def app(study: Study, folder, store: _store.Store, keys: _secrets.Secrets, options: Options):
    """The ASGI application: study and pictures of `folder`, its database and secrets."""
    _needed('starlette')
    from evil_jax.human import _site

    return _site.application(study, pathlib.Path(folder), store, keys, options)


def _needed(package: str):
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ValueError(f"{package} is needed to serve a study: pip install 'evil_jax[human]' ({error})") from error


def listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise ValueError(f'{host}:{port}: cannot serve there: {error}') from error
