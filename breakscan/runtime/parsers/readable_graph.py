"""Reads the text of a graph, as ``print_readable`` writes it: where its operations come from, and on which devices its
inputs lie."""

from __future__ import annotations

import re
from collections.abc import Iterator

from breakscan.runtime.records.graphs import GraphNode
from breakscan.runtime.records.source import StackFrame

_FROM = re.compile(r"^ *# File: (.+):(\d+) in (.+?), code: ")
_FROM_NOWHERE = re.compile(r"^ *# No stacktrace found")
_NODE = re.compile(r"^ +(\w+)(?:: \"[^\"]*\")? = ")
_SIGNATURE = re.compile(r"^ *def forward\(.*?\):$", re.M | re.S)
_DEVICE = re.compile(r"\"\w+\[[^\"]*\]([a-z]\w*(?::\d+)?)\"")


def nodes_of(text: str) -> Iterator[GraphNode]:
    """The values that the graph computes from a line of the program, each with that line."""
    line: StackFrame | None = None
    for row in text.splitlines():
        if found := _FROM.match(row):
            line = StackFrame(found[1], int(found[2]), found[3])
        elif _FROM_NOWHERE.match(row):
            line = None
        elif line is not None and (found := _NODE.match(row)):
            yield GraphNode(found[1], line)


def devices_of(text: str) -> tuple[str, ...]:
    """The devices of the graph's inputs, such as ``cuda:0``; none where the text does not tell, as before torch 2.6."""
    signature = _SIGNATURE.search(text)
    return tuple(dict.fromkeys(_DEVICE.findall(signature[0]))) if signature else ()
