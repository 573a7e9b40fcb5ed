"""Anybody's text inside other formats: no formula of a spreadsheet, no mark of Markdown, no command of TeX."""

import re

_TEX = {
    '\\': r'\textbackslash{}', '{': r'\{', '}': r'\}', '&': r'\&', '%': r'\%', '$': r'\$', '#': r'\#', '_': r'\_',
    '~': r'\textasciitilde{}', '^': r'\textasciicircum{}', '<': r'\textless{}', '>': r'\textgreater{}',
    '|': r'\textbar{}',
    '"': r'\textquotedbl{}', '±': r'$\pm$',
}  # fmt: skip
_MARKDOWN = re.compile(r'([\\`*_\[\]|~$])')


def csv(value) -> str:
    """A value as a cell. Strings alone can be formulas: they get a ' in front, which programs take for "text"."""
    if value is None:
        return ''
    if isinstance(value, str):
        return f"'{value}" if value.lstrip(' ').startswith(('=', '+', '-', '@', '\t', '\r')) else value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) >= 2 else repr(value)  # counts are counts
    return value


def markdown(text) -> str:
    """Text that Markdown shows as it is: one line, nothing in it a mark, a cell's end or a tag."""
    text = _MARKDOWN.sub(r'\\\1', ' '.join(str(text).split()))
    return text.replace('<', '&lt;').replace('>', '&gt;')


def tex(text) -> str:
    """Text that LaTeX (T1 fonts) shows as it is: one line."""
    return ''.join(_TEX.get(c, c) for c in ' '.join(str(text).split()))
