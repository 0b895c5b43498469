"""Events for the uses of what a file compiles, and for Python state that its compiled code changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from breakscan.check.compile_uses.arguments import changing_arguments
from breakscan.check.compile_uses.compile_calls import compile_calls
from breakscan.check.compile_uses.counters import changing_attributes, global_counters, growing_attributes
from breakscan.check.compile_uses.cudagraphs import overwritten_tensors
from breakscan.check.compile_uses.names import CompiledNames
from breakscan.check.compile_uses.stale_floats import float_updates
from breakscan.check.compile_uses.switches import switched_state
from breakscan.check.compile_uses.timings import timed_calls
from breakscan.check.compile_uses.uses import Found, survey
from breakscan.check.compile_uses.wrappers import wrapper_uses
from breakscan.check.interpreter.program import Program
from breakscan.check.interpreter.values import Module
from breakscan.check.project.entry_points import COMPILE
from breakscan.check.project.index import FunctionInfo
from breakscan.check.project.scopes import Scopes
from breakscan.rulebook.events import Event, EventKind
from breakscan.source.spans import span, text_of

_MAY_COMPILE = re.compile(r"\.compile\b(?<!\bre\.compile)")
_FINDERS = (
    changing_arguments,
    changing_attributes,
    switched_state,
    wrapper_uses,
    overwritten_tensors,
    timed_calls,
)


def compile_events(program: Program, compiled: set[FunctionInfo]) -> Iterator[tuple[FunctionInfo | None, Event]]:
    """The events of what a file compiles and how it uses that, each with the function that holds it.

    ``compiled`` are the functions in a region.
    """
    index, text = program.index, program.module.text
    for info, statement, name in global_counters(index, text, compiled):
        yield info, _stored(program, "global-counter", statement, name)
    for info, call, name in growing_attributes(index, text, compiled):
        if info.owner is not None and isinstance(program.attributes.instance(info.owner), Module):
            yield info, _stored(program, "growing-attribute", call, name)
    for info, statement, place in float_updates(index, compiled):
        yield info, _stored(program, "float-update", statement, ast.unparse(place))
    if not _MAY_COMPILE.search(text) and COMPILE not in index.imports.values():
        return
    scopes = Scopes(index)
    yield from compile_calls(program, scopes, compiled)
    names = CompiledNames(program.project, scopes)
    if not names.compiled:
        return
    seen = survey(names)
    for finder in _FINDERS:
        for found in finder(seen):
            yield found.step.scope.info, _event(program, found)


def _stored(program: Program, form: str, node: ast.AST, name: str) -> Event:
    where = span(program.module, node)
    return Event(EventKind.STORE, *where, form=form, attribute=name, text=text_of(program.module, node))


def _event(program: Program, found: Found) -> Event:
    return Event(
        found.kind,
        *span(program.module, found.node),
        form=found.form,
        callee=found.callee,
        attribute=found.name,
        operands=found.operands,
        arguments=found.arguments,
        in_region=False,
        conditions=(found.condition,) if found.condition else (),
        text=text_of(program.module, found.node),
    )
