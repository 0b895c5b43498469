"""A finding as a diagnostic, for ``check`` and ``fix``."""

from __future__ import annotations

from breakscan.model.findings import Finding, Severity, Site, SourceError
from breakscan.report.diagnostics.diagnostic import Diagnostic, Location, Remark
from breakscan.report.shared.finding_words import how_compiled, one_line, region_words, verdict_sentence
from breakscan.report.shared.printable import printable
from breakscan.rulebook.document import Rule


def finding_diagnostic(finding: Finding, rule: Rule | None) -> Diagnostic:
    """The diagnostic of a printable finding."""
    rule = printable(rule)
    return Diagnostic(
        id=rule.id if rule else finding.rule,
        name=rule.name if rule else finding.name,
        severity=finding.severity,
        site=finding.site,
        message=_capitalised(one_line(finding)),
        details=tuple(_capitalised(words) for words in (verdict_sentence(finding), region_words(finding)) if words),
        help=rule.instead_in(finding.mode) if rule else None,
        rule=rule,
        function=finding.function,
        related=_related(finding),
    )


def unread_remark(error: SourceError) -> Remark:
    """A file, or a part of it, that could not be checked."""
    return Remark(Severity.ERROR, f"not checked: {error.message}", "not checked", error_site(error))


def error_site(error: SourceError) -> Site:
    """The character at which the problem is."""
    return Site(error.path, error.line, error.column, error.line, error.column + 1)


def _related(finding: Finding) -> tuple[Location, ...]:
    related = []
    if region := finding.region:
        start = Site(region.path, region.line, 1, region.line, 1)
        related.append(Location(start, f"the compiler starts here: {how_compiled(region)}"))
    if finding.behind:
        related.append(Location(finding.behind, "this comes first, and hides it"))
    return tuple(related)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
