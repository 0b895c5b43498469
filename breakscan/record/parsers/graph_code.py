"""Reads the code of graphs as torch prints it: those that Dynamo traced, and those that AOTAutograd made of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from breakscan.record.records.generated import AutogradGraph, AutogradNode, Saved
from breakscan.record.records.graphs import GraphNode
from breakscan.record.records.source import CodeLine, StackFrame

_ASSIGNMENT = re.compile(r'^ +(?P<name>\w+)(?:: "(?P<type>[^"]*)")? = (?P<value>[^;]+)')
_PARAMETER = re.compile(r'^ +(?P<name>\w+)(?:: "(?P<type>[^"]*)")?,(?: +# PlainAOTInput\(idx=(?P<input>\d+)\))?')
_SAVED = re.compile(r"^ +(?P<name>\w+), +# SavedForBackwardsAOTOutput\(")
_PLACE = re.compile(r"^ +#.*?\bFile: (?P<path>.+?):(?P<line>\d+) in (?P<name>.+?), code: (?P<code>.*)$")
_NO_PLACE = re.compile(r"^ +#.*No stacktrace found")
_NO_OPERATION = re.compile(r"[\w.]+$|\w+\[\d+\]$")
"""A name, an attribute, an item of a tuple."""
_OPERATOR = re.compile(r"torch\.ops\.(?P<name>[\w.]+)\(")
_SIGNATURE = re.compile(r"^ *def forward\(.*?\):$", re.M | re.S)
_DEVICE = re.compile(r"\"\w+\[[^\"]*\]([a-z]\w*(?::\d+)?)\"")
_TENSOR = re.compile(r"[a-z]+(?P<bits>\d+)\w*\[(?P<sizes>|\d+(?:, \d+)*)\]")
_STRIDES = re.compile(r"^(\w+\[[^]]*\])")


def operation_count(text: str) -> int:
    """How many operations a graph has, those of the graphs in it included."""
    return sum(_is_operation(found) for found, _ in _assignments(text))


def nodes_of(text: str) -> Iterator[GraphNode]:
    """The values that the graph computes from a line of the program, each with that line."""
    for found, line in _assignments(text):
        if line is not None:
            yield GraphNode(found["name"], line.place)


def devices_of(text: str) -> tuple[str, ...]:
    """The devices of the graph's inputs, such as ``cuda:0``; none where the text does not tell, as before torch 2.6."""
    signature = _SIGNATURE.search(text)
    return tuple(dict.fromkeys(_DEVICE.findall(signature[0]))) if signature else ()


def autograd_graph(compile_id: str, phase: str, text: str) -> AutogradGraph:
    """The graph that the text is the code of."""
    lines: dict[CodeLine, int] = {}
    nodes: list[AutogradNode] = []
    types: dict[str, str] = {}
    inputs: dict[str, int] = {}
    saved: list[str] = []
    ops = 0
    for found, line in _assignments(text):
        types[found["name"]] = found["type"] or ""
        ops += _is_operation(found)
        operator = _OPERATOR.match(found["value"])
        number = None if line is None else lines.setdefault(line, len(lines))
        nodes.append(AutogradNode(found["name"], operator["name"] if operator else None, number))
    for row in text.splitlines():
        if kept := _SAVED.match(row):
            saved.append(kept["name"])
        elif given := _PARAMETER.match(row):
            types.setdefault(given["name"], given["type"] or "")
            if given["input"]:
                inputs[given["name"]] = int(given["input"])
    return AutogradGraph(
        compile_id=compile_id,
        phase=phase,
        ops=ops,
        saved=tuple(Saved(name, _type(types.get(name, "")), inputs.get(name)) for name in saved),
        nodes=tuple(nodes),
        lines=tuple(lines),
    )


def _assignments(text: str) -> Iterator[tuple[re.Match[str], CodeLine | None]]:
    """The rows that compute a value, each with the line of the program that it comes from, where the text says."""
    line: CodeLine | None = None
    for row in text.splitlines():
        if found := _ASSIGNMENT.match(row):
            yield found, line
        elif found := _PLACE.match(row):
            line = CodeLine(StackFrame(found["path"], int(found["line"]), found["name"]), found["code"].strip())
        elif _NO_PLACE.match(row):
            line = None


def _is_operation(assignment: re.Match[str]) -> bool:
    return _NO_OPERATION.match(assignment["value"].strip()) is None


def bytes_of(type_: str) -> int | None:
    """What a tensor of a type such as ``f32[8, 16]`` takes; None where a size is a symbol."""
    found = _TENSOR.fullmatch(type_)
    if found is None:
        return None
    sizes = map(int, found["sizes"].split(", ")) if found["sizes"] else ()
    return math.prod(sizes) * int(found["bits"]) // 8


def _type(annotation: str) -> str:
    """``f32[8, 16]`` of ``f32[8, 16][16, 1]cuda:0``."""
    found = _STRIDES.match(annotation)
    return found[1] if found else annotation
