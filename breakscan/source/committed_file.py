"""Files that breakscan writes and a project commits, which say what is allowed: the lock and the baseline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from breakscan.source.toml_text import TomlProblem, parse_toml
from breakscan.source.writing import replace_content


class CommittedFileError(Exception):
    """Such a file cannot be used.  Names the file, and says why and what to do."""


def read_committed(path: Path, version: int, what: str) -> dict[str, Any] | None:
    """The values of a file of a format ``version``; None where there is no file.  ``what`` it is: ``lock``.

    Raises CommittedFileError.
    """
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except TomlProblem as problem:
        raise CommittedFileError(f"{path} is damaged: {problem}. Fix it, or delete it to start again") from problem
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommittedFileError(f"{path} cannot be read: {reason}") from error
    found = data.get("version")
    if type(found) is int and found > version:
        raise CommittedFileError(f"{path} was written by a newer breakscan: update breakscan")
    if found != version:
        raise not_ours(path, what)
    return data


def not_ours(path: Path, what: str) -> CommittedFileError:
    """The error for a file of something else."""
    return CommittedFileError(f"{path} is no {what} of breakscan's: name another file")


def damaged(path: Path, where: str, key: str) -> CommittedFileError:
    """The error for a value that a file of ours cannot have."""
    return CommittedFileError(f"{path} is damaged at {where}: {key!r} is wrong. Fix it, or delete it to start again")


def write_committed(path: Path, text: str) -> None:
    """Puts a file into place as a whole, where its content differs.  Raises CommittedFileError."""
    data = text.encode()
    real = Path(os.path.realpath(path))
    try:
        if real.exists() and real.read_bytes() == data:
            return
        replace_content(real, data)
    except OSError as error:
        raise CommittedFileError(f"cannot write {path}: {error.strerror}") from error
