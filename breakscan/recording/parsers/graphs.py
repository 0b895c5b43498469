"""Reads what torch writes of graphs: their code as Dynamo traced it and as AOTAutograd made it, the Python that
Inductor generates, the keys of its cache, and why compiled autograd captures a backward pass again."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from breakscan.model.words import counted
from breakscan.recording.records import AutogradGraph, AutogradNode, CodeLine, GraphNode, Saved, StackFrame

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
    """The number of operations of a graph, those of the graphs in it included."""
    return sum(_is_operation(found) for found, _ in _assignments(text))


def nodes_of(text: str) -> Iterator[GraphNode]:
    """The values that the graph computes from a line of the program, each with that line."""
    for found, line in _assignments(text):
        if line is not None:
            yield GraphNode(found["name"], line.place)


def devices_of(text: str) -> tuple[str, ...]:
    """The devices of the graph's inputs, such as ``cuda:0``; none where the text does not say."""
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
    """The bytes of a tensor of a type such as ``f32[8, 16]``; None where a size is a symbol."""
    found = _TENSOR.fullmatch(type_)
    if found is None:
        return None
    sizes = map(int, found["sizes"].split(", ")) if found["sizes"] else ()
    return math.prod(sizes) * int(found["bits"]) // 8


def _type(annotation: str) -> str:
    """``f32[8, 16]`` of ``f32[8, 16][16, 1]cuda:0``."""
    found = _STRIDES.match(annotation)
    return found[1] if found else annotation


LONGEST = 400_000
"""Characters of the code for one graph that a recording keeps whole."""
LONGEST_CALLS = 10 * LONGEST
"""Characters that it keeps without the sources of kernels and comments.  The backward of DenseNet-121 has 400,521."""

_HEAD = re.compile(r"^# AOT ID: \['(?P<number>\d+)_(?P<phase>forward|backward|inference)'\]", re.M)
_BODY = re.compile(r"(r?''')(.*?)'''", re.S)
_FRAGMENT = re.compile(r"^ *#   %.*\n", re.M)
"""A line of the graph of which a kernel does the work, in the comment above it: of large models the most of all."""
_COMMENT = re.compile(r"^ *#(?! AOT ID).*\n", re.M)


def phase_of(code: str) -> str | None:
    found = _HEAD.search(code)
    return found["phase"] if found else None


def number_of(code: str) -> int:
    """The number by which graphs of one compile are in order."""
    found = _HEAD.search(code)
    return int(found["number"]) if found else 0


def shortened(code: str) -> str:
    """The code as a recording keeps it: whole up to :data:`LONGEST` characters.  Of longer code the sources of kernels
    are left out first, the longest first, then comments.  What is longer without them says which kernels are called,
    and is kept up to :data:`LONGEST_CALLS`."""
    excess = len(code) - LONGEST
    if excess <= 0:
        return code
    for length in sorted((len(found[2]) for found in _BODY.finditer(code)), reverse=True):
        if excess > 0:
            shortest, excess = length, excess - length
    code = _BODY.sub(lambda found: _left_out(found) if len(found[2]) >= shortest else found[0], code)
    for comment in (_FRAGMENT, _COMMENT):
        if len(code) > LONGEST:
            code = comment.sub("", code)
    if len(code) > LONGEST_CALLS:
        # After a whole line: a statement of generated code is one line, and part of it is not valid Python.
        kept = code[: code.rfind("\n", 0, LONGEST_CALLS) + 1]
        code = f"{kept}# {len(code) - len(kept):,} characters are left out of the recording\n"
    return code


def _left_out(found: re.Match[str]) -> str:
    return f"{found[1]}\n{len(found[2]):,} characters are left out of the recording\n'''"


LONGEST_PART = 60
"""Characters of a part that are kept as they are: of a longer one, its digest."""

_PART = re.compile(r"\[(?P<digest>\w+)\] (?P<name>[^:]+): ?(?P<text>.*)", re.S)
_GRAPH = ("gm", "example_inputs")
_OPTION = "fx_kwargs["
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")


@dataclass(frozen=True, slots=True)
class CacheKey:
    """``parts`` are the graph, its inputs and how it is to be compiled; ``settings`` what is the same for most graphs
    of a program: Inductor's configuration, the versions, the machine.  Values that begin with ``#`` are digests."""

    parts: Mapping[str, str]
    settings: Mapping[str, str]


def cache_key(components: Iterable[str]) -> CacheKey | None:
    """None where torch does not list the parts."""
    parts: dict[str, str] = {}
    settings: dict[str, str] = {}
    inputs: list[str] = []
    for name, digest, text in _read(components):
        if name.startswith("example_inputs["):
            inputs.append(digest)
        elif name in _GRAPH:
            parts[name] = f"#{digest[:10]}"
        else:
            is_short = len(text) <= LONGEST_PART and text.isprintable() and not _ADDRESS.search(text)
            (parts if name.startswith(_OPTION) else settings)[name] = text if is_short else f"#{digest[:10]}"
    if inputs:
        parts["example_inputs"] = digest_of(inputs)
    return CacheKey(parts, settings) if parts else None


def digest_of(texts: Iterable[str]) -> str:
    """A digest that begins as those of parts do."""
    return f"#{hashlib.sha256(chr(0).join(texts).encode(errors='replace')).hexdigest()[:10]}"


def _read(components: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for component in components:
        if found := _PART.match(component):
            yield found["name"], found["digest"], found["text"].strip()


_NODE = re.compile(
    r"new autograd node: (?P<name>\S+) \(NodeCall \d+\) with key size \d+, previous key sizes=\[(?P<seen>.*)\]"
)
_SIZES = re.compile(r"due to (?P<count>\d+) changed tensor shapes")
_ID = re.compile(r"^!\d+: ")
_ROOT = "GraphRoot"
"""The first node of each pass: new in the first of all."""


_STATES = {
    "AccumulateGrad": "a parameter has a gradient or a hook that it had not before, or the reverse (zero_grad() leaves "
    "no gradient)",
    "CompiledFunctionBackward": "it goes through another compiled graph, as after a recompile",
}


def autograd_change(reason: str) -> str | None:
    """The change since earlier passes, as a clause; None for the first pass that is captured."""
    if found := _NODE.search(reason):
        name = found["name"].rpartition("::")[2]
        if not found["seen"]:
            return None if name == _ROOT else f"there is another operation in it, {name}"
        return _STATES.get(name, f"{name} has other inputs or hooks")
    if found := _SIZES.search(reason):
        return f"{counted(int(found['count']), 'size')} changed"
    return _ID.sub("", reason)
