"""Source text, including text without a file: the code of ``python -c``, a cell of a notebook."""

from __future__ import annotations

import linecache
from pathlib import Path

from breakscan.source.module import decode_source


def remember_source(path: str, text: str) -> None:
    """Stores the text of a path that names no file, such as ``<string>``, where tracebacks also find it."""
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)


def source_text(path: str) -> str:
    """The text of a file, or else the text that was stored for it.

    Raises OSError if there is neither, ValueError for a path that no file can have, SourceProblem if the file
    is not text.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError):
        # For a path that it does not know yet, linecache would look for a file of that name in all of sys.path.
        if path in linecache.cache and (lines := linecache.getlines(path)):
            return "".join(lines)
        raise
    return decode_source(data, path)
