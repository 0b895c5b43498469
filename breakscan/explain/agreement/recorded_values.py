"""What a recording says of the values of functions, as the static analysis takes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from breakscan.check.project.digests import Digests
from breakscan.explain.function_values import recorded_functions
from breakscan.model.observations import FunctionSeen, Observations, joined_function
from breakscan.record.records import Code, FileSeen, Record, ValuesSeen
from breakscan.source.regular_files import content_digest


def observations_of(processes: Iterable[Sequence[Record]]) -> Observations:
    """What processes of one or more runs saw.

    A function that shares its name with another one of its file is left out.
    """
    paths: dict[str, str] = {}
    found: dict[tuple[str, str], tuple[Code, FunctionSeen]] = {}
    shared: set[tuple[str, str]] = set()
    for process in processes:
        for digest, seen, function in _functions(process, paths):
            key = digest, seen.qualname or ""
            code, known = found.get(key, (seen.code, None))
            if code.line != seen.code.line:
                shared.add(key)
            found[key] = code, function if known is None else joined_function(known, function)
    files: dict[str, dict[str, FunctionSeen]] = {}
    for (digest, name), (_, function) in sorted(found.items(), key=lambda entry: entry[0]):
        if name and (digest, name) not in shared:
            files.setdefault(digest, {})[name] = function
    return Observations(files, paths, content_digest(repr(files).encode()))


def changed_since(observations: Observations, files: Iterable[Path]) -> list[Path]:
    """The files, by their absolute paths, that have another content than the one that was recorded."""
    known = ((path, observations.paths.get(str(path))) for path in files)
    return [path for path, digest in known if digest is not None and digest != Digests().of(str(path))]


def _functions(process: Sequence[Record], paths: dict[str, str]) -> Iterator[tuple[str, ValuesSeen, FunctionSeen]]:
    """The functions of one process, each with the digest of its file."""
    digests = {one.path: one.digest for one in process if isinstance(one, FileSeen)}
    paths |= digests
    for function in recorded_functions(process):
        if digest := digests.get(function.record.code.path):
            yield digest, function.record, function.seen
