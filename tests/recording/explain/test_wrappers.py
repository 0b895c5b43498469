"""What reports call a function that a decorator of a library's wraps."""

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
MODULE = """import torch
from {decorators} import logged


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


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The functions that the report of one run names, for each module, with a decorator of its own."""
    folder = Folder(tmp_path_factory.mktemp("wrappers"))
    modules = {"outermost": ("pass", "outer"), "innermost": ("pass", "inner"), "broken": ("print()", "outer")}
    for name, (inner, given) in modules.items():
        folder.write(f"site-packages/{name}_decorators.py", DECORATOR)
        folder.write(f"{name}.py", MODULE.format(decorators=f"{name}_decorators", inner=inner, given=given))
    folder.write("program.py", f"import sys\nsys.path.insert(0, 'site-packages')\nimport {', '.join(modules)}\n")
    done, report = folder.explain_json("program.py")
    assert done.status == 0, done.err
    things = [thing for key in ("graphs", "compiles", "recompiles") for thing in report[key]]
    return {name: {one["function"] for one in things if name in one["site"]["path"]} for name in modules}


def test_the_function_that_was_given_names_what_was_compiled(functions: dict[str, set[str]]) -> None:
    assert functions["outermost"] == {"outer"}
    assert functions["innermost"] == {"inner"}


def test_behind_a_break_the_wrapper_may_be_another_functions(functions: dict[str, set[str]]) -> None:
    assert functions["broken"] >= {"logged.wrapper", "inner"}
