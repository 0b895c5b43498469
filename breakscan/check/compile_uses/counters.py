"""Python state that compiled code reads and that changes from call to call: counters and lists that grow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from breakscan.check.compile_uses.changes import Changes
from breakscan.check.compile_uses.compiled import BoundName
from breakscan.check.compile_uses.uses import Found, Survey
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import walk


def changing_attributes(survey: Survey) -> Iterator[Found]:
    """``model.step = i`` in the loop that calls the compiled model, where its class reads ``self.step``."""
    for step in survey.steps:
        statement = step.statement
        if not step.loops or not isinstance(statement, ast.Assign | ast.AugAssign):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            continue
        changes = Changes(survey, step)
        counts = isinstance(statement, ast.AugAssign) and isinstance(statement.value, ast.Constant)
        if not (counts and type(getattr(statement.value, "value", None)) is int) and not (
            changes.of(statement.value) and changes.is_int(statement.value)
        ):
            continue
        for use in survey.uses:
            source = use.compiled.source
            named = (use.call.func, source) if source is not None else (use.call.func,)
            same = any(isinstance(n, ast.Name) and n.id == target.value.id for n in named)
            if same and use.step.loops[:1] == step.loops[:1] and _reads(survey, use.compiled.target, target.attr):
                yield Found(EventKind.STORE, target, use.step, "changing-attribute", target.attr)
                break


def _reads(survey: Survey, target: BoundName | None, attribute: str) -> bool:
    forward = survey.names.method(target.owner, "forward") if target and target.owner else None
    return forward is not None and any(
        isinstance(n, ast.Attribute) and n.attr == attribute and isinstance(n.ctx, ast.Load) for n in forward.own_nodes
    )


def global_counters(
    index: ModuleIndex, text: str, compiled: Iterable[FunctionInfo]
) -> Iterator[tuple[FunctionInfo, ast.stmt, str]]:
    """``count += 1`` on an int of the module's top level, in compiled code: the function, the statement, the name."""
    if "global " not in text:
        return
    numbers = {
        target.id
        for node in index.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and type(node.value.value) is int
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for info in compiled:
        if info.index is not index or not numbers:
            continue
        declared = {n for s in info.own_nodes if isinstance(s, ast.Global) for n in s.names} & numbers
        for node in info.own_nodes:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in declared:
                yield info, node, node.target.id


def growing_attributes(
    index: ModuleIndex, text: str, compiled: Iterable[FunctionInfo]
) -> Iterator[tuple[FunctionInfo, ast.Call, str]]:
    """``self.history.append(x)`` in compiled code, on a list that ``__init__`` makes and nothing empties."""
    if ".append(" not in text:
        return
    for info in compiled:
        if info.index is not index or info.owner is None or info.name == "__init__":
            continue
        for node in info.own_nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                held = node.func.value
                mine = isinstance(held, ast.Attribute) and ast.unparse(held.value) == "self"
                if mine and isinstance(held, ast.Attribute) and _only_grows(index, info.owner, held.attr):
                    yield info, node, f"self.{held.attr}"


def _only_grows(index: ModuleIndex, owner: ClassInfo, attribute: str) -> bool:
    start = owner.methods.get("__init__")
    made = start is not None and any(
        isinstance(n, ast.Assign | ast.AnnAssign)
        and isinstance(n.value, ast.List)
        and any(ast.unparse(t) == f"self.{attribute}" for t in (n.targets if isinstance(n, ast.Assign) else [n.target]))
        for n in start.own_nodes
    )
    # A base in another file may empty it.
    if not made or start is None or not all(b in index.classes or b.startswith("torch.nn.") for b in owner.bases):
        return False
    inside = set(walk(start.node))
    for node in walk(index.tree):
        if node in inside or not isinstance(node, ast.Attribute) or node.attr != attribute:
            continue
        # Whatever else happens to it may empty it, but reading and appending does not.
        if not isinstance(node.ctx, ast.Load):
            return False
    emptied = rf"\.{re.escape(attribute)}\s*\.\s*(clear|pop|remove|popleft)\b|del\s+[\w.]*\.{re.escape(attribute)}\b"
    return re.search(emptied, index.module.text) is None
