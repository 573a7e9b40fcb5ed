"""What every request to a study's server goes through: whose it is, where it comes from, how large and how often."""

import asyncio
import collections
import dataclasses
import json
import time
import urllib.parse
from collections.abc import Callable, Mapping

BODY = 64 * 1024  # bytes; a page of twenty explanations with the longest comment has 12 KiB
_PATIENCE = 30  # seconds for a body
_LOOPBACK = ('localhost', '127.0.0.1', '::1')
# `pages.render` puts the policy of a page into the page; what only a header can say stands here.
_HEADERS = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    # Not no-referrer: with that, browsers send "Origin: null" with forms. No other site learns an address either way.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
}
_HTML_POLICY = "frame-ancestors 'none'; object-src 'none'; base-uri 'none'"
_OTHER_POLICY = "default-src 'none'; frame-ancestors 'none'"


class Refused(Exception):
    """Why a request is not served: `status` of HTTP and a sentence for whoever sent it."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status, self.message = status, message


@dataclasses.dataclass(frozen=True)
class Address:
    """Where browsers find the server.

    Attributes:
      local: whether it is bound to the loopback interface: then it answers to no other name.
      behind: 'https://HOST/PATH' that a proxy makes of it; ''.
    """

    local: bool = True
    behind: str = ''

    def __post_init__(self):
        found = urllib.parse.urlsplit(self.behind)
        if self.behind and (
            found.scheme not in ('http', 'https') or not found.hostname or found.query or found.fragment
        ):
            raise ValueError(f"behind is {self.behind!r}, wanted 'https://HOST/PATH'")

    @property
    def prefix(self) -> str:
        """Path of `behind`, without a slash in the end."""
        return urllib.parse.urlsplit(self.behind).path.rstrip('/')

    @property
    def secure(self) -> bool:
        return self.behind.startswith('https:')

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names this server (another one may be a name that was bent to a loopback address)."""
        name = _hostname(host)
        return bool(name) and (not self.local or name in _LOOPBACK or name == _hostname(self._netloc))

    def ours(self, origin: str, host: str) -> bool:
        """Whether an Origin header names the site that the request goes to."""
        if self.behind and origin == f'{urllib.parse.urlsplit(self.behind).scheme}://{self._netloc}':
            return True
        return origin == f'http://{host}' and (not self.behind or _hostname(host) in _LOOPBACK)

    @property
    def _netloc(self) -> str:
        """As browsers write it: without the port that the scheme has anyway."""
        found = urllib.parse.urlsplit(self.behind)
        return found.netloc.lower().removesuffix(':443' if found.scheme == 'https' else ':80')


def _hostname(host: str) -> str:
    try:
        return urllib.parse.urlsplit(f'//{host}').hostname or ''
    except ValueError:
        return ''


class Guard:
    """ASGI: takes the path of a proxy away, refuses foreign names and origins, puts headers on all answers."""

    def __init__(self, app, address: Address, refuse: Callable):
        """`refuse(scope, error)` makes an ASGI application that says a `Refused`."""
        self._app, self._address, self._refuse = app, address, refuse

    async def __call__(self, scope, receive, send):
        if scope['type'] != 'http':
            return
        headers = {name.decode('latin-1'): value.decode('latin-1') for name, value in scope['headers']}
        prefix = self._address.prefix
        if prefix and (scope['path'] == prefix or scope['path'].startswith(prefix + '/')):
            scope = scope | {'path': scope['path'][len(prefix) :] or '/', 'root_path': ''}

        async def send_with_headers(message):
            if message['type'] == 'http.response.start':
                message = message | {'headers': _complete(message['headers'])}
            await send(message)

        app, host = self._app, headers.get('host', '')
        if not self._address.answers_to(host):
            app = self._refuse(scope, Refused(421, 'This server has another name.'))
        elif scope['method'] not in ('GET', 'HEAD') and not self._address.ours(headers.get('origin', ''), host):
            app = self._refuse(scope, Refused(403, 'This was sent from another site.'))
        await app(scope, receive, send_with_headers)


def _complete(headers) -> list[tuple[bytes, bytes]]:
    found = {name.lower() for name, _ in headers}
    kind = next((value for name, value in headers if name.lower() == b'content-type'), b'')
    more = _HEADERS | {'content-security-policy': _HTML_POLICY if kind.startswith(b'text/html') else _OTHER_POLICY}
    if b'cache-control' not in found:
        more['cache-control'] = 'no-store'
    return [*headers, *((name.encode(), value.encode()) for name, value in more.items())]


async def form(request) -> dict[str, str]:
    """Fields of a form; of a field that is there twice the last value."""
    _wanted(request, 'application/x-www-form-urlencoded')
    try:
        text = (await _body(request)).decode()
        return dict(urllib.parse.parse_qsl(text, keep_blank_values=True, max_num_fields=20, errors='strict'))
    except ValueError as error:
        raise Refused(400, f'This is no form: {error}.') from error


async def document(request) -> Mapping:
    """The JSON object that was sent."""
    _wanted(request, 'application/json')
    try:
        found = json.loads(await _body(request))
    except (ValueError, RecursionError) as error:
        raise Refused(400, 'This is no JSON.') from error
    if not isinstance(found, dict):
        raise Refused(400, 'This is no JSON object.')
    return found


def _wanted(request, kind: str) -> None:
    if request.headers.get('content-type', '').partition(';')[0].strip().lower() != kind:
        raise Refused(415, f'Wanted {kind}.')


async def _body(request) -> bytes:
    """Never keeps more than `BODY` bytes, whatever the headers say."""
    from starlette import requests

    parts, size = [], 0
    if request.headers.get('content-length', '0').isdigit() and int(request.headers.get('content-length', '0')) > BODY:
        raise Refused(413, f'More than {BODY} bytes.')
    try:
        async with asyncio.timeout(_PATIENCE):
            async for part in request.stream():
                size += len(part)
                if size > BODY:
                    raise Refused(413, f'More than {BODY} bytes.')
                parts.append(part)
    except TimeoutError as error:
        raise Refused(408, 'This took too long.') from error
    except requests.ClientDisconnect as error:  # a page that is left breaks off what it sends
        raise Refused(400, 'The connection was lost.') from error
    return b''.join(parts)


class Limit:
    """So many at once, and so many a second over time, for each key; it forgets keys that were not used for long."""

    def __init__(self, burst: float, rate: float, *, keys: int = 10_000, clock: Callable[[], float] = time.monotonic):
        self._burst, self._rate, self._keys, self._clock = burst, rate, keys, clock
        self._left: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()

    def take(self, key: str = '') -> None:
        """Raises Refused (429) when it was too much."""
        now = self._clock()
        left, then = self._left.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > self._keys:
            self._left.popitem(last=False)
        if left < 1:
            raise Refused(429, 'Too many requests: please wait a moment.')
