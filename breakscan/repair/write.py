"""Writes the repairs of files. A file that cannot be written does not prevent the others from being written."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.findings import SourceError
from breakscan.repair.result import FileRepair
from breakscan.source.module import SourceProblem
from breakscan.source.writing import rewrite_file


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
