"""What the reports of ``explain`` say of each problem that stood against an export."""

from __future__ import annotations

from breakscan.explain.explanation import Explanation
from breakscan.explain.exported import ExportFailure
from breakscan.model.findings import Severity
from breakscan.report.explain.entries import EntryKind, ReportEntry
from breakscan.report.explain.export_words import (
    failure_advice,
    failure_consequences,
    failure_label,
    failure_reason,
)
from breakscan.report.explain.words import useful_hints

KIND = "export"


def export_entries(explanation: Explanation) -> list[ReportEntry]:
    """The problems: those that ended an export come first."""
    return list(map(export_entry, explanation.export_failures))


def export_entry(failure: ExportFailure) -> ReportEntry:
    rule, advice = failure.rule, failure_advice(failure)
    callers = [one.caller for one in failure.exports if one.caller]
    beside = (failure.site.path, failure.site.line)
    return ReportEntry(
        EntryKind.EXPORT,
        rule.id if rule else failure.gb_id or KIND,
        rule.name if rule else failure.gb_type or "export",
        rule,
        severity=Severity.ERROR,
        site=failure.site,
        origin=failure.origin,
        functions=(failure.function,) if failure.function else (),
        label=failure_label(failure),
        count=failure.count,
        why=failure_reason(failure),
        advice=advice,
        consequences=tuple(failure_consequences(failure)),
        hints=() if advice else tuple(useful_hints(failure.hints)),
        called_from=tuple(dict.fromkeys(one for one in callers if (one.path, one.line) != beside)),
        stack=failure.stack,
        gb_type=failure.gb_type,
        code=failure.code,
    )
