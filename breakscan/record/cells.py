"""Names for the cells of a notebook, as IPython's own tracebacks have them."""

from __future__ import annotations

import linecache
import sys
from typing import Any

from breakscan.source.module import remember_source
from breakscan.source.paths import display_path


class ShownPaths:
    """What reports call a file: a cell of the notebook that runs in this process ``In[3]``, another one by its path
    from a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, path: str) -> str:
        number = cell_numbers().get(path)
        if number is None:
            return display_path(path, self._folder)
        name = f"In[{number}]"
        remember_source(name, "".join(linecache.getlines(path)))
        return name


def cell_numbers() -> dict[str, int]:
    """The files of cells, each with the cell's number; empty where no IPython runs."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    numbers: dict[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return numbers
