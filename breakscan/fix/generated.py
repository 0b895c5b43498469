"""Files that a program writes: the code that theirs is made from, and the edits of that code that fix them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from breakscan.check.pipeline.checker import Checker
from breakscan.check.pipeline.rewrite_facts import Studies
from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.fix.result import Applied, FileRepair, Refused
from breakscan.fix.support.generated import source_named, why_made_from
from breakscan.model.findings import Finding
from breakscan.rulebook.config import FileSettings
from breakscan.source.module import SourceModule, SourceProblem
from breakscan.source.outline import Outline
from breakscan.source.paths import display_path
from breakscan.source.walking import FunctionNode

_IGNORED = frozenset({"ctx", "kind", "type_comment"})


@dataclass(slots=True)
class Renaming:
    """The names and texts that the program replaces: ``Detr`` by ``RTDetr``, and ``detr`` by ``rt_detr``.

    ``learned`` holds those that occurred.
    """

    old: str = ""
    new: str = ""
    learned: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of_classes(old: str, new: str) -> Renaming:
        """The renaming of a class: without the end that both names have in common."""
        common = 0
        while common < min(len(old), len(new)) and old[-1 - common] == new[-1 - common]:
            common += 1
        return Renaming(old[: len(old) - common], new[: len(new) - common])

    def renames(self, before: str, after: str) -> bool:
        """Whether one text is the other, with the names that are replaced."""
        if not self.old or _folded(before).replace(_folded(self.old), _folded(self.new)) != _folded(after):
            return False
        return self.learned.setdefault(before, after) == after

    def applied(self, text: str) -> str:
        """A text with what was learned replaced."""
        known = sorted(self.learned, key=len, reverse=True)
        pattern = "|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in known)
        return re.sub(pattern, lambda found: self.learned[found[0]], text) if known else text


def code_of(function: FunctionNode) -> Sequence[ast.AST]:
    """The statements of a function without its documentation."""
    if isinstance(function, ast.Lambda):
        return [function.body]
    is_documented = ast.get_docstring(function, clean=False) is not None
    return function.body[is_documented:]


def same_nodes(
    before: Sequence[ast.AST], after: Sequence[ast.AST], renaming: Renaming
) -> list[tuple[ast.AST, ast.AST]] | None:
    """The pairs of nodes of code that is the same but for a renaming; None if it is not the same."""
    pairs: list[tuple[ast.AST, ast.AST]] = []
    pending: list[tuple[object, object]] = [(list(before), list(after))]
    while pending:
        one, other = pending.pop()
        if type(one) is not type(other):
            return None
        if isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return None
            pending += zip(one, other, strict=True)
        elif isinstance(one, ast.AST) and isinstance(other, ast.AST):
            pairs.append((one, other))
            pending += zip(_fields(one), _fields(other), strict=True)
        elif one != other and not (isinstance(one, str) and isinstance(other, str) and renaming.renames(one, other)):
            return None
    return pairs


def _fields(node: ast.AST) -> Iterator[object]:
    return (getattr(node, name, None) for name in node._fields if name not in _IGNORED)


def _folded(text: str) -> str:
    return text.lower().replace("_", "")


MOST_STEPS = 8
"""The number of generated files between a function and the file in which a person has written it."""


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """A function of a file that is not generated, and its nodes beside those of the function made from it."""

    path: Path
    function: FunctionInfo
    renaming: Renaming
    pairs: tuple[tuple[ast.AST, ast.AST], ...]


def origin_of(
    project: Project, generated: ModuleIndex, function: FunctionInfo, steps: int = MOST_STEPS
) -> CodeOrigin | None:
    """The origin of a function, if the files show exactly one.

    A generated class has methods of the class of that name in the file that it is generated from, and of its bases.
    Functions, and classes that this file does not have, are from files that it imports from.
    """
    source = source_of(project, generated)
    if source is None or steps == 0:
        return None
    found: dict[tuple[Path, str], CodeOrigin] = {}
    for one, renaming, decides in _candidates(project, source, function):
        pairs = same_nodes(code_of(one.node), code_of(function.node), renaming)
        if pairs is None:
            if decides:
                break
            continue
        origin: CodeOrigin | None = CodeOrigin(one.index.module.path, one, renaming, tuple(pairs))
        if source_named(one.index.module.text) is not None:
            origin = origin_of(project, one.index, one, steps - 1)
            origin = _behind(origin, one, renaming, function) if origin is not None else None
        if origin is not None:
            found[origin.path, origin.function.qualname] = origin
        if decides:
            break
    return next(iter(found.values())) if len(found) == 1 else None


def source_of(project: Project, generated: ModuleIndex) -> ModuleIndex | None:
    """The Python file that a file says it is generated from."""
    named = source_named(generated.module.text)
    if named is None or not named.endswith(".py"):
        return None
    path = generated.module.path
    parts = [part for part in re.split(r"[/\\]", named) if part not in ("", ".")]
    places = [path.with_name(parts[-1]), *(folder.joinpath(*parts) for folder in path.parents)]
    for place in places:
        if place != path and ".." not in parts and place.is_file():
            try:
                return project.load(place)
            except (SourceProblem, RecursionError):
                return None
    return None


def _candidates(
    project: Project, source: ModuleIndex, function: FunctionInfo
) -> Iterator[tuple[FunctionInfo, Renaming, bool]]:
    """Functions that one may be made from, each with whether it can only be this one."""
    owner = function.owner
    if function.nested or (owner is not None and function.qualname != f"{owner.qualname}.{function.name}"):
        return
    if owner is not None and owner.qualname in source.classes:
        for base in project.bases_of(source.classes[owner.qualname]):
            if function.name in base.methods:
                yield base.methods[function.name], Renaming.of_classes(base.qualname, owner.qualname), True
        return
    imported = _imported(project, source)
    if owner is not None:
        yield from ((one, how, False) for index in imported for one, how in _namesakes(index, owner, function.name))
        return
    for index in (source, *imported):
        if function.name in index.functions:
            yield index.functions[function.name], Renaming(), index is source


def _imported(project: Project, source: ModuleIndex) -> list[ModuleIndex]:
    """The files from which a file imports classes and functions."""
    found = (project.find(dotted, source) for dotted in sorted(set(source.imports.values())))
    return list(dict.fromkeys(one.index for one in found if isinstance(one, ClassInfo | FunctionInfo)))


def _namesakes(index: ModuleIndex, owner: ClassInfo, method: str) -> Iterator[tuple[FunctionInfo, Renaming]]:
    """The methods of classes whose names differ from that of ``owner`` in the first part only, as the names of all
    classes of the two files do.
    """
    for info in index.classes.values():
        renaming = Renaming.of_classes(info.qualname, owner.qualname)
        if method in info.methods and (not renaming.old or renaming.old[:1].isupper()):
            rest = info.qualname[len(renaming.old) :]
            if rest[:1].isupper():
                yield info.methods[method], renaming


def _behind(origin: CodeOrigin, between: FunctionInfo, renaming: Renaming, function: FunctionInfo) -> CodeOrigin | None:
    """The origin of a function that is made from a generated one."""
    owners = [one.owner.qualname if one.owner is not None else "" for one in (origin.function, function)]
    whole = Renaming.of_classes(*owners)
    pairs = same_nodes(code_of(origin.function.node), code_of(function.node), whole)
    return CodeOrigin(origin.path, origin.function, whole, tuple(pairs)) if pairs is not None else None


@dataclass(frozen=True, slots=True)
class EditedOrigin:
    """A function of a generated file, what it is made from, and the new text of that file."""

    function: FunctionInfo
    origin: CodeOrigin
    after: str


def regenerated(module: SourceModule, edited: Sequence[EditedOrigin]) -> tuple[str, frozenset[str]]:
    """The text, in which functions have the bodies of their edited origins, and the names of these functions.

    Functions whose origins have another signature now, or other decorators, stay as they are.
    """
    trees = {text: ast.parse(text) for text in {one.after for one in edited}}
    lines: list[str] = list(module.lines)
    imports: set[str] = set()
    changed: set[str] = set()
    for one in sorted(edited, key=lambda one: -one.function.node.lineno):
        source, old = one.origin.function.index.module, one.origin.function.node
        new = next(
            (
                scope.node
                for scope in Outline(trees[one.after]).scopes
                if scope.qualname == one.origin.function.qualname
            ),
            None,
        )
        if isinstance(new, ast.FunctionDef) and _header(new) == _header(old):
            first, last = _lines_of_body(new)
            body = one.after.split("\n")[first - 1 : last]
            own_first, own_last = _lines_of_body(old)
            if body != source.lines[own_first - 1 : own_last]:
                start, end = _lines_of_body(one.function.node)
                lines[start - 1 : end] = [one.origin.renaming.applied(line) for line in body]
                changed.add(one.function.qualname)
                imports |= set(_imports(trees[one.after])) - set(_imports(source.tree))
    top = [node.lineno for node in module.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    at = next((line - 1 for line in top if "__future__" not in module.lines[line - 1]), 0)
    lines[at:at] = sorted(imports)
    return "\n".join(lines), frozenset(changed)


def _lines_of_body(function: FunctionNode) -> tuple[int, int]:
    body = function.body if isinstance(function.body, list) else [function.body]
    return body[0].lineno, body[-1].end_lineno or body[-1].lineno


def _header(function: FunctionNode) -> str:
    """The signature and the decorators."""
    decorators = [] if isinstance(function, ast.Lambda) else function.decorator_list
    return " ".join(map(ast.dump, [function.args, *decorators]))


def _imports(tree: ast.Module) -> Iterator[str]:
    return (ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))


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
