"""``tools.freeze``: two runs of the same code are equal, and a difference is shown."""

import json
from pathlib import Path

from tools.freeze import compare, normalise, schema_keys


def test_times_and_their_order_do_not_count() -> None:
    runs = [
        "Costs most: 11.2 s of\ncompiling.  Breaks\n\na.py:3 took 3 ms\n\nb.py:4 took 1 min 2 s\n",
        "Costs most: 950 ms of compiling.\n Breaks\n\nb.py:4 took 812 µs\n\na.py:3 took 1.5 s\n",
    ]
    assert normalise(runs[0], timed=True) == normalise(runs[1], timed=True)
    assert normalise(runs[0], timed=False) != normalise(runs[1], timed=False)
    assert normalise("recompiled 6×", timed=True) != normalise("recompiled 7×", timed=True)


def test_numbers_of_json_that_measure_do_not_count() -> None:
    a, b = {"line": 1, "seconds": 0.25}, {"line": 2, "seconds": 0.5}
    assert normalise(json.dumps([a, b]), timed=True) == normalise(json.dumps([b, {**a, "seconds": 1.0}]), timed=True)
    assert normalise(json.dumps([a]), timed=True) != normalise(json.dumps([b]), timed=True)
    assert normalise(json.dumps([a, b]), timed=False) != normalise(json.dumps([b, a]), timed=False)


def test_keys_of_a_schema() -> None:
    schema = {"properties": {"breaks": {"type": "array", "items": {"properties": {"line": {"type": "integer"}}}}}}
    assert list(schema_keys(schema)) == ['breaks: "array"', 'breaks.[].line: "integer"']


def test_a_difference_and_a_missing_output_are_shown(tmp_path: Path) -> None:
    for folder, texts in {"a": {"same": "x", "check": "1"}, "b": {"same": "x", "check": "2", "fix": "3"}}.items():
        for name, text in texts.items():
            tmp_path.joinpath(folder).mkdir(exist_ok=True)
            tmp_path.joinpath(folder, f"{name}.txt").write_text(text, encoding="utf-8")
    lines = list(compare(tmp_path / "a", tmp_path / "b", []))
    assert [line for line in lines if line[1:] in ("1", "2", "3")] == ["-1", "+2", "+3"]
    assert not list(compare(tmp_path / "a", tmp_path / "b", ["same"]))
