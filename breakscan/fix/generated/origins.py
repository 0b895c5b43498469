"""Finds the function of another file that one of a generated file is made from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.fix.generated.same_code import Renaming, code_of, same_nodes
from breakscan.fix.support.generated import source_named
from breakscan.source.module import SourceProblem

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
