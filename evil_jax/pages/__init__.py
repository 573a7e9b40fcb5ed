"""HTML pages that work from one file: no network, a content-security policy, and untrusted text kept as text.

`render` is the only way to a page, `drawing` to a picture in a file of its own: jinja2 with autoescape. Of a page, the
style sheet and the script are inlined and are the only ones that its policy allows, by their hash. Data for the script
travels in a JSON block (`script_json`).
"""

import base64
import hashlib
import json
from collections.abc import Sequence

import jinja2
import markupsafe

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader('evil_jax.pages', 'templates'),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_FILE_SOURCES = "img-src data:; form-action 'none'"


def render(template: str, *, parts: Sequence[str] = (), served: bool = False, **context) -> str:
    """One self-contained HTML document.

    Args:
      template: name without the ending: 'report' is templates/report.html.j2, with report.js and report.css beside it
        if it has them.
      parts: names of further scripts, for sections that the template includes: '_comparison'.
      served: it comes from a server of ours: forms and the script may talk to that, and pictures come from it.
      **context: values of the template; text is escaped.
    """
    there = set(_ENVIRONMENT.list_templates())
    style = ''.join(_source(name) for name in ('page.css', f'{template}.css') if name in there)
    scripts = [name for part in (template, *parts) if (name := f'{part}.js') in there]
    # One element, since the policy names one hash.
    script = ''.join(map(_source, ['_dom.js', *scripts])) if scripts else ''
    sources = "img-src 'self' data:; connect-src 'self'; form-action 'self'" if served else _FILE_SOURCES
    policy = f"default-src 'none'; {sources}; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"
    return _ENVIRONMENT.get_template(f'{template}.html.j2').render(
        policy=policy, style=markupsafe.Markup(style), script=markupsafe.Markup(script), **context
    )


def drawing(template: str, **context) -> str:
    """A stand-alone SVG file, from templates/<template>.svg.j2; text is escaped."""
    return _ENVIRONMENT.get_template(f'{template}.svg.j2').render(**context)


def script_json(value) -> markupsafe.Markup:
    """JSON that may stand inside a script element: no character in it can end the element or start a tag."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(',', ':'))
    for character in '<>&\u2028\u2029':
        text = text.replace(character, f'\\u{ord(character):04x}')
    return markupsafe.Markup(text)


def _source(name: str) -> str:
    """Text of our own style sheet or script, as it is."""
    source, _, _ = _ENVIRONMENT.loader.get_source(_ENVIRONMENT, name)
    return source.replace('\r\n', '\n')  # browsers hash the text after this


def _hash(source: str) -> str:
    return 'sha256-' + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
