"""Writes the repairs of files. A file that cannot be written does not prevent the others from being written."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.fix.result import FileRepair
from breakscan.model.findings import SourceError
from breakscan.source.module import SourceProblem
from breakscan.source.writing import encoded, rewrite_file


def new_content(repair: FileRepair) -> bytes:
    """The content of a file after its repair.  Raises SourceProblem if its encoding lacks a character."""
    if not repair.changed:
        return repair.data
    try:
        return encoded(repair.path, repair.data, repair.after)
    except UnicodeEncodeError as error:
        raise SourceProblem(
            SourceError(repair.display, 1, 1, f"cannot be written: its encoding, {error.encoding}, lacks a character")
        ) from error


def write_repairs(repairs: Iterable[FileRepair]) -> tuple[SourceError, ...]:
    """Writes the files that change. Returns the reasons why some could not be written; those are left unchanged."""
    errors: list[SourceError] = []
    for repair in repairs:
        if repair.changed:
            try:
                rewrite_file(repair.path, repair.display, repair.before, repair.after)
            except SourceProblem as problem:
                errors.append(problem.error)
    return tuple(errors)
