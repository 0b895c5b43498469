"""Exports, the problems that they met, and the advice about these."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from breakscan.explanation.breaks import NEARNESS
from breakscan.explanation.context import ExplainContext, reason_of
from breakscan.explanation.problems import named, useful_hints
from breakscan.model.findings import Mode, Severity, Site, Verdict
from breakscan.model.problem import Caller, Problem, ProblemKind
from breakscan.model.remedy import Remedy, RemedyKind
from breakscan.model.words import counted, grouped, listed, place, seconds_in_words
from breakscan.recording.parsers.frames import (
    ExportProblem,
    ProblemRead,
    branches_on_data,
    parse_causes,
    problem_of,
    user_frames,
)
from breakscan.recording.parsers.guards import with_article
from breakscan.recording.records import ExportEnded, StackFrame
from breakscan.rulebook.document import Rule
from breakscan.rulebook.remedies import rule_remedies

_WAYS = {
    "export": "torch.export.export",
    "draft_export": "draft_export",
    "aot_inductor": "AOTInductor",
    "aot_compile": "aot_compile",
}
_COMPILED = ("aot_inductor", "aot_compile")
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Export:
    """The calls of one line that exported one thing in one way, with one result: ``done`` or ``failed``.  ``ops`` are
    the operations of the result, where torch gives any; ``site`` is the head of what was exported, where it is known;
    ``seconds`` is what all calls took."""

    way: str
    name: str
    site: Site | None
    caller: Caller | None
    strict: bool | None
    status: str
    count: int
    ops: int | None
    seconds: float

    @property
    def how(self) -> str:
        """``torch.export.export, strict``."""
        return f"{_WAYS[self.way]}{', strict' if self.strict else ''}"

    @property
    def words(self) -> str:
        """``Net by torch.export.export, strict, 2 operations, 0.3 s (net.py:9)``."""
        ops = f", {counted(self.ops, 'operation')}" if self.ops is not None else ""
        times = f" {self.count} times" if self.count > 1 else ""
        where = f" ({place(self.caller)})" if self.caller else ""
        took = f", {seconds_in_words(self.seconds)}" if self.seconds else ""
        return f"{self.name} by {self.how}{times}{ops}{took}{where}"


def exports_total(exports: Sequence[Export]) -> str | None:
    """``2 of 5 exports fail``; None without any."""
    every = sum(export.count for export in exports)
    ahead = all(export.way in _COMPILED for export in exports)
    nouns = ("compilation ahead of time", "compilations ahead of time") if ahead else ("export", "exports")
    failed = sum(one.count for one in exports if one.status == "failed")
    total = counted(every, *nouns)
    if failed:
        return f"{failed} of {total} {'fails' if failed == 1 else 'fail'}"
    return f"{total} {'succeeds' if every == 1 else 'succeed'}" if every else None


def exports_line(exports: Sequence[Export]) -> str | None:
    """The exports, for the list of what was compiled."""
    done = sorted((one for one in exports if one.status == "done"), key=lambda one: -one.seconds)
    more = f"; and {len(done) - _MOST_NAMED} more" if len(done) > _MOST_NAMED else ""
    return "; ".join(one.words for one in done[:_MOST_NAMED]) + more or None


def _ended(context: ExplainContext) -> list[ExportEnded]:
    return [record for record in context.of(ExportEnded) if record.way in _WAYS]


def exports(context: ExplainContext) -> list[Export]:
    found: dict[Export, Export] = {}
    for record in _ended(context):
        site, caller = context.site_of(record.code) if record.code else None, context.nearest(record.stack)
        status = "done" if record.error is None else "failed"
        key = Export(record.way, record.target, site, caller, record.strict, status, 0, record.ops, 0.0)
        known = found.get(key, key)
        found[key] = replace(known, count=known.count + 1, seconds=known.seconds + record.seconds)
    return list(found.values())


_WHY = {
    ExportProblem.TEST: "it tests what depends on data, which an export does not know",
    ExportProblem.NUMBER: "it needs a number out of data, which an export does not know",
    ExportProblem.SIZES: "the code does not leave the sizes free that dynamic_shapes declares",
    ExportProblem.EXAMPLE: "an export fixes the sizes 0 and 1, and {} of its example is one of them",
    ExportProblem.NO_FAKE_KERNEL: "the operator {} has no fake kernel, which gives what it returns without running it",
    ExportProblem.INPUT: "it is given {}, a type that an export cannot take apart",
    ExportProblem.OUTPUT: "it returns {}, a type that an export cannot take apart",
    ExportProblem.UNTRACEABLE: "Dynamo cannot trace it",
}
_REGISTER = "if it is a dataclass, register it: torch.export.register_dataclass({})"
_INSTEAD = {
    ExportProblem.TEST: "select with torch.where or branch with torch.cond, if both sides have one shape; else decide "
    "before the export; where a number always passes the test, say so before it, such as torch._check(n > 3)",
    ExportProblem.NUMBER: "keep it a tensor; where the number is always the same, say so before it, such as "
    "torch._check(n == 4)",
    ExportProblem.SIZES: "declare them as they are, or leave them to torch with Dim.AUTO",
    ExportProblem.EXAMPLE: "export with an example of 2 or more there",
    ExportProblem.NO_FAKE_KERNEL: 'register one with torch.library.register_fake("{}")',
    ExportProblem.INPUT: f"pass tensors, numbers, and tuples, lists or dicts of them; {_REGISTER}",
    ExportProblem.OUTPUT: f"return tensors, numbers, and tuples, lists or dicts of them; {_REGISTER}",
}
_OF_LIBRARIES = dict.fromkeys(("DynamicCache", "EncoderDecoderCache"), "pass use_cache=False to the model")
"""Advice about the classes of a library: here of transformers."""
_QUOTES_TORCH = (ExportProblem.TEST, ExportProblem.NUMBER)
_TYPES = (ExportProblem.INPUT, ExportProblem.OUTPUT)
_AT_THE_CALL = (ExportProblem.SIZES, ExportProblem.EXAMPLE, *_TYPES)
"""Torch finds these before it traces, or when all is traced: its exception comes from none of the lines."""


def export_problems(context: ExplainContext) -> tuple[list[Problem], dict[str, Rule]]:
    """One problem for all exports that one change would mend, the user's code first; and the rules for them."""
    rules: dict[str, Rule] = {}
    found = (
        (record, *_problem(record, problem_of(record.error, record.text), context, rules))
        for record in _ended(context)
        if record.error is not None
    )
    groups = grouped((key, (record, problem)) for record, key, problem in found)
    joined = [_joined(group, context) for group in groups.values()]
    return sorted(joined, key=lambda one: NEARNESS.index(one.origin)), rules


def _problem(
    record: ExportEnded, read: ProblemRead, context: ExplainContext, rules: dict[str, Rule]
) -> tuple[Hashable, Problem]:
    """The problem of one export, and the identity that it has in all."""
    cause = parse_causes(record.text)[0] if read.problem is ExportProblem.UNTRACEABLE else None
    # Of sizes, torch names the line with strict=True alone.
    traced = user_frames(record.text) if record.text and read.problem in _AT_THE_CALL else record.failed_at
    own = [frame for frame in traced if context.owners.is_programs(frame.path)]
    through = own or [frame for frame in record.stack if context.owners.is_programs(frame.path)] or list(record.stack)
    at: StackFrame = through[-1]
    is_branch = read.problem is ExportProblem.TEST or (cause is not None and branches_on_data(cause.gb_type))
    kind = ExportProblem.TEST if is_branch else read.problem
    origin = context.origin(at.path)
    form = context.sources.form(at.path, at.line, at.column, at.end_column) if is_branch else None
    rule = context.rule_for(cause, form, at, through[:-1], origin) if cause else None
    if rule is not None:
        rules[rule.id] = rule
    advice = _OF_LIBRARIES.get(read.about) or _INSTEAD.get(kind)
    fixes = f"; torch suggests {', '.join(read.fixes)}" if read.fixes else ""
    of_kind = (
        (Remedy(RemedyKind.CONSTRUCT, f"export-{kind.value}", advice.format(read.about) + fixes),) if advice else ()
    )
    remedies = rule_remedies(rule, Mode.EXPORT_STRICT) if rule else of_kind
    gb_type, gb_id = (cause.gb_type, cause.gb_id) if cause else (None, None)
    said = reason_of(cause) if cause else read.said or _first_line(record, read)
    function = context.function(at.path, at.line, at.name)
    problem = Problem(
        ProblemKind.EXPORT,
        *named(rule, gb_id or "export", gb_type or "export"),
        Verdict.RAISES,
        Severity.ERROR,
        context.sources.site(at.path, at.line, at.column, at.end_column, is_branch=is_branch),
        origin,
        functions=(function,) if function else (),
        what="fails to export",
        why=rule.why if rule else _why(kind, read.about, said),
        remedies=remedies,
        count=1,
        reason=kind.value,
        hints=() if remedies or cause is None else tuple(useful_hints(cause.hints)),
        stack=tuple(map(context.caller, own)),
        gb_type=gb_type,
        gb_id=gb_id,
        code=context.sources.line(at.path, at.line),
    )
    # Torch words a test on data in many ways: by its own symbols, and otherwise with ``strict=True``.
    if kind in _QUOTES_TORCH:
        return (_QUOTES_TORCH, problem.site), problem
    if kind in (ExportProblem.NO_FAKE_KERNEL, *_TYPES):
        return (kind, read.about), problem
    where = record.target if kind is ExportProblem.SIZES else problem.site
    return (kind, where, read.about, problem.gb_type or said), problem


def _why(kind: ExportProblem, about: str, said: str) -> str:
    """``it tests what depends on data, which an export does not know (torch: u0 > 3)``."""
    if kind is ExportProblem.UNTRACEABLE or kind is ExportProblem.ERROR:
        return said or about or _WHY[ExportProblem.UNTRACEABLE]
    words = _WHY[kind].format(with_article(about) if kind in _TYPES else about)
    if kind in _QUOTES_TORCH:
        return f"{words} (torch: {about})" if about else words
    said = said or (about if kind is ExportProblem.SIZES else "")
    return f"{words}: {said}" if said else words


def _joined(group: Sequence[tuple[ExportEnded, Problem]], context: ExplainContext) -> Problem:
    """The problems of several exports as one.  A break, which rules know, says most, then what torch quotes."""
    records = [record for record, _ in group]
    problems = [problem for _, problem in group]
    best = max(problems, key=lambda one: (one.rule is not None, bool(one.stack), "(torch: " in one.why))
    tried = (f"{_WAYS[one.way]}({one.target}{', strict=True' if one.strict else ''})" for one in records)
    callers = [caller for record in records if (caller := context.nearest(record.stack))]
    at_site = (best.site.path, best.site.line)
    return replace(
        best,
        what="fails to compile ahead of time" if all(one.way in _COMPILED for one in records) else best.what,
        count=len(group),
        consequences=(f"It ends {listed(list(dict.fromkeys(tried)), 'export')}.",),
        called_from=tuple(dict.fromkeys(one for one in callers if (one.path, one.line) != at_site)),
    )


def _first_line(record: ExportEnded, read: ProblemRead) -> str:
    """The exception, in one line; empty where the problem says it."""
    if read.problem is not ExportProblem.ERROR:
        return ""
    cause = parse_causes(record.text)[0]
    said = reason_of(cause) if cause.explanation else next(filter(str.strip, record.text.splitlines()), "").strip()
    return f"{record.error}: {said}" if said else str(record.error)
