"""What reports call a function that a decorator of a library's wraps."""

from __future__ import annotations

from typing import Any

import pytest
from programs import Folder

pytestmark = pytest.mark.torch

DECORATOR = """import functools


def logged(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper
"""
PROGRAM = """import sys

sys.path.insert(0, "site-packages")

import torch
from decorators import logged


@logged
def inner(x):
    {inner}
    return x.cos()


@logged
def outer(x):
    return inner(x.sin())


{given} = torch.compile({given}, backend="eager")
{given}(torch.ones(3))
{given}(torch.ones(4))
"""


@pytest.fixture
def functions(folder: Folder) -> Any:
    pytest.importorskip("torch")

    def run(inner: str = "pass", given: str = "outer") -> set[str]:
        folder.write("site-packages/decorators.py", DECORATOR)
        folder.write("program.py", PROGRAM.format(inner=inner, given=given))
        done, report = folder.explain_json("program.py")
        assert done.status == 0, done.err
        return {thing["function"] for key in ("graphs", "compiles", "recompiles") for thing in report[key]}

    return run


def test_the_function_that_was_given_names_what_was_compiled(functions: Any) -> None:
    assert functions() == {"outer"}
    assert functions(given="inner") == {"inner"}


def test_behind_a_break_the_wrapper_may_be_another_functions(functions: Any) -> None:
    found = functions(inner="print()")
    assert "logged.wrapper" in found
    assert found >= {"logged.wrapper", "inner"}
