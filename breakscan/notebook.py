"""``%%breakscan``: runs a cell of a notebook, and shows below it what ``torch.compile`` did.

::

    %load_ext breakscan.notebook"""

import contextlib
from collections.abc import Iterator
from typing import Any

from IPython.core import display_functions, magic_arguments
from IPython.core.getipython import get_ipython

from breakscan.api import cell_numbers, record


class CellFailed(Exception):
    """Ends a cell whose traceback has already been shown, above the report, with one line below it."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def breakscan(line: str, cell: str) -> None:
    """Run the cell, and show where torch.compile broke the graph, fell back to eager or recompiled.

    %%breakscan [--keep-going] [--text]

    --keep-going  ignore fullgraph=True, and report all breaks instead of the first one
    --text        show the report as text instead of HTML"""
    arguments: Any = magic_arguments
    parser = arguments.MagicArgumentParser("%%breakscan", add_help=False)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--text", action="store_true")
    options = parser.parse_argstring(line)
    shell: Any = get_ipython()
    with record(keep_going=options.keep_going) as recording, _number_of_this_cell(shell):
        # The line of the magic is part of the cell: with it, lines have the numbers that the notebook shows.
        result = shell.run_cell(f"# %%breakscan\n{cell}")
    report = recording.explain()
    if options.text:
        print(report)
    else:
        show: Any = display_functions.display
        show(report)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        raise CellFailed(f"{type(error).__name__}: {error}") from None


@contextlib.contextmanager
def _number_of_this_cell(shell: Any) -> Iterator[None]:
    """From IPython 9 on, the shell increments its counter before it runs a cell: a nested cell would get the next."""
    following = shell.execution_count
    shell.execution_count = max(cell_numbers().values(), default=following)
    try:
        yield
    finally:
        shell.execution_count = following


def load_ipython_extension(shell: Any) -> None:
    """For ``%load_ext``."""
    shell.register_magic_function(breakscan, "cell")


def unload_ipython_extension(shell: Any) -> None:
    """For ``%unload_ext``."""
    shell.magics_manager.magics["cell"].pop("breakscan", None)
