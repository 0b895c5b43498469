"""Findings that the compiler does not reach, because a break before them makes the function run eager. Dynamo compiles
nothing of a function after a break whose verdict is ``eager``, so a break there shows when the first is fixed, on every
path through the first and on no other. Nested functions and lambdas are frames of their own."""

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from breakscan.model.findings import Condition, Confidence, Finding, Kind, Site, Verdict
from breakscan.model.words import grouped
from breakscan.source.module import SourceModule
from breakscan.source.spans import begins_in, extent, nodes_around
from breakscan.source.walking import Loop, blocks

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True, slots=True)
class Reach:
    """The code that runs only after a break: what is in all sites of ``within`` and in none of ``outside``."""

    head: Site
    within: tuple[Site, ...]
    outside: tuple[Site, ...]

    def holds(self, site: Site) -> bool:
        """True if a site that comes after the head is reached through it alone."""
        if site == self.head or any(begins_in(site, part) for part in self.outside):
            return False
        return all(begins_in(site, part) for part in self.within)


def gives_up(finding: Finding) -> bool:
    """Returns whether the finding ends the compilation of its function, possibly under a condition."""
    ends = finding.kind is Kind.GRAPH_BREAK and finding.verdict is Verdict.EAGER
    is_own = finding.via is None and finding.function is not None
    return ends and is_own and finding.confidence is not Confidence.POSSIBLE


def mark_behind(findings: Sequence[Finding], reaches: Iterable[Reach], deferred: Collection[str] = ()) -> list[Finding]:
    """The findings, in the same order, with ``behind`` set to the break that hides each.  Those of the rules
    ``deferred``, which show only where a graph ends, a later break hides as well; they are only possible then.
    ``findings`` are those that are shown: one that a comment silences hides no other.  ``reaches`` has the reach of
    each that ends the compilation of its function or splits it, and may have others."""
    known = {reach.head: reach for reach in reaches}
    functions = grouped(
        ((finding.site.path, finding.function), number)
        for number, finding in enumerate(findings)
        if finding.kind is Kind.GRAPH_BREAK and finding.function is not None
    )
    marked = list(findings)
    for numbers in functions.values():
        heads: list[tuple[Reach, set[Condition]]] = []
        splits: list[Reach] = []
        for number in sorted(numbers, key=lambda n: turn(findings[n].site)):
            finding = findings[number]
            # Findings under the conditions of a head do not appear without them either.
            under = (reach for reach, conditions in heads if conditions <= set(finding.conditions))
            head = next((reach.head for reach in under if reach.holds(finding.site)), None)
            if head is not None:
                marked[number] = replace(finding, behind=head)
            elif finding.verdict is Verdict.EAGER and any(reach.holds(finding.site) for reach in splits):
                marked[number] = replace(finding, after_split=finding.via is None)
            if finding.verdict is Verdict.SPLITS and not finding.conditions and finding.site in known:
                splits.append(known[finding.site])
            if head is None and gives_up(finding) and finding.site in known and finding.rule not in deferred:
                heads.append((known[finding.site], set(finding.conditions)))
        for number in numbers:
            finding = findings[number]
            if finding.rule not in deferred or marked[number].behind is not None:
                continue
            # The code of the finding is followed by a break that ends the compilation of its function.
            later = (
                reach.head
                for reach, conditions in heads
                if turn(finding.site) < turn(reach.head) and conditions <= set(finding.conditions)
                if reach.holds(finding.site)
            )
            head = next(later, None)
            if head is not None:
                marked[number] = replace(finding, behind=head, confidence=Confidence.POSSIBLE)
    return marked


def turn(site: Site) -> tuple[int, int, int, int]:
    """A sort key for sites in the order of execution: a call is made after its arguments are computed."""
    return site.end_line, site.end_column, -site.line, -site.column


def reach_of(head: Site, module: SourceModule) -> Reach:
    """The code of a function that runs only after a break in it."""
    within: list[Site] = []
    outside: list[Site] = []
    loop: ast.stmt | None = None
    for parent, child in nodes_around(head, module):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ExceptHandler | ast.match_case):
            within.append(extent([parent], module))
        elif isinstance(parent, ast.If):
            within += [extent(block, module) for block in (parent.body, parent.orelse) if child in block]
        elif isinstance(parent, ast.IfExp) and child is not parent.test:
            within.append(extent([child], module))
        elif isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            within.append(extent([child, parent.values[-1]], module))
        elif isinstance(parent, _Comprehension):
            # The element comes first in the text, and is computed last.
            outside.append(extent([parent], module))
            if child not in parent.generators and any(generator.ifs for generator in parent.generators):
                within.append(extent([parent], module))
        elif isinstance(parent, ast.Assign) and child is not parent.value:
            outside.append(extent([parent.value], module))
        elif isinstance(parent, Loop):
            if child in parent.orelse:
                within.append(extent(parent.orelse, module))
            loop = parent if child in parent.body else loop
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            loop = None
        if loop is not None and isinstance(parent, ast.stmt):
            before = next((block[: block.index(child)] for block in blocks(parent) if child in block), [])
            if any(map(_may_jump, before)):
                within.append(extent([child, *blocks(loop)[0]], module))
    return Reach(head, tuple(within), tuple(outside))


def _may_jump(node: ast.stmt) -> bool:
    """True if a statement holds a ``break`` or ``continue`` for a loop around it."""
    if isinstance(node, ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    inner = [node.orelse] if isinstance(node, Loop) else blocks(node)
    return any(_may_jump(statement) for block in inner for statement in block)
