"""Finds the findings that the compiler did not reach, because an earlier break made the function run eager."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from breakscan.check.pipeline.shadowed import reach_of, turn
from breakscan.explain.agreement.lines import lines_of, touches
from breakscan.explain.agreement.result import BreakKey
from breakscan.explain.agreement.sources import Sources
from breakscan.explain.explanation import BreakSite, Explanation
from breakscan.model.findings import CheckResult, Finding, Kind, Site, Verdict
from breakscan.source.module import SourceModule
from breakscan.source.outline import without_locals


def hidden_behind(
    explanation: Explanation, result: CheckResult, sources: Sources
) -> dict[BreakKey, tuple[Finding, ...]]:
    """Returns the findings that the compiler did not reach because of a break of the run, by the break's site and type.

    They follow the break in a function that runs eager because of it, on every path through the break, and were neither
    recorded nor compiled. Each is reported once, at the first break that hides it.
    """
    recorded = _recorded_lines(explanation)
    open_ = [f for f in result.findings if f.kind is Kind.GRAPH_BREAK and not touches(f.site, recorded)]
    open_ = [f for f in open_ if not touches(f.site, explanation.traced)]
    hidden: dict[BreakKey, tuple[Finding, ...]] = {}
    reported: set[int] = set()
    for site in explanation.breaks:
        heads = list(_heads(site, sources))
        following = [f for f in open_ if id(f) not in reported and any(head.hides(f) for head in heads)]
        reported |= {id(finding) for finding in following}
        if following:
            hidden[site.site, site.gb_type] = tuple(following)
    return hidden


def _recorded_lines(explanation: Explanation) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for site in explanation.breaks:
        found.setdefault(site.site.path, set()).update(lines_of(site.site))
    return {path: sorted(lines) for path, lines in found.items()}


@dataclass(slots=True)
class _Head:
    """The site in a function that runs eager, from which on nothing of the function is compiled."""

    site: Site
    function: str
    module: SourceModule

    def hides(self, finding: Finding) -> bool:
        name = without_locals(finding.function or "")
        if name != self.function or finding.site.path != self.site.path or turn(finding.site) <= turn(self.site):
            return False
        return reach_of(self.site, self.module).holds(finding.site)


def _heads(site: BreakSite, sources: Sources) -> Iterator[_Head]:
    """Returns where the compiler stopped in each function that a break made run eager: at the break, or at the call
    that led there.
    """
    if site.verdict not in (Verdict.EAGER, Verdict.RAISES):
        return
    given_up = [part.function for part in site.given_up] or [site.function or ""]
    for function in dict.fromkeys(given_up):
        where: Site | None = site.site
        if function != site.function:
            caller = next((c for c in reversed(site.stack) if c.function == function), None)
            where = _statement(caller.path, caller.line, sources) if caller else None
        module = sources.module(where.path) if where else None
        if where is not None and module is not None:
            yield _Head(where, function, module)


def _statement(path: str, line: int, sources: Sources) -> Site | None:
    module = sources.module(path)
    if module is None or not 1 <= line <= len(module.lines):
        return None
    text = module.lines[line - 1]
    return Site(path, line, len(text) - len(text.lstrip()) + 1, line, len(text.rstrip()) + 1)
