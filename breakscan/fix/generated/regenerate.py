"""Finds the findings of generated files that edits of other files fix, once the files are generated again."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from breakscan.check.pipeline.checker import Checker
from breakscan.check.pipeline.rewrite_facts import Studies
from breakscan.check.project.imports import Project
from breakscan.check.project.index import ModuleIndex
from breakscan.fix.generated.new_text import EditedOrigin, regenerated
from breakscan.fix.generated.origins import CodeOrigin, origin_of
from breakscan.fix.result import Applied, FileRepair, Refused
from breakscan.fix.support.generated import source_named, why_made_from
from breakscan.model.findings import Finding
from breakscan.rulebook.config import FileSettings
from breakscan.source.module import SourceProblem
from breakscan.source.paths import display_path


def with_origins(
    repairs: Sequence[FileRepair], roots: Mapping[Path, Sequence[Path]], settings: FileSettings
) -> list[FileRepair]:
    """The repairs, in which the findings of generated files name the code to change, and the edit that fixes it.

    Such an edit counts only if the finding is gone from the text that is generated from the edited code.
    """
    if not any(_is_generated(one) for one in repairs):
        return list(repairs)
    linker = _Linker(settings, {one.path: one for one in repairs}, roots)
    try:
        return [linker.linked(one) if _is_generated(one) else one for one in repairs]
    finally:
        linker.studies.release()


def _is_generated(repair: FileRepair) -> bool:
    return bool(repair.refused) and source_named(repair.before) is not None


class _Linker:
    """``repairs`` are those of all files, ``roots`` the files from which the compiler reaches each."""

    def __init__(
        self, settings: FileSettings, repairs: Mapping[Path, FileRepair], roots: Mapping[Path, Sequence[Path]]
    ) -> None:
        self.repairs = repairs
        self.roots = roots
        self.checkers = Checker(settings)
        self.studies = Studies(settings, (), self.checkers)

    def linked(self, repair: FileRepair) -> FileRepair:
        project = self.checkers.of(repair.path).project
        project.start(repair.path)
        try:
            index = project.load(repair.path)
        except SourceProblem:
            return repair
        functions = {one.qualname: one for one in index.all_functions.values()}
        origins: dict[str, CodeOrigin] = {}
        for name in dict.fromkeys(one.finding.function for one in repair.refused):
            origin = origin_of(project, index, functions[name]) if name in functions else None
            if name is not None and origin is not None:
                origins[name] = origin
        fixes = {name: self._fixes(origin) for name, origin in origins.items()}
        if any(fixes.values()):
            fixes = self._confirmed(repair, project, index, fixes)
        refused: list[Refused] = []
        for one in repair.refused:
            origin = origins.get(one.finding.function or "")
            line = _line_before(origin, one.finding.site.line) if origin is not None else None
            if origin is not None and line is not None:
                fix = next((fix for fix in fixes[one.finding.function or ""] if _is_at(fix, one.finding, line)), None)
                one = replace(_placed(one, origin, line), at_origin=fix)
            refused.append(one)
        return replace(repair, refused=tuple(refused))

    def _fixes(self, origin: CodeOrigin) -> list[Applied]:
        """The edits that fix findings of a function."""
        repair = self.repairs.get(origin.path)
        applied = repair.applied if repair is not None else ()
        return [one for one in applied if one.finding.function == origin.function.qualname and one.takes_out is None]

    def _confirmed(
        self, repair: FileRepair, project: Project, index: ModuleIndex, fixes: Mapping[str, list[Applied]]
    ) -> dict[str, list[Applied]]:
        """The edits that are known to fix as many findings of the generated text as they fix at their own place."""
        edited = [
            EditedOrigin(function, origin, self.repairs[origin.path].after)
            for function in index.all_functions.values()
            if (origin := origin_of(project, index, function)) is not None
            and origin.path in self.repairs
            and self.repairs[origin.path].changed
        ]
        text, changed = regenerated(index.module, edited)
        roots = self.roots.get(repair.path, (repair.path,))
        try:
            before = self.studies.study(repair.path, repair.before, roots).findings
            after = self.studies.study(repair.path, text, roots).findings
        except SourceProblem:
            return {name: [] for name in fixes}
        fewer = _counts(before)
        fewer.subtract(_counts(after))
        worse = {name for (_, name), count in fewer.items() if count < 0}
        confirmed = {}
        for name, found in fixes.items():
            meant = Counter(one.finding.rule for one in found if one.remains is None)
            kept = [one for one in found if fewer[one.finding.rule, name] >= meant[one.finding.rule]]
            confirmed[name] = kept if name in changed - worse else []
        return confirmed


def _counts(findings: Iterable[Finding]) -> Counter[tuple[str, str | None]]:
    return Counter((one.rule, one.function) for one in findings)


def _placed(refused: Refused, origin: CodeOrigin, line: int) -> Refused:
    """A finding whose reasons name the line to change."""
    place = f"{display_path(origin.path, Path.cwd())}:{line}"
    reasons = [replace(one, text=why_made_from(place)) for one in refused.reasons]
    return replace(refused, reasons=tuple(reasons))


def _line_before(origin: CodeOrigin, line: int) -> int | None:
    """The line of the origin that a line of the function is made from."""
    lines = [
        one.lineno
        for one, other in origin.pairs
        if isinstance(one, ast.stmt | ast.expr) and isinstance(other, ast.stmt | ast.expr) and other.lineno == line
    ]
    return min(lines, default=None)


def _is_at(fix: Applied, finding: Finding, line: int) -> bool:
    site = fix.finding.site
    return fix.finding.rule == finding.rule and site.line <= line <= site.end_line
