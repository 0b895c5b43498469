"""Source text, also where no file holds it: the code of ``python -c``, a cell of a notebook."""

from __future__ import annotations

import linecache
from pathlib import Path

from breakscan.source.module import decode_source


def remember_source(path: str, text: str) -> None:
    """Keeps the text of a path that names no file, such as ``<string>``, where tracebacks look for it as well."""
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)


def source_text(path: str) -> str:
    """The text of a file, else what is remembered of it.

    Raises OSError where there is neither, ValueError for a path that no file can have, SourceProblem where the file
    is not text.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError):
        # Asked for what it does not know yet, linecache would look for a file of that name all over sys.path.
        if path in linecache.cache and (lines := linecache.getlines(path)):
            return "".join(lines)
        raise
    return decode_source(data, path)
