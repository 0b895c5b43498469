"""The part of a run's compiled code that the user can change."""

from __future__ import annotations

import re
from collections.abc import Mapping

from breakscan.explain.agreement.sources import Sources
from breakscan.explain.explanation import Explanation, FrameStatus
from breakscan.model.findings import Finding, Kind
from breakscan.source.outline import without_locals

_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?P<package>[^/]+)")
_STANDARD = re.compile(r".*/lib/python3\.\d+/(?!(?:site|dist)-packages/)|<frozen ")
_COMPARED = (Kind.GRAPH_BREAK, Kind.RECOMPILE)


def traced_functions(explanation: Explanation, sources: Sources) -> dict[str, dict[str, bool]]:
    """Returns the functions that the compiler entered, by file, in files that a user may want to change. The value is
    True if Dynamo started there, and False if it followed a call.
    """
    found: dict[str, dict[str, bool]] = {}

    def add(path: str, function: str | None, is_root: bool) -> None:
        if function is not None and is_wanted(path) and sources.module(path) is not None:
            names = found.setdefault(path, {})
            names[function] = names.get(function, False) or is_root

    for graph in explanation.graphs:
        if graph.site:
            add(graph.site.path, graph.function, True)
    for compiled in explanation.compiles:
        add(compiled.site.path, compiled.function, True)
    for frame in explanation.frames:
        if frame.status is not FrameStatus.PASSED_OVER:
            add(frame.site.path, frame.function, True)
    roots = {(path, function) for path, names in found.items() for function in names}
    for path, lines in explanation.traced.items():
        if is_wanted(path):
            for line in lines:
                add(path, sources.function(path, line), False)
    for site in explanation.breaks:
        stack = [(caller.path, sources.function(caller.path, caller.line) or caller.function) for caller in site.stack]
        first = max((n for n, caller in enumerate(stack) if caller in roots), default=len(stack))
        for caller in stack[first:]:
            add(*caller, False)
        add(site.site.path, sources.function(site.site.path, site.site.line) or site.function, False)
    return {path: found[path] for path in sorted(found)}


def with_enclosing(names: Mapping[str, bool]) -> dict[str, bool]:
    """Returns the functions and their enclosing functions, which bind the names that a lambda uses."""
    parts = (name.split(".") for name in names)
    enclosing = {".".join(part[:n]): False for part in parts for n in range(1, len(part))}
    return {**enclosing, **names}


def is_wanted(path: str) -> bool:
    """Returns whether a file may be one that a user wants to change: not torch's or the standard library's."""
    installed = _INSTALLED.match(path)
    return not _STANDARD.match(path) and not (installed and installed["package"] == "torch")


def is_compiled(finding: Finding, functions: Mapping[str, Mapping[str, bool]]) -> bool:
    """Returns whether a finding lies in a function that the run compiled."""
    name = without_locals(finding.function or "")
    return finding.kind in _COMPARED and name in functions.get(finding.site.path, {})
