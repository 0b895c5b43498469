"""Answers of the MCP server's tools: short typed values, each with the next step, and as text.

An answer is made from the JSON that the command of the same name writes.  Lists are cut: ``more`` says how many entries
are left, and with which arguments to ask for them.  What is empty or None is left out of the JSON of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
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
    """What becomes of a finding: ``rewritten``, ``needs-unsafe``, ``needs-soften`` or ``stays``.  ``note`` is what the
    rewrite changes, or why there is none."""

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
    """What a run met at a line.  ``effect`` is what it did to the code that should be compiled."""

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
    """How to ask for what is left behind the entries that are shown; None if nothing is."""
    return NextStep(tool, {**asked, "offset": offset}, f"{left} more") if left else None


def answer_text(answer: Answer) -> str:
    """The text, without a line end."""
    if isinstance(answer, CheckAnswer):
        lines = [*_check(answer)]
    elif isinstance(answer, FixAnswer):
        lines = [*_fix(answer)]
    elif isinstance(answer, ExplainAnswer):
        lines = [*_explain(answer)]
    elif isinstance(answer, VerifyAnswer):
        lines = [*_verify(answer)]
    else:
        lines = [*_rule(answer)]
    if not isinstance(answer, RuleAnswer) and answer.more:
        lines.append(f"{answer.more.why}: {_call(answer.more)}")
    if answer.next:
        lines.append(f"Next: {_call(answer.next)} {sentence(answer.next.why)}")
    return "\n".join(lines)


def _call(step: NextStep) -> str:
    return f"{step.tool} {json.dumps(dict(step.arguments), ensure_ascii=False)}"


def _check(answer: CheckAnswer) -> Iterator[str]:
    yield sentence(answer.summary)
    for one in answer.findings:
        confidence = f" ({one.confidence})" if one.confidence else ""
        where = f" in {one.function}" if one.function else ""
        only_if = f", only if {one.only_if}" if one.only_if else ""
        hidden = f", hidden by {one.hidden_by}" if one.hidden_by else ""
        message = f"{one.message}{where}{only_if}{hidden}{' [may fix]' if one.may_fix else ''}"
        yield f"{one.at} {one.severity}{confidence} {one.rule} {one.name}: {message}"
    yield from (f"Instead of {rule}: {sentence(words)}" for rule, words in (answer.instead or {}).items())
    yield from (f"Error: {one}" for one in answer.errors)


def _fix(answer: FixAnswer) -> Iterator[str]:
    yield sentence(answer.summary)
    for one in answer.findings:
        rewrite = f" {one.rewrite}" if one.rewrite else ""
        yield f"{one.at} {one.rule} {one.outcome}{rewrite}{f': {one.note}' if one.note else ''}"
    for diff in answer.diffs:
        yield diff.diff.rstrip("\n")
        if diff.cut:
            yield f"({diff.cut} lines more of {diff.path})"
    yield from (f"Error: {one}" for one in answer.errors)


def _explain(answer: ExplainAnswer) -> Iterator[str]:
    yield sentence(f"{answer.summary}; {answer.ended}")
    for one in answer.problems:
        rule = f" {one.rule}" if one.rule else ""
        times = f" {one.times}×" if one.times > 1 else ""
        where = f" in {one.function}" if one.function else ""
        cost = f" Cost: {one.cost}." if one.cost else ""
        instead = f" Instead: {sentence(one.instead)}" if one.instead else ""
        yield f"{one.at} {one.what}{rule}{times}{where}, {one.effect}: {sentence(one.why)}{cost}{instead}"
    yield from (f"Note: {one}" for one in answer.notices)
    if answer.output:
        yield f"The last lines of its output:\n{answer.output}"


def _verify(answer: VerifyAnswer) -> Iterator[str]:
    yield sentence(answer.summary)
    for one in answer.proofs:
        rule = f" ({one.rule})" if one.rule else ""
        breaks = f", breaks {one.breaks}" if one.breaks else ""
        yield f"{one.change}{rule}: {one.says}{breaks}"
        yield from (f"  Caution: {said}" for said in one.caution)
    yield from (f"Not proved, {one}" for one in answer.not_proved)
    yield from (f"Note: {one}" for one in answer.notes)


def _rule(answer: RuleAnswer) -> Iterator[str]:
    yield f"{answer.rule} {answer.name}: {sentence(answer.summary)}"
    yield f"Why: {sentence(answer.why)}"
    yield f"Instead: {sentence(answer.instead)}"
    yield f"Breaks:\n{answer.breaks}"
    if answer.compiles:
        yield f"Compiles:\n{answer.compiles}"
    yield from (f"torch {versions}: {words}" for versions, words in (answer.verdicts or {}).items())
    if answer.rewrites:
        yield f"fix tries {', '.join(answer.rewrites)}."
