"""Matches findings with the recorded sites that confirm them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from breakscan.explain.agreement.recorded import Recorded
from breakscan.explain.agreement.sources import Sources
from breakscan.model.findings import Finding, Kind, Site
from breakscan.rulebook.document import Rule
from breakscan.source.outline import without_locals


def confirming_sites(findings: Sequence[Finding], recorded: Sequence[Recorded], sources: Sources) -> dict[int, Site]:
    """Returns the recorded site that confirms each finding, by the finding's number.

    A site of the same rule at the same position is preferred, then one of the same rule on the same lines, then any
    other site on these lines that no finding accounts for.
    """
    confirmed: dict[int, Site] = {}
    used: set[int] = set()

    def take(fits: Callable[[Finding, Recorded], bool], shared: bool) -> None:
        before = set(used)
        for number, finding in enumerate(findings):
            for other, record in enumerate(recorded):
                if number not in confirmed and (shared or other not in before) and fits(finding, record):
                    confirmed[number] = record.site
                    used.add(other)

    def same_rule(finding: Finding, record: Recorded) -> bool:
        return record.rule is not None and record.rule.id == finding.rule

    take(lambda f, r: same_rule(f, r) and (_same_place(f.site, r.site) or _same_function(f, r)), shared=True)
    take(lambda f, r: same_rule(f, r) and r.whole and hands_over(f, r.rule, r.function, sources), shared=True)
    take(lambda f, r: same_rule(f, r) and not r.whole and f.site.shares_line_with(r.site), shared=False)
    take(lambda f, r: r.kind is f.kind and not r.whole and f.site.shares_line_with(r.site), shared=False)
    # Two rules may report the same site.
    at = {findings[number].site: site for number, site in confirmed.items()}
    return {n: at[finding.site] for n, finding in enumerate(findings) if finding.site in at}


def _same_function(finding: Finding, record: Recorded) -> bool:
    name = without_locals(finding.function or "")
    return record.whole and finding.site.path == record.site.path and name == record.function


def _same_place(one: Site, other: Site) -> bool:
    """Returns whether two spans overlap."""
    start, end = (one.line, one.column), (one.end_line, one.end_column)
    return one.path == other.path and start < (other.end_line, other.end_column) and (other.line, other.column) < end


def hands_over(finding: Finding, rule: Rule | None, function: str | None, sources: Sources) -> bool:
    """Returns whether a finding is about the call that passes a function to the compiler, and the compiler rejects the
    function.
    """
    if finding.kind is not Kind.GRAPH_BREAK or rule is None or rule.id != finding.rule or function is None:
        return False
    return re.search(rf"\b{re.escape(function.rpartition('.')[2])}\b", sources.text(finding.site)) is not None
