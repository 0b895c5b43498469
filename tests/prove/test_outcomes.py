"""Outcomes of tests are recorded, and the code computes what it computes without that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from breakscan.prove.overlay import executed_code, plain_code, recording_code

TEXT = """\
class Once:
    asked = 0

    def __bool__(self):
        self.asked += 1
        return True


class A:
    def f(self, x, y=0):
        once = Once()
        z = x or (y and 3)
        while not (x > 3 and y < 2):
            x += 1
        w = [i for i in range(4) if i > 1 if not i == 3]
        assert once, "no"
        match x:
            case 4 if x > y:
                z = 7
        return ("a" if x > 5 else "b"), z or None, w, f"{x if y else 1}", once.asked


def unused(q):
    if q:
        return 1


while True:
    break
"""
BOTH = frozenset({True, False})


def result(code: Any) -> object:
    names: dict[str, Any] = {"__name__": "it"}
    exec(code, names)
    return names["A"]().f(0)


def test_outcomes_are_recorded_and_nothing_changes(tmp_path: Path) -> None:
    path = str(tmp_path / "it.py")
    code = recording_code(TEXT, path)
    expected = result(plain_code(TEXT, path))
    assert result(code) == expected
    with executed_code([path]) as ran:
        pass
    assert result(code) == expected
    assert not ran.outcomes, "only while it records"
    with executed_code([path]) as ran:
        assert result(code) == expected
    lines = [line.encode() for line in TEXT.splitlines()]
    found: dict[str, set[bool]] = {}
    for one in ran.found()[path].outcomes:
        test = lines[one.span.line - 1][one.span.column : one.span.end_column].decode()
        found.setdefault(test, set()).add(one.outcome)
    assert found == {
        "x": {False},
        "y": {False},
        "x > 3": BOTH,
        "y < 2": {True},
        "i > 1": BOTH,
        "i == 3": BOTH,
        "once": {True},
        "x > y": {True},
        "x > 5": {False},
        "z": {True},
    }


def test_lines_and_names_of_functions_stay(tmp_path: Path) -> None:
    path = str(tmp_path / "it.py")
    plain, recorded = plain_code(TEXT, path), recording_code(TEXT, path)

    def functions(code: Any) -> list[tuple[str, int]]:
        inner = [one for one in code.co_consts if isinstance(one, type(code))]
        return [(code.co_name, code.co_firstlineno), *(each for one in inner for each in functions(one))]

    assert functions(recorded) == functions(plain)


def test_instructions_without_a_line_end_no_run(tmp_path: Path) -> None:
    path = str(tmp_path / "it.py")
    scope: dict[str, Any] = {}
    # CPython 3.10 to 3.13 give the jump back to the loop, or the end of the handler, no line.
    text = "def f():\n    for x in 1, 2:\n        if x > 1:\n            x = 3\n"
    text += "        try:\n            1 / 0\n        except ZeroDivisionError as error:\n            x = 4\n"
    exec(plain_code(text, path), scope)
    with executed_code([path], closely=True) as ran:
        scope["f"]()
    assert {2, 3, 4, 8} <= {*ran.found()[path].lines}
