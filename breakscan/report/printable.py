"""Foreign strings made safe to print: names, code, values and messages of a program must not steer what shows them.
And the JSON of a command, which escapes them."""

import json
import operator
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, TextIO, TypeVar, cast

from breakscan import __version__
from breakscan.rulebook.document import Rule

T = TypeVar("T")
LONGEST = 1000  # characters of a string that are kept
_CONTROL_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: "␡"}
_LOST = (
    *range(0x80, 0xA0),  # C1 controls: some terminals take U+009B for ESC [
    *range(0x2028, 0x202F),  # line and paragraph separators, embeddings and overrides of the writing direction
    *range(0x2066, 0x206A),  # isolates
    *range(0xD800, 0xE000),  # halves of surrogate pairs: bytes of file names that are no text
)
CHARACTERS: dict[int, int | str] = _CONTROL_PICTURES | dict.fromkeys(_LOST, "�")
"""Replacements of the characters that would steer a terminal, hide or reorder text."""

_IN_ONE_LINE = CHARACTERS | {ord("\t"): " ", ord("\n"): " "}
_NEEDS_CARE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text in one line, with control characters as their pictures, and cut where it is very long."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text) - LONGEST} characters more)"
    return text.translate(_IN_ONE_LINE) if _NEEDS_CARE.search(text) else text


_STARTS_COMMAND = re.compile(r"^(\s*:)(?=:)", re.MULTILINE)


def inert(text: str) -> str:
    """The text with blanks of no width in what the runner takes for a command: ``::`` first, ``##[`` anywhere."""
    return _STARTS_COMMAND.sub("\\1\u200b", text).replace("##[", "##\u200b[")


def printable(thing: T, originals: dict[str, str] | None = None) -> T:
    """The same result or explanation with all its strings as :func:`visible` gives them; the documents of rules, which
    have lines, are left as they are but for their one-line texts.  ``originals`` gets what strings that look otherwise
    were, for those who need the name of a file and not what is shown of it."""
    return cast(T, _printable(thing, originals if originals is not None else {}))


def _printable(thing: Any, originals: dict[str, str]) -> Any:
    kind: Any = type(thing)
    if kind is str:
        shown = visible(thing)
        if shown is not thing:
            originals[shown] = thing
        return shown
    if kind in _WITHOUT_TEXT or thing is None:
        return thing
    if kind is tuple or kind is list:
        items = [_printable(item, originals) for item in thing]
        return kind(items) if any(map(operator.is_not, items, thing)) else thing
    if isinstance(thing, Mapping):
        return {_printable(key, originals): _printable(value, originals) for key, value in thing.items()}
    changes = {}
    for name in _names_with_text(kind):
        old = getattr(thing, name)
        if (new := _printable(old, originals)) is not old:
            changes[name] = new
    return replace(thing, **changes) if changes else thing


_WITHOUT_TEXT = {int, float, bool}
_NUMBERS = {int, float, bool, int | None, float | None, "int", "float", "bool", "int | None", "float | None"}
"""Types of fields without text, also as they are written: modules may leave annotations as text."""
_RULE_TEXTS = ("id", "name", "summary", "message", "why", "instead")


@cache
def _names_with_text(kind: type) -> tuple[str, ...]:
    """The fields of a class that may hold text: an explanation has hundreds of thousands of sites."""
    if kind is Rule:
        return _RULE_TEXTS
    if not is_dataclass(kind) or issubclass(kind, Enum):
        return ()
    return tuple(field.name for field in fields(kind) if field.type not in _NUMBERS)


def write_json_report(schema: int, report: Mapping[str, Any], stream: TextIO) -> None:
    """Writes the number of the schema, the version and the report as one JSON object, ASCII only, and a line end."""
    write_json({"schema": schema, "tool": {"name": "breakscan", "version": __version__}, **report}, stream)


def write_json(value: object, stream: TextIO) -> None:
    json.dump(value, stream, indent=2, default=_json_value)
    stream.write("\n")


def picked(thing: object, names: str) -> dict[str, Any]:
    """Some attributes of an object, by their names."""
    return {name: getattr(thing, name) for name in names.split()}


def _json_value(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    return dict(value) if isinstance(value, Mapping) else repr(value)  # options of a backend may be anything
