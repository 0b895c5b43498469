"""What there is to say of a break or a recompile is the same in every format of ``explain``."""

import json
from dataclasses import replace

import explain_results as made
import pytest

from breakscan.explanation.explanation import Explanation
from breakscan.model.findings import Origin
from breakscan.model.problem import Caller

PARTS_OF_A_PAGE = {"html without scripts": ('<div id="static">', "</main>"), "html": ('id="data">', "</script>")}
FORMATS = ("terminal", "markdown", "github", "sarif", *PARTS_OF_A_PAGE)


def written(told: Explanation, format_: str) -> str:
    """The report in one line; of a page, the tables that need no scripts, or the data of the scripts."""
    text = made.written(format_.partition(" ")[0], told)
    if format_ in PARTS_OF_A_PAGE:
        start, end = PARTS_OF_A_PAGE[format_]
        text = text.partition(start)[2].partition(end)[0]
    return " ".join(text.split())


@pytest.mark.parametrize("format_", FORMATS)
def test_what_was_recompiled_too_often_is_told_once(format_: str) -> None:
    other = replace(
        made.RECOMPILE, cause=1, subject="y", guard=replace(made.RECOMPILE.guard, demand="y == 1"), old="1", new="2"
    )
    told = made.explanation(recompiles=(made.RECOMPILE, made.RECOMPILE, other), frames=(made.OVER_LIMIT,))
    text = written(told, format_)
    assert text.count("runs eager from then on: 8 versions of it are compiled") == 1
    assert text.index("from then on") < text.index("y was 1")
    assert "not compiled" not in text.lower()


@pytest.mark.parametrize("format_", FORMATS)
def test_a_break_inside_torch_says_what_can_be_done(format_: str) -> None:
    inside = replace(made.IN_LIBRARY, origin=Origin.FRAMEWORK)
    assert "keep the call that leads here out of the compiled code" in written(
        made.explanation(breaks=(inside,)), format_
    )


def test_a_call_in_the_line_of_the_recompile_is_not_named_again() -> None:
    site = made.RECOMPILE.site
    beside = replace(made.RECOMPILE, trigger=Caller(site.path, site.line, "f", Origin.USER))
    told = made.explanation(breaks=(), frames=(), export_problems=(), recompiles=(beside,))
    assert "Called from" not in written(told, "terminal")
    assert "<br>from" not in written(told, "markdown")
    (result,) = (
        one
        for one in json.loads(written(told, "sarif"))["runs"][0]["results"]
        if "Recompiled" in one["message"]["text"]
    )
    assert "relatedLocations" not in result
