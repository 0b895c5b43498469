"""Values of functions, from the records of processes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from breakscan.model.observations import FunctionSeen, Observations, joined_function
from breakscan.recording.records import (
    Code,
    CompileStarted,
    FileSeen,
    GraphCompiled,
    GraphRan,
    Record,
    ValuesMet,
    ValuesSeen,
)
from breakscan.source.regular_files import Digests, content_digest


def observations_of(processes: Iterable[Sequence[Record]]) -> Observations:
    """The observations of processes of one or more runs, without functions that share a name within their file."""
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
    last: dict[int, ValuesSeen] = {}
    met: dict[int, set[str]] = {}
    started = {one.compile_id: one.code for one in process if isinstance(one, CompileStarted)}
    for record in process:
        if isinstance(record, ValuesSeen):
            last[record.number] = record
        elif isinstance(record, ValuesMet):
            for number in record.functions:
                met.setdefault(number, set()).add(record.compile_id)
    of_graph = {one.graph: one.compile_id for one in process if isinstance(one, GraphCompiled)}
    runs: Counter[str] = Counter()
    for graph, times in {one.graph: one.runs for one in process if isinstance(one, GraphRan)}.items():
        if compile_id := of_graph.get(graph):
            runs[compile_id] = max(runs[compile_id], times)
    for number, seen in last.items():
        compiles = met.get(number, set())
        # A call that begins a graph of its own, after a break, was traced before as a part of its caller.
        own = {compile_id for compile_id in compiles if started.get(compile_id) == seen.code}
        calls = sum(max(1, runs[compile_id]) for compile_id in own or compiles)
        if digest := digests.get(seen.code.path):
            yield digest, seen, FunctionSeen(seen.names, calls, not seen.inlined)
