"""Answers of the server of a study that are no page to work on: a notice for people, JSON for the page's script."""

from starlette import requests, responses

from evil_jax import pages
from evil_jax.human import _http


def notice(title: str, *paragraphs: str, status: int = 200, code: str = '', link=None, form=None):
    """A page with a few sentences.

    Args:
      title, paragraphs: texts.
      status: of HTTP.
      code: the completion code.
      link: {'url', 'text'}.
      form: {'action', 'hidden': {name: value}, 'button', 'secret': label of a token to be typed in, or ''}.
    """
    html = pages.render(
        'study_notice', served=True, title=title, paragraphs=paragraphs, code=code, link=link, form=form
    )
    return responses.HTMLResponse(html, status_code=status)


def refused(request, error: _http.Refused):
    """Why a request was not served, to whoever sent it."""
    if request.headers.get('content-type', '').startswith('application/json'):
        return responses.JSONResponse({'error': error.message}, status_code=error.status)
    return notice('That did not work', error.message, status=error.status)


def refusal(scope, error: _http.Refused):
    """The same outside of the application."""
    return refused(requests.Request(scope), error)


def missing(request, error):
    """There is no such page, or none that this person may see."""
    return refused(request, _http.Refused(getattr(error, 'status_code', 404), 'There is nothing here.'))


def not_saved(request, error):
    """The disk is full, or the database is blocked: nothing of the request was kept."""
    return refused(request, _http.Refused(503, f'This could not be saved ({error}). Please try again in a minute.'))
