"""Anybody's text inside other formats: no mark of Markdown, no command of TeX (cells of CSV: `text.csv_cell`)."""

import re

_TEX = {
    '\\': r'\textbackslash{}', '{': r'\{', '}': r'\}', '&': r'\&', '%': r'\%', '$': r'\$', '#': r'\#', '_': r'\_',
    '~': r'\textasciitilde{}', '^': r'\textasciicircum{}', '<': r'\textless{}', '>': r'\textgreater{}',
    '|': r'\textbar{}',
    '"': r'\textquotedbl{}', '±': r'$\pm$',
}  # fmt: skip
_MARKDOWN = re.compile(r'([\\`*_\[\]|~$])')


def markdown(text) -> str:
    """Text that Markdown shows as it is: one line, nothing in it a mark, a cell's end or a tag."""
    text = _MARKDOWN.sub(r'\\\1', ' '.join(str(text).split()))
    return text.replace('<', '&lt;').replace('>', '&gt;')


def tex(text) -> str:
    """Text that LaTeX (T1 fonts) shows as it is: one line."""
    return ''.join(_TEX.get(c, c) for c in ' '.join(str(text).split()))
