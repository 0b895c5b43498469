"""``tools/primer.py``: what a change does to released projects, as text."""

from collections import Counter

from tools.primer import Checked, Difference, report


def run(*lines: str, status: int = 0) -> Checked:
    return Checked(Counter(lines), status, "Traceback", 1.0)


def test_lines_that_come_and_go_are_shown_with_a_run_that_fails() -> None:
    changed = Difference("one 1.0", run("a.py:1:1 BRK101", "a.py:2:1 BRK101"), run("a.py:2:1 BRK101", "a.py:3:1 BRK4"))
    text = list(report([changed, Difference("two 2.0", run("b"), run("b")), Difference("c 3", run(), run(status=3))]))
    assert "Changed in one 1.0, c 3: 3 → 3 findings, 3 → 3 CPU s." in text
    start = text.index("```diff")
    assert text[start + 1 : start + 3] == ["- a.py:1:1 BRK101", "+ a.py:3:1 BRK4"]
    assert "! fails with 3: Traceback" in text
    assert not any("two 2.0" in line for line in text)
