"""Bytecode of nearly straight code, read as Python."""

from typing import Any

import pytest

from breakscan.recording.parsers.bytecode import python_lines

FUNCTION = """def f(self, x, *rest, flag, **more):
    value_1 = self.a.b(x, 1, key=flag)
    self.c = -value_1
    x[1:2] = {'k': [x + (value_1 * 2), *rest]}
    del x[0]
    value_2 = x.enter(**more)
    with value_2:
        value_3 = value_1(x[:3], 'text')
    value_4 = go(value_3)
    if value_4[0]:
        value_5 = go(value_1, (x,))
        if value_5 < 3:
            return x
        return value_1
    return stop(*x)
"""


class Repr:
    def __repr__(self) -> str:
        raise AssertionError


def lines_of(text: str, *constants: object) -> list[str]:
    names: dict[str, Any] = {"g": lambda *_: pytest.fail("it runs")}
    exec(text, names)
    code = names["f"].__code__
    code = code.replace(co_consts=(*code.co_consts, *constants))
    return ["    " * line.depth + line.text for line in python_lines(code, names)]


def test_code_is_read_as_it_was_written() -> None:
    # Dynamo calls what a block enters and exits.
    text = FUNCTION.replace("with value_2:", "value_2.__enter__()").replace("        value_3", "    value_3")
    text = text.replace("    value_4 = ", "    value_2.__exit__(None, None, None)\n    value_4 = ")
    assert lines_of(text) == FUNCTION.splitlines()


def test_what_cannot_be_read_is_left_out() -> None:
    assert lines_of("def f(x):\n    g(x)\n    import os\n") == ["def f(x):", "    g(x)", "    ..."]
    assert "..." in "".join(lines_of("def f(x):\n    while x: pass\n"))
    assert lines_of("def f(x):\n    while True: x()\n")[-1] == "    ..."


def test_nothing_of_the_program_runs() -> None:
    text = "def f(x):\n    return g(lambda: x)\n"
    assert lines_of(text, Repr(), [Repr()], (Repr(),)) == ["def f(x):", "    return g(<lambda>)"]


def test_of_many_arguments_the_first_are_shown() -> None:
    assert lines_of("def f(x):\n    x(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)\n")[1] == "    x(1, 2, 3, 4, 5, 6, 7, 8, … 2 more)"
