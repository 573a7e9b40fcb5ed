"""Tables and warnings at the terminal and in logs."""

import contextlib
import warnings
from collections.abc import Iterator

import rich.console
import rich.markup
import rich.table


def console() -> rich.console.Console:
    """Where tables go; a log is wide, as it has no edge to fold at."""
    found = rich.console.Console()
    if not found.is_terminal:
        found.width = 160
    return found


def show(title: str, columns, rows, *, numbers: bool = True) -> None:
    """Prints a table of texts, whose first cells are names and the others numbers (or not)."""
    table = rich.table.Table(title=rich.markup.escape(title))
    for number, column in enumerate(columns):
        table.add_column(rich.markup.escape(column), justify='right' if number and numbers else 'left')
    for row in rows:
        table.add_row(*map(rich.markup.escape, row))
    console().print(table)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Prints warnings for the user as the rest of a mode does, once each and without the line of code."""
    told = set()
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message, category, *where, **more):
            if category is UserWarning:
                if str(message) not in told:
                    print(f'warning: {message}')
                told.add(str(message))
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        yield
