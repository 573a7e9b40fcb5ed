"""Tables at the terminal and in logs."""

import rich.console
import rich.markup
import rich.table


def console() -> rich.console.Console:
    """Where tables go; a log is wide, as it has no edge to fold at."""
    found = rich.console.Console()
    if not found.is_terminal:
        found.width = 160
    return found


def show(title: str, columns, rows) -> None:
    """Prints a table of texts, whose first cells are names."""
    table = rich.table.Table(title=rich.markup.escape(title))
    for number, column in enumerate(columns):
        table.add_column(rich.markup.escape(column), justify='right' if number else 'left')
    for row in rows:
        table.add_row(*map(rich.markup.escape, row))
    console().print(table)
