"""Reads the text that Dynamo gives for a graph break.

The form is that of ``torch._dynamo.exc.format_graph_break_message`` (torch 2.7 and later): a type, then
``Explanation:``, ``Hint:`` and ``Developer debug context:`` lines, then a link that ends in the break's id.
A break met while another was handled follows a line of asterisks: the first is the cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from breakscan.recording.parsers.frames import frames_of
from breakscan.recording.records import StackFrame

_WHILE_HANDLED = "*** While handling this graph break, another graph break occurred: ***"
_BRANCHING = "Data-dependent branching"
_ASKED_FOR = "Call to `torch._dynamo.graph_break()`"
_NESTED = re.compile(rf"^{re.escape(_WHILE_HANDLED)}$", re.M)
_ID = re.compile(r"/gb/gb(\d{4})\.html")
_END = re.compile(r"^(Stack variable source attribution:|User code traceback:|from user code:)", re.M)
_HEAD = re.compile(r"Graph break in user code at (.+):(\d+)$", re.M)
_LOGGER = re.compile(r"method: <\w*Logger (\S+) \(\w+\)>\.(\w+),")
_DISABLED = re.compile(r"function `?(?:<(?:function|bound method) )?(?:[\w<>]+\.)*(\w+)[^`]*?`? since it was wrapped")
_RAISED = re.compile(r"Dynamo failed to run FX node with fake tensors: .*: got (\w+)\((['\"])(.*)\2\)$")
_SKIPPED = "Failed to handle graph break gracefully"
_REST_SKIPPED = "graph break that we cannot resume from"


@dataclass(frozen=True, slots=True)
class BreakCause:
    """One break type with what Dynamo says of it.  ``gb_id`` is such as ``GB0124``, or ``None``."""

    gb_type: str
    gb_id: str | None
    explanation: str
    hints: tuple[str, ...]
    context: str


# Asked for several times for each break; the many breaks of a site have one text.
@lru_cache(maxsize=4096)
def parse_causes(text: str) -> tuple[BreakCause, ...]:
    """The causes in a break's text, root cause first.  Takes an artifact payload or an exception's message."""
    if end := _END.search(text):
        text = text[: end.start()]
    return tuple(_parse_cause(part) for part in _NESTED.split(text))


def logging_method(cause: BreakCause) -> str | None:
    """The method of a logger that Dynamo does not trace, as an expression: ``logging.getLogger('a.b').info``."""
    found = _LOGGER.match(cause.context)
    if found is None:
        return None
    name = "" if found[1] == "root" else repr(found[1])
    return f"logging.getLogger({name}).{found[2]}"


def disabled_function(cause: BreakCause) -> str | None:
    """The name of the function under ``torch.compiler.disable`` that Dynamo does not trace."""
    found = _DISABLED.search(cause.explanation)
    return found[1] if found else None


def is_wrong_type(cause: BreakCause) -> bool:
    """Return whether an operation does not take the type of an argument, as of a comparison of open sizes."""
    return cause.gb_type.startswith("TypeError when making fake tensor call")


def branches_on_data(gb_type: str) -> bool:
    """Return whether a break of this type is a branch on the value of a tensor."""
    return gb_type.startswith(_BRANCHING)


def is_asked_for(gb_type: str) -> bool:
    """Return whether a break of this type is one that the code asks for, with ``torch._dynamo.graph_break()``."""
    return gb_type.startswith(_ASKED_FOR)


def chained(cause: str, consequence: str) -> str:
    """The text of a break from which another followed, as Dynamo itself would put it."""
    parts = [text[: end.start()] if (end := _END.search(text)) else text for text in (cause, consequence)]
    return f"\n{_WHILE_HANDLED}\n".join(parts)


def frame_skipped(text: str) -> bool:
    """Return whether the text says that the frame falls back to eager, or all of it from the last place where Dynamo
    can resume."""
    return _SKIPPED in text or rest_skipped(text)


def rest_skipped(text: str) -> bool:
    """Return whether the text says that what comes before the break is compiled, and nothing after it."""
    return _REST_SKIPPED in text


def _parse_cause(part: str) -> BreakCause:
    lines = part.strip().splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("  Explanation:")]
    start = heads[0] if heads else min(1, len(lines))
    above = [line for line in lines[:start] if line.strip()]
    gb_type = above[-1].removeprefix("Graph Break Reason: ").strip() if above else ""
    fields: dict[str, list[str]] = {"Explanation": [], "Hint": [], "Developer debug context": []}
    current: list[str] | None = None
    for line in lines[start:]:
        if field := re.match(r"  (Explanation|Hint|Developer debug context): ?(.*)", line):
            current = fields[field[1]]
            current.append(field[2])
        elif line.lstrip().startswith("For more details about this graph break"):
            current = None
        elif current and line.strip():
            current[-1] += " " + line.strip()
    found = _ID.search(part)
    return BreakCause(
        gb_type=gb_type,
        gb_id=f"GB{found[1]}" if found else None,
        explanation=_RAISED.sub(r"the operation raises \1: \3", " ".join(fields["Explanation"]).strip()),
        hints=tuple(fields["Hint"]),
        context=" ".join(fields["Developer debug context"]).strip(),
    )


def traceback_frames(text: str) -> list[StackFrame]:
    """Return the frames above the break that an artifact's text lists, outermost first."""
    head = _HEAD.match(text)
    frames = frames_of(text)
    if head is None:
        return frames
    site = head[1], int(head[2])
    # Dynamo's own traceback may follow the user's.
    last = next((i for i, frame in enumerate(frames) if (frame.path, frame.line) == site), -1)
    return frames[: last + 1] or [StackFrame(*site, "<unknown>")]
