"""Reads the code of graphs as torch prints it for its structured trace."""

from __future__ import annotations

import re

from breakscan.runtime.records.generated import AutogradGraph, AutogradNode, Saved
from breakscan.runtime.records.source import CodeLine, StackFrame

_ASSIGNMENT = re.compile(r'^ +(?P<name>\w+)(?:: "(?P<type>[^"]*)")? = (?P<value>[^;]+)')
_PARAMETER = re.compile(r'^ +(?P<name>\w+)(?:: "(?P<type>[^"]*)")?,(?: +# PlainAOTInput\(idx=(?P<input>\d+)\))?')
_SAVED = re.compile(r"^ +(?P<name>\w+), +# SavedForBackwardsAOTOutput\(")
_PLACE = re.compile(r"^ +#.*?\bFile: (?P<path>.+?):(?P<line>\d+) in (?P<name>.+?), code: (?P<code>.*)$")
_NO_PLACE = re.compile(r"^ +#.*No stacktrace found")
_NO_OPERATION = re.compile(r"[\w.]+$|\w+\[\d+\]$")
"""A name, an attribute, an item of a tuple."""
_OPERATOR = re.compile(r"torch\.ops\.(?P<name>[\w.]+)\(")
_STRIDES = re.compile(r"^(\w+\[[^]]*\])")


def operation_count(text: str) -> int:
    """How many operations a graph has, those of the graphs in it included."""
    return sum(bool(_operation(line)) for line in text.splitlines())


def autograd_graph(compile_id: str, phase: str, text: str) -> AutogradGraph:
    """The graph that the text is the code of."""
    lines: dict[CodeLine, int] = {}
    nodes: list[AutogradNode] = []
    types: dict[str, str] = {}
    inputs: dict[str, int] = {}
    saved: list[str] = []
    ops = 0
    place: int | None = None
    for line in text.splitlines():
        if found := _ASSIGNMENT.match(line):
            types[found["name"]] = found["type"] or ""
            if _operation(line):
                ops += 1
            operator = _OPERATOR.match(found["value"])
            nodes.append(AutogradNode(found["name"], operator["name"] if operator else None, place))
        elif found := _PLACE.match(line):
            where = CodeLine(StackFrame(found["path"], int(found["line"]), found["name"]), found["code"].strip())
            place = lines.setdefault(where, len(lines))
        elif _NO_PLACE.match(line):
            place = None
        elif found := _SAVED.match(line):
            saved.append(found["name"])
        elif found := _PARAMETER.match(line):
            types.setdefault(found["name"], found["type"] or "")
            if found["input"]:
                inputs[found["name"]] = int(found["input"])
    return AutogradGraph(
        compile_id=compile_id,
        phase=phase,
        ops=ops,
        saved=tuple(Saved(name, _type(types.get(name, "")), inputs.get(name)) for name in saved),
        nodes=tuple(nodes),
        lines=tuple(lines),
    )


def _operation(line: str) -> bool:
    found = _ASSIGNMENT.match(line)
    return found is not None and not _NO_OPERATION.match(found["value"].strip())


def _type(annotation: str) -> str:
    """``f32[8, 16]`` of ``f32[8, 16][16, 1]cuda:0``."""
    found = _STRIDES.match(annotation)
    return found[1] if found else annotation
