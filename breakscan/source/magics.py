"""The magic commands of a notebook's cell, hidden from the parser of Python without moving a line or a column.

Each line of a command becomes a statement that does nothing, with the line itself behind :data:`MAGIC`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings

MAGIC = "#\ufdd0"
"""What stands before a hidden line.  Unicode keeps this character for the internal use of programs."""

_CELL_MAGICS_OF_PYTHON = frozenset({"breakscan", "capture", "debug", "memit", "prun", "time", "timeit"})
"""Those that run the rest of their cell in the notebook itself."""

_WITHOUT_ESCAPE = frozenset(
    {
        "alias", "autoreload", "cat", "cd", "conda", "cp", "env", "load_ext", "ls", "mamba", "matplotlib", "mkdir",
        "mv", "pip", "pwd", "reload_ext", "rm", "rmdir", "run", "uv",
    }
)  # fmt: skip
"""Commands that IPython also takes without their ``%``, where they are all of a cell."""
_CELL_MAGIC = re.compile(r"%%\S")
_ESCAPES = ("%", "!", "?", ",", ";", "/")
"""No line of Python begins with one of these."""
_HELP = re.compile(r"[^#'\"]*\?")
_ASSIGNED = re.compile(r"(?P<target>[\w.,\s\[\]*'\"]+)=\s*(?:!|%[^\W\d])")
_TIMED = re.compile(r"%time(?:it)?\s+(?:-[a-zA-Z]+(?:\s*\d+)?\s+)*")


def hidden(source: str) -> str | None:
    """The text of a cell with its magic commands hidden; None where the cell holds another language."""
    lines = source.split("\n")
    if _is_bare_command(source):
        return "\n".join(f"pass{MAGIC}{line}" if line.strip() else line for line in lines)
    made: list[str] = []
    continued: str | None = None
    is_head = True
    for line in lines:
        is_head = is_head and (not line.strip() or _CELL_MAGIC.match(line) is not None)
        if is_head:
            if line.strip() and line[2:].split(None, 1)[0] not in _CELL_MAGICS_OF_PYTHON:
                return None
            made.append(f"pass{MAGIC}{line}" if line.strip() else line)
            continue
        if continued is not None:
            made.append(f"{continued}pass{MAGIC}{line}")
            continued = continued if line.endswith("\\") else None
            continue
        statement = _in_place_of(line)
        if statement is not None and not _is_open(made):
            indent = line[: len(line) - len(line.lstrip())]
            made.append(f"{indent}{statement}{MAGIC}{line}")
            continued = indent if line.endswith("\\") else None
        else:
            made.append(line)
    return "\n".join(made)


def shown(text: str) -> str:
    """The text of a cell before :func:`hidden`."""
    return "\n".join(line.partition(MAGIC)[2] if MAGIC in line else line for line in text.split("\n"))


def _in_place_of(line: str) -> str | None:
    """The statement that stands for a command, if the line is one and begins a statement; else None."""
    bare = line.strip()
    if timed := _TIMED.match(bare):
        rest = bare[timed.end() :]
        # The code that is timed stays in its columns.
        statement = f"{'None;':<{timed.end()}}{rest}"
        return statement if _is_python(statement) else "pass"
    if bare.startswith(_ESCAPES) or _HELP.fullmatch(bare):
        return "pass"
    if (assigned := _ASSIGNED.match(bare)) and not _is_python(bare):
        return f"{assigned['target']}= get_ipython()"
    return None


def _is_bare_command(source: str) -> bool:
    bare = source.strip()
    return "\n" not in bare and bare.partition(" ")[0] in _WITHOUT_ESCAPE and not _is_python(bare)


def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_open(lines: list[str]) -> bool:
    """Whether a statement, or a string, goes on after these lines."""
    try:
        for _ in tokenize.generate_tokens(io.StringIO("\n".join([*lines, ""])).readline):
            pass
    except tokenize.TokenError as error:
        return "EOF in multi-line" in error.args[0] or "triple-quoted" in error.args[0]
    except SyntaxError:
        pass
    return False
