"""A table with a title, as the terminal report has them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Row = tuple[str, ...]


def table_heading(title: str) -> Text:
    return Text(f"\n{title}", "bold underline")


def titled_table(title: str, columns: Sequence[str], rows: Sequence[Row]) -> RenderableType | None:
    """None without rows.  A column that begins with ``>`` holds numbers; one that no row fills is left out."""
    if not rows:
        return None
    filled = [n for n in range(len(columns)) if any(row[n] for row in rows)]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for column in (columns[n] for n in filled):
        name = column.removeprefix(">")
        table.add_column(Text(name), justify="right" if name != column else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[n]) for n in filled))
    return Group(table_heading(title), table)
