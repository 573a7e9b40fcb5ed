"""Stands in for a reader: a script that acts on a page in a browser without a head, and notes what it sees."""

import base64
import hashlib
import json
import pathlib
import re
import subprocess

from page_parser import Page

# `note(name, value)`: what `noted` finds.
NOTE = """
const note = (name, value) => {
  const node = document.createElement('pre');
  [node.id, node.hidden] = [name, true];
  node.textContent = JSON.stringify(value);
  document.body.append(node);
};
"""


def read(browser, path: pathlib.Path, script: str) -> str:
    """The page as it is when its own script and then this one have run in the narrowest window that there is.

    A page's policy allows no further script, so this one comes with the page's own, under a policy that allows both.
    """
    text = path.read_text(encoding='utf-8')
    digest = lambda source: base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    own = Page(text).inside['script'][-1]
    trusted = text.replace(digest(own), digest(own + script)).replace(own, own + script)
    assert trusted.count(script) == 1 and digest(own + script) in trusted
    path.write_text(trusted, encoding='utf-8')
    command = [browser, '--headless', '--no-sandbox', '--disable-gpu', '--window-size=500,900', '--dump-dom']
    return subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=60, check=True).stdout


def noted(shown: str, name: str):
    return json.loads(Page(re.search(f'<pre id="{name}"[^>]*>(.*?)</pre>', shown)[1]).text)
