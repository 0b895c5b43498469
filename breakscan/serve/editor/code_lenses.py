"""What stands above functions: where they are compiled from, and what they cost in the last recorded run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lsprotocol import types

from breakscan.explain.function_costs import FunctionCost
from breakscan.model.findings import CompiledFunction, Site
from breakscan.report.editor import compiled_words, cost_words
from breakscan.serve.editor.open_text import OpenText
from breakscan.source.module import SourceProblem
from breakscan.source.outline import code_of, functions_by_name, without_locals
from breakscan.source.python_text import parse_text


def lenses_of(
    opened: OpenText, compiled: Iterable[CompiledFunction], costs: Mapping[str, FunctionCost], uri: str
) -> list[types.CodeLens]:
    """Those of a document.  ``costs`` are those of its file: where the code is another one now, nothing is said."""
    try:
        module = parse_text(opened.text, opened.path, str(opened.path))
    except SourceProblem:
        return []
    places: dict[str, list[CompiledFunction]] = {}
    for one in compiled:
        places.setdefault(without_locals(one.name), []).append(one)
    found = []
    for name, scope in functions_by_name(module).items():
        cost = costs.get(name)
        said = compiled_words(places[name]) if name in places else None
        if cost is not None and cost.code == code_of(module, scope):
            said = " · ".join(filter(None, [said, cost_words(cost)]))
        if not said:
            continue
        line = scope.node.lineno
        part, place = opened.range_of(Site("", line, scope.node.col_offset + 1, line, scope.node.col_offset + 1))
        if part.uri == uri:
            found.append(types.CodeLens(place, types.Command(said, "")))
    return found
