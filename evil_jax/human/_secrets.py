"""What a study keeps to itself: salt of rater ids, admin token, completion code. In secrets.json, 0600."""

import contextlib
import dataclasses
import hashlib
import hmac
import json
import os
import pathlib
import secrets
import stat
import tempfile

FILE = 'secrets.json'
_ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'  # no I, O, 0, 1: people copy the code by hand


@dataclasses.dataclass(frozen=True)
class Secrets:
    """Contents of secrets.json. Who edits the file may put the completion code there that a platform gave out.

    Attributes:
      salt: hexadecimal; rater ids and the tokens of forms are made with it.
      admin_token: opens /admin.
      completion_code: shown to raters after their last page.
    """

    salt: str
    admin_token: str
    completion_code: str

    def digest(self, purpose: str, text: str) -> str:
        """HMAC-SHA256 of a text, hexadecimal; nobody without the salt can make it, and each purpose has its own."""
        return hmac.new(bytes.fromhex(self.salt), f'{purpose}\0{text}'.encode(), hashlib.sha256).hexdigest()

    def rater(self, platform_id: str) -> str:
        """The id of a rater in everything that leaves the server: 'r' and 12 hexadecimal digits."""
        return 'r' + self.digest('rater', platform_id)[:12]


def same(given, wanted: str) -> bool:
    """Whether two tokens are the same, in a time that does not tell how much of them is."""
    return isinstance(given, str) and hmac.compare_digest(given.encode(errors='replace'), wanted.encode())


def open_or_make(folder) -> Secrets:
    """Reads `<folder>/secrets.json`; makes it where there is none. The caller has locked the folder.

    Raises:
      ValueError: others can read the file, or it is not what was written.
    """
    path = pathlib.Path(folder) / FILE
    if not path.exists():
        code = ''.join(secrets.choice(_ALPHABET) for _ in range(8))
        _write(path, Secrets(secrets.token_hex(32), secrets.token_urlsafe(24), code))
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ValueError(f'{path}: others can read it (mode {mode:04o}): chmod 600 {path}')
    try:
        row = json.loads(path.read_text(encoding='utf-8'))
        found = Secrets(**row)
        weak = len(bytes.fromhex(found.salt)) < 16 or len(found.admin_token) < 16
    except (ValueError, TypeError) as error:
        raise ValueError(f'{path}: not the secrets of a study: {type(error).__name__}: {error}') from error
    if weak or not isinstance(found.completion_code, str) or not found.completion_code.strip():
        wanted = 'a salt of 32 hexadecimal digits or more, an admin_token of 16 characters or more, a completion_code'
        raise ValueError(f'{path}: wanted {wanted}')
    return found


def _write(path: pathlib.Path, value: Secrets) -> None:
    """Nobody else can read the file at any time: mkstemp makes it 0600."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with os.fdopen(handle, 'w', encoding='utf-8') as file:
            json.dump(dataclasses.asdict(value), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
