"""Answers of the MCP server's tools: short typed values, each with the next step, and as text.

An answer is made from the JSON that the command of the same name writes.  Lists are cut: ``more`` says how many entries
are left, and with which arguments to ask for them.  What is empty or None is left out of the JSON of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, TypeVar

from breakscan.model.words import sentence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NextStep:
    """A tool to call, with its arguments, and why."""

    tool: str
    arguments: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class FindingAnswer:
    """``at`` is ``path:line:column``.  ``may_fix`` says that fix has rewrites to try."""

    at: str
    rule: str
    name: str
    severity: str
    message: str
    confidence: str | None = None
    function: str | None = None
    only_if: str | None = None
    hidden_by: str | None = None
    may_fix: bool = False


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """``instead`` is what to write instead, by rule."""

    summary: str
    findings: Sequence[FindingAnswer] = ()
    instead: Mapping[str, str] | None = None
    errors: Sequence[str] = ()
    more: NextStep | None = None
    next: NextStep | None = None


@dataclass(frozen=True, slots=True)
class EditAnswer:
    """``outcome`` is the list of the JSON of ``fix`` that has the finding: ``applied``, ``unsafe``, ``declined``, ….
    ``note`` is what the rewrite changes, or why there is none."""

    at: str
    rule: str
    outcome: str
    rewrite: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class FileDiff:
    """``cut`` is the number of lines of the diff that are left out."""

    path: str
    diff: str
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class FixAnswer:
    summary: str
    written: bool
    diffs: Sequence[FileDiff] = ()
    findings: Sequence[EditAnswer] = ()
    errors: Sequence[str] = ()
    more: NextStep | None = None
    next: NextStep | None = None


@dataclass(frozen=True, slots=True)
class ProblemAnswer:
    """A problem of a run at a line.  ``effect`` is what it did to the code that should be compiled."""

    at: str
    what: str
    effect: str
    why: str
    rule: str | None = None
    function: str | None = None
    times: int = 1
    cost: str | None = None
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class ExplainAnswer:
    """``ended`` is how the program ended, ``output`` the last lines that it wrote, if it failed."""

    summary: str
    ended: str
    problems: Sequence[ProblemAnswer] = ()
    notices: Sequence[str] = ()
    output: str | None = None
    more: NextStep | None = None
    next: NextStep | None = None


@dataclass(frozen=True, slots=True)
class ProofAnswer:
    """A change and what running the program with it has shown."""

    change: str
    verdict: str
    says: str
    at: str | None = None
    rule: str | None = None
    breaks: str | None = None
    caution: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class VerifyAnswer:
    summary: str
    proofs: Sequence[ProofAnswer] = ()
    not_proved: Sequence[str] = ()
    notes: Sequence[str] = ()
    more: NextStep | None = None
    next: NextStep | None = None


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """``breaks`` and ``compiles`` are examples that were run; ``verdicts`` is what each torch does with those that
    break."""

    rule: str
    name: str
    summary: str
    why: str
    instead: str
    breaks: str
    compiles: str | None = None
    verdicts: Mapping[str, str] | None = None
    rewrites: Sequence[str] = ()
    next: NextStep | None = None


Answer = CheckAnswer | FixAnswer | ExplainAnswer | VerifyAnswer | RuleAnswer


def answer_object(value: Any) -> Any:
    """A value of an answer as JSON has it, without what is empty or None."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {field.name: answer_object(getattr(value, field.name)) for field in fields(value)}
        required = {field.name for field in fields(value) if field.default not in (None, (), False)}
        return {name: one for name, one in found.items() if name in required or one not in (None, [], {}, False)}
    if isinstance(value, Mapping):
        return {key: answer_object(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [answer_object(one) for one in value]
    return value


def page(entries: Sequence[T], offset: int, limit: int) -> tuple[Sequence[T], int]:
    """The entries from an offset on, and how many are left behind them."""
    shown = entries[offset : offset + limit]
    return shown, max(0, len(entries) - offset - len(shown))


def at(site: Mapping[str, Any]) -> str:
    """``model.py:12:9``; of a notebook ``train.ipynb:cell 3:4:9``."""
    cell = f"cell {site['cell']}:" if site.get("cell") is not None else ""
    return f"{site['path']}:{cell}{site['line']}:{site['column']}"


def error_words(error: Mapping[str, Any]) -> str:
    """``model.py:3:1: invalid syntax``."""
    return f"{at(error)}: {error['message']}"


def more_step(tool: str, asked: Mapping[str, Any], offset: int, left: int) -> NextStep | None:
    """The call for the entries after those that are shown; None if there are none."""
    return NextStep(tool, {**asked, "offset": offset}, f"{left} more") if left else None


def answer_text(answer: Answer) -> str:
    """The answer as text, for clients that hand on no structured content: the same facts, a line for each entry."""
    lines: list[str] = []
    for name, value in _told(answer):
        if isinstance(value, NextStep):
            call = f"{value.tool} {json.dumps(dict(value.arguments), ensure_ascii=False)}"
            lines.append(f"{name}: {call} {sentence(value.why)}")
        elif isinstance(value, Mapping):
            lines += [f"{name}:", *(f"- {key}: {text}" for key, text in value.items())]
        elif isinstance(value, list | tuple):
            lines += [f"{name}:", *(f"- {_entry_text(one)}" for one in value)]
        else:
            separator = "\n" if "\n" in str(value) else " "
            lines.append(f"{name}:{separator}{value}")
    return "\n".join(lines)


def _entry_text(entry: Any) -> str:
    """``net.py:5:8, BRK401, print, warning, print() breaks the graph, function: f``."""
    if not is_dataclass(entry) or isinstance(entry, type):
        return str(entry)
    required = {field.name for field in fields(entry) if field.default is MISSING}
    text = ""
    for name, value in _told(entry):
        shown = f"{value}".rstrip() if name in required else f"{name}: {value}"
        separator = "\n" if "\n" in shown else ", "
        text += f"{separator if text else ''}{shown}"
    return text


def _told(entry: Any) -> list[tuple[str, Any]]:
    """The fields that are not empty."""
    values = ((field.name, getattr(entry, field.name)) for field in fields(entry))
    return [(name, value) for name, value in values if value not in (None, (), [], {}, False)]
