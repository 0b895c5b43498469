"""An answer as text, for clients that hand on no structured content: the same facts, a line for each entry."""

from __future__ import annotations

import json
from collections.abc import Iterator

from breakscan.model.words import sentence
from breakscan.report.answers.answer import (
    Answer,
    CheckAnswer,
    ExplainAnswer,
    FixAnswer,
    NextStep,
    RuleAnswer,
    VerifyAnswer,
)


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
