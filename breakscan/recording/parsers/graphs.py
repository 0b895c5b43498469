"""Reads what torch writes of graphs: their code as Dynamo traced it and as AOTAutograd made it, the Python that
Inductor generates, and why a cache does not store it."""

import re
from collections.abc import Iterator

from breakscan.recording.records import AutogradGraph, AutogradNode, CodeLine, GraphNode, StackFrame

_ASSIGNMENT = re.compile(r'^ +(?P<name>\w+)(?:: "(?P<type>[^"]*)")? = (?P<value>[^;]+)')
_PARAMETER = re.compile(r'^ +(?P<name>\w+): "(?P<type>[^"]*)",')
_SAVED = re.compile(r"^ +(?P<name>\w+), +# SavedForBackwardsAOTOutput\(")
_PLACE = re.compile(r"^ +#.*?\bFile: (?P<path>.+?):(?P<line>\d+) in (?P<name>.+?), code: (?P<code>.*)$")
_NO_PLACE = re.compile(r"^ +#.*No stacktrace found")
_NO_OPERATION = re.compile(r"[\w.]+$|\w+\[\d+\]$")  # a name, an attribute, an item of a tuple
_OPERATOR = re.compile(r"torch\.ops\.(?P<name>[\w.]+)\(")
_SIGNATURE = re.compile(r"^ *def forward\(.*?\):$", re.M | re.S)
_DEVICE = re.compile(r"\"\w+\[[^\"]*\]([a-z]\w*(?::\d+)?)\"")


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
    lines: dict[CodeLine, int] = {}
    nodes: list[AutogradNode] = []
    types = {found["name"]: found["type"] for found in map(_PARAMETER.match, text.splitlines()) if found}
    ops = 0
    for found, line in _assignments(text):
        types[found["name"]] = found["type"] or ""
        ops += _is_operation(found)
        operator = _OPERATOR.match(found["value"])
        number = None if line is None else lines.setdefault(line, len(lines))
        nodes.append(AutogradNode(found["name"], operator["name"] if operator else None, number))
    names = (found["name"] for found in map(_SAVED.match, text.splitlines()) if found)
    # ``f32[8, 16]`` of ``f32[8, 16][16, 1]cuda:0``.
    saved = tuple(f"{types.get(name, '').partition('][')[0].rstrip(']')}] {name}" for name in names)
    return AutogradGraph(compile_id, phase, ops, tuple(nodes), tuple(lines), saved)


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


LONGEST = 400_000  # characters of the code for one graph that a recording keeps whole
LONGEST_CALLS = 10 * LONGEST  # without the sources of kernels and comments: DenseNet-121 has 400,521
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
    are left out first, then comments.  What is longer still is kept up to :data:`LONGEST_CALLS`."""
    if len(code) > LONGEST:
        code = _BODY.sub(_left_out, code)
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


_BYPASSED = re.compile(
    r"Unsupported call_function .*?Function module: (?P<module>\S+),\s*Function name: (?P<name>\S+)", re.S
)
AUTOGRAD_FUNCTION = "autograd_function_apply"


def cannot_be_stored(reason: str) -> str | None:
    """The function that a graph calls because of which a cache does not store it, if the reason names one."""
    found = _BYPASSED.search(reason)
    if found is None or found["name"] == AUTOGRAD_FUNCTION:
        return found and found["name"]
    return f"{found['module']}.{found['name']}"
