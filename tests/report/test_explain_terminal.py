"""The report of ``explain`` that people read, by explanations made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from explain_results import BREAK, COMPILE, FRAME, GRAPH, IN_LIBRARY, RAISES, RECOMPILE, explanation
from explain_results import written as report
from report_results import Terminal

from breakscan.explanation.notices import RUNNING
from breakscan.model.findings import Site
from breakscan.model.problem import Price
from breakscan.model.words import seconds_in_words
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.tables import LISTINGS
from breakscan.report.explain.terminal import write_explanation

CALLS = explanation().calls[0]
LONG = "container.AugmentationSequentialOperations.transform_all_of_them_one_after_the_other_and_then_back_again"


def written(*tables: str, **changes: Any) -> str:
    return report("terminal", explanation(**changes), tables=tables)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    changes = {
        "breaks": (replace(BREAK, function=LONG), replace(IN_LIBRARY, function=LONG), RAISES),
        "recompiles": [replace(RECOMPILE, function=f"{LONG}{n}") for n in range(4)],
        "frames": (replace(FRAME, function=LONG),),
        "graphs": (replace(GRAPH, function=LONG),),
        "compiles": (replace(COMPILE, function=LONG, failed="the backend raised " * 30),),
    }
    for tables in ((), tuple(LISTINGS)):
        lines = written(*tables, **changes).splitlines()
        # A name, or a path, that is longer than the line is left whole, for it to be found and clicked.
        assert [line for line in lines if len(line) > width and LONG not in line] == []
        assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0412, "41 ms"), (0.1, "0.1 s"), (9.94, "9.9 s"), (59.6, "60 s"), (1490, "25 min"), (12_240, "3.4 h")],
)
def test_seconds(seconds: float, words: str) -> None:
    assert seconds_in_words(seconds) == words


def test_what_compiling_again_took_is_told_and_decides_the_order() -> None:
    cheap = [replace(RECOMPILE, cause=0, seconds=seconds) for seconds in (0.2, 0.3)]
    costly = replace(RECOMPILE, cause=1, seconds=18.0, site=Site("src/slow.py", 5, 1, 5, 2))
    text = " ".join(written(recompiles=[*cheap, costly], compile_seconds=35.0).split())
    assert text.index("Recompiles src/slow.py:5") < text.index("Graph breaks in your code")
    assert "3 recompiles from 2 causes, 18 s of compiling." in text
    assert text.count("Compiling again took") == 1
    slow, _, rest = text.partition("Compiling again took 18 s of 35 s spent on compiling.")
    assert "src/slow.py:5" in slow
    assert "recompiled 2×" in rest


def test_advice_is_said_to_stand_above_only_where_it_does() -> None:
    guards = [replace(RECOMPILE.guard, old=old) for old in ("32", "32", "1", "32")]
    same = [replace(RECOMPILE, guard=one, old=one.old, cause=number) for number, one in enumerate(guards)]
    text = written(breaks=(), frames=(), recompiles=same)
    assert text.count("as above") == 1
    assert text.count("give all calls one size") == 2


def test_what_raises_under_fullgraph_says_how_to_see_the_rest() -> None:
    assert "breakscan explain --keep-going shows what else does." in " ".join(written(breaks=(RAISES,)).split())
    assert "--keep-going" not in written(breaks=(BREAK,))


@pytest.mark.parametrize(("microseconds", "is_told"), [(1.0, False), (50.0, True)])
def test_guards_that_cost_are_told(microseconds: float, is_told: bool) -> None:
    """A call takes 100 us here: less than 2% of it is no news."""
    calls = (replace(CALLS, calls=10, seconds=0.001, graph_seconds=0.0005, gap_seconds=0.0),)
    text = written(calls=calls, compiles=(replace(COMPILE, guard_seconds=microseconds / 1e6),))
    assert ("Guards: Block.forward checks 2 guards at each call" in text) == is_told


def test_compile_time_by_stage() -> None:
    parts = "Inductor 2.0 s, Dynamo 1.0 s, AOTAutograd 0.5 s"
    assert f"Compile time: 2 compilations; {parts}." in " ".join(written().split())


class TestListings:
    @pytest.mark.parametrize("word", LISTINGS)
    def test_what_there_is_none_of_is_said(self, word: str) -> None:
        empty: dict[str, Sequence[Any]] = {"graphs": (), "compiles": ()}
        assert f"No {word} were recorded.\n" in written(word, **empty)

    def test_only_what_there_is_is_offered(self) -> None:
        assert "\n   --show graphs,stages,guards,compiles lists what there is." in written()
        again = report("terminal", explanation(), again="breakscan report --last")
        assert "breakscan report --last --show graphs,stages" in again
        bare = replace(GRAPH, generated=(), stages=())
        compile_ = replace(COMPILE, guards=(), made=())
        assert "--show graphs,compiles lists what" in written(graphs=(bare,), compiles=(compile_,))


def test_of_many_breaks_the_dearest_are_shown() -> None:
    breaks = [
        replace(BREAK, site=Site(f"m{number % 3}.py", number, 1, number, 2), price=Price(2, number, None, False, 0.0))
        for number in range(1, 31)
    ]
    text = written(breaks=breaks, frames=(), recompiles=())
    assert "30 sites of 1 kind break the graph 90 times" in text
    shown = [number for number in range(1, 31) if f"m{number % 3}.py:{number}:1" in text]
    assert shown == list(range(21, 31))
    assert "20 more; --show findings lists all." in text
    whole = written("findings", breaks=breaks, frames=(), recompiles=())
    assert all(f"m{number % 3}.py:{number}:1" in whole for number in range(1, 31))


def test_on_a_terminal_a_break_links_to_pytorchs_page() -> None:
    def shown(**changes: Any) -> str:
        stream = Terminal()
        write_explanation(ExplainReport(explanation(**changes)), stream)
        return stream.getvalue()

    page = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html"
    assert page in shown(breaks=(BREAK,))
    assert page in shown(breaks=(replace(BREAK, rule=None),))
    assert "://" not in shown(breaks=(replace(BREAK, gb_id=None),))
    assert "://" not in shown(breaks=(replace(BREAK, gb_id="GB0124\x1b\\../x"),))
    assert page not in written(breaks=(BREAK,))


@pytest.mark.parametrize("number", [0, 3])
def test_it_points_to_fix_where_that_has_edits(number: int) -> None:
    text = report("terminal", explanation(breaks=(BREAK,)), fixable=number)
    assert (f"'breakscan fix' shows a diff for {number} of these breaks" in text) is bool(number)


def test_of_a_program_that_still_runs_no_end_is_told() -> None:
    text = written(status=None, notices=(RUNNING,))
    assert "\ntrain.py is still running · " in text
    assert "ended" not in text.partition("·")[0]


def test_the_settings_of_all_problems_are_tried_at_once() -> None:
    captures = replace(BREAK, site=replace(BREAK.site, line=7), remedies=("capture_dynamic_output_shape_ops",))
    text = " ".join(written(breaks=(BREAK, captures)).split())
    options = "--config=capture_scalar_outputs=True --config=capture_dynamic_output_shape_ops=True"
    assert text.count(f"'breakscan verify {options} train.py --epochs 2' tries the settings for 2 problems.") == 1
