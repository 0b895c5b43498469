"""The scopes of a file: what encloses a statement, and what binds a name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from breakscan.check.project.index import build_index
from breakscan.check.project.scopes import Scope, Scopes, Step, own_parts
from breakscan.source.module import parse_module

TEXT = """
import os.path as path
first = 1
if first:
    first = 2
else:
    first, second = 3, 4

class A:
    attribute = 5

    def method(self, given):
        global second
        self.kept = given
        for i in range(3):
            with open(given) as file:
                first = i
        else:
            last = 6
        while given():
            try:
                pass
            except OSError:
                failed = 7
            finally:
                done = 8

        def inner(x):
            return x
"""


@pytest.fixture
def scopes() -> Scopes:
    return Scopes(build_index(parse_module(TEXT, Path("a.py"), "a.py")))


def step_at(scopes: Scopes, text: str) -> Step:
    steps = [step for scope in scopes.scopes for step in scope.steps]
    # Python 3.10 unparses a tuple target with parentheses.
    normalized = ast.unparse(ast.parse(text))
    return next(step for step in steps if ast.unparse(step.statement) == normalized)


def lines(scope: Scope, name: str) -> list[int]:
    return [binding.line for binding in scope.bindings.get(name, [])]


def test_every_function_is_a_scope_with_its_class(scopes: Scopes) -> None:
    top, method, inner = scopes.scopes
    assert (top.node, top.parent, top.owner) == (scopes.index.tree, None, None)
    assert (method.parent, method.owner, method.info and method.info.qualname) == (
        top,
        scopes.index.classes["A"],
        "A.method",
    )
    assert (inner.parent, inner.owner, list(method.inner)) == (method, None, ["inner"])


def test_what_binds_a_name(scopes: Scopes) -> None:
    top, method, inner = scopes.scopes
    assert [lines(top, name) for name in ("path", "first", "second", "A")] == [[2], [3, 5, 7], [7], [9]]
    names = ["self", "given", "first", "i", "file", "last", "failed", "done", "inner"]
    assert [lines(method, name) for name in names] == [[12], [12], [17], [15], [16], [19], [24], [26], [28]]
    assert (set(inner.bindings), method.outer_names) == ({"x"}, {"second"})
    assert [ast.unparse(b.value) for b in top.bindings["first"] if b.value] == ["1", "2"]


def test_attributes_of_self_belong_to_the_class(scopes: Scopes) -> None:
    [kept] = scopes.attribute_bindings(scopes.index.classes["A"], "kept")
    assert (kept.line, kept.value and ast.unparse(kept.value)) == (14, "given")


def test_what_encloses_a_statement(scopes: Scopes) -> None:
    inside = step_at(scopes, "first = i")
    assert [type(loop) for loop in inside.loops] == [ast.For]
    assert [ast.unparse(context) for context in inside.contexts] == ["open(given)"]
    assert [holds for _, holds in step_at(scopes, "first = 2").arms] == [True]
    assert [holds for _, holds in step_at(scopes, "first, second = (3, 4)").arms] == [False]
    assert step_at(scopes, "last = 6").loops == ()
    assert [type(loop) for loop in step_at(scopes, "done = 8").loops] == [ast.While]
    [attribute, _] = scopes.class_steps
    assert (ast.unparse(attribute.statement), attribute.scope) == ("attribute = 5", scopes.top)


def test_only_the_test_of_a_while_is_in_its_loop(scopes: Scopes) -> None:
    method = scopes.scopes[1]
    heads = {
        ast.unparse(part): len(place.loops)
        for step in method.steps
        if isinstance(step.statement, ast.For | ast.While)
        for part, place in own_parts(step)
    }
    assert heads == {"i": 0, "range(3)": 0, "given()": 1}
