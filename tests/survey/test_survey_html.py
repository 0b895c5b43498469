"""The page of a survey in a real browser."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from breakscan.cli.main import cli
from breakscan.report.survey_html import write_survey_html
from breakscan.survey.facts import FACTS
from breakscan.survey.overview import overview
from breakscan.survey.plan import PlannedUnit
from breakscan.survey.store import Store
from breakscan.survey.units import Environment, StageResult, SurveyStage, Unit

NASTY = "</script><img src=x onerror=alert(1)>\u202e`${1}|<!--\x1b[31m"
SITE = {"path": "/e/site-packages/lib/a.py", "line": 7, "column": 1, "end_line": 7, "end_column": 9}


def problem(kind: str, rule: str | None, function: str, **values: Any) -> dict[str, Any]:
    names = {"gb_id": "GB0170", "reason": "", "cause": None, "verdict": "eager"}
    where = {"site": SITE, "functions": [function], "origin": "library", "cost": None}
    return {"kind": kind, "rule": rule, **names, **where, **values}


def a_break(rule: str | None, path: str = str(SITE["path"]), seconds: float = 0.002) -> dict[str, Any]:
    values = {"site": {**SITE, "path": path}, "cost": 3 * seconds, "verdict": "splits"}
    return problem("break", rule, "M.forward", reason=f"why {NASTY}", **values)


def explain_json(*breaks: dict[str, Any]) -> dict[str, Any]:
    function = problem("function", None, "g", reason="calls a C function")
    recompile = {"rule": "BRK701", "guard": "x.shape[0] == 8", "seconds": 1.5, "site": SITE, "origin": "library"}
    again = problem("recompiles", "BRK701", "M.forward", cost=1.5)
    return {
        "summary": {"graphs": 2, "entries": 1, "ops": 9, "compile_seconds": 1.5},
        "script": {"seconds": 3.0},
        "problems": [*breaks, function, again] if breaks else [],
        "recompiles": [{**recompile, "function": "M.forward"}] if breaks else [],
        "traced": {},
    }


CHECK = {"summary": {"by_rule": {"BRK101": 1}, "files": 1}}
OTHERS: dict[str, list[Any]] = {name: [] for name in ("unsafe", "declined", "without")}
FIX = {"files": [{**OTHERS, "safe": [{"rewrite": "where"}]}]}
PROOF = {"label": "where", "rewrite": "where", "verdict": "accepted", "ratio": {"median": 1.25}}
VERIFY = {"proofs": [PROOF]}
BENCH = {"ways": [{"way": "reduce-overhead", "ratio": None, "problem": "fails"}], "best": None}


def result(stage: str, told: dict[str, Any]) -> StageResult:
    facts = FACTS[SurveyStage(stage)](told)
    return StageResult(stage, "ok", 2.0, 10**9, facts, "", "host")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "survey.db"
    environments = [Environment("3.11.7", "python", {"torch": version}) for version in ("2.12.0", "2.13.0")]

    def unit(name: str, mode: str = "eval", version: int = 1) -> PlannedUnit:
        return PlannedUnit(Unit(name, build="z:b", argument=name, mode=mode), environments[version])

    told = [
        (
            unit("zoo/broken"),
            [
                result("explain", explain_json(a_break("BRK101"), a_break("BRK401", "b.py", 0.5))),
                *(
                    result(name, one)
                    for name, one in (("check", CHECK), ("fix", FIX), ("verify", VERIFY), ("bench", BENCH))
                ),
            ],
        ),
        (unit("zoo/broken", "train"), [result("explain", explain_json(a_break("BRK101"), a_break(None)))]),
        (unit("zoo/whole"), [result("explain", explain_json())]),
        (unit("zoo/whole", version=0), [result("explain", explain_json())]),
        (unit(f"zoo/{NASTY}"), [StageResult("explain", "failed", 1.0, None, said=f"Traceback\nError: {NASTY}")]),
        (unit("zoo/later"), []),
    ]
    with Store(path) as made:
        made.begin([one for one, _ in told], ["explain"])
        for one, results in told:
            for each in results:
                made.put(one.key, each)
    return path


@pytest.fixture
def page_file(store: Path, tmp_path: Path) -> Path:
    path = tmp_path / "survey.html"
    done = CliRunner().invoke(cli, ["survey", "report", str(store), "--format", "html", "--output", str(path)])
    assert done.exit_code == 0, done.output
    return path


@pytest.fixture
def show(chromium: Any, page_file: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page, and fails the test for any error, message or request of it."""
    contexts = []
    said: list[str] = []

    def open_page(fragment: str = "", **options: Any) -> Any:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: request.url.startswith("file:") or said.append(request.url))
        page.goto(f"{page_file.as_uri()}{fragment}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


def rows(page: Any) -> list[str]:
    shown = page.locator(".panel:not([hidden]) table.list > tbody > tr:not(.detail)")
    return [" ".join(row.split()) for row in shown.all_inner_texts()]


def names(page: Any) -> list[str]:
    cells = page.locator("#panel-units table.list > tbody > tr:not(.detail) > td.path")
    return [cell.strip() for cell in cells.all_inner_texts()]


# -- the files -------------------------------------------------------------------------------------------------


def test_a_page_runs_its_own_script_alone_and_links_to_nothing_else(page_file: Path) -> None:
    text = page_file.read_text(encoding="ascii")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    assert re.findall(r"sha256-([^']*)", policy) == digests
    assert not re.findall(r"<\w[^<>]*\b(?:src|href|action)=", text.replace(script, ""))
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)


def test_what_programs_say_is_no_markup(page_file: Path) -> None:
    text = page_file.read_text(encoding="ascii")
    assert "<img" not in text
    assert "<!--" not in text
    assert text.count("</script>") == 2


def test_a_store_of_before_costs_has_a_page() -> None:
    stream = io.StringIO()
    write_survey_html(overview([]), stream)
    assert "none of 0 units ran" in stream.getvalue()


# -- the browser -----------------------------------------------------------------------------------------------


@pytest.mark.process
def test_units_are_filtered_by_all_that_they_have(show: Any) -> None:
    page = show()
    assert "2 of 4 units that ran break the graph" in page.locator("h1").inner_text()
    assert not page.locator("#static").is_visible()
    count = page.locator("#panel-units .count")
    assert count.inner_text() == "6 units"
    search = page.get_by_placeholder("Search units")
    search.fill("brk401 EVAL")
    assert names(page) == ["zoo/broken"]
    assert count.inner_text() == "1 of 6 units"
    search.fill("no such thing")
    assert page.get_by_text("No unit is like that.").is_visible()
    search.fill("")
    for state in ("ok", "failed", "waiting"):
        page.locator(f".chip[data-value={state}]").click()
    assert names(page) == ["zoo/broken", "zoo/broken"]
    page.get_by_role("button", name="train cpu").click()
    assert [row.split()[1] for row in rows(page)] == ["eval"]
    page.reload()
    page.get_by_role("button", name="2.13.0").click()
    assert names(page) == ["zoo/whole"]
    page.reload()
    page.get_by_label("Any rule").select_option(label="BRK101 (2)")
    page.get_by_label("Any file").select_option(label="b.py (1)")
    assert [row.split()[:2] for row in rows(page)] == [["zoo/broken", "eval"]]


@pytest.mark.process
def test_units_are_sorted_and_open(show: Any) -> None:
    page = show()
    page.get_by_role("button", name="Takes", exact=True).click()
    assert [row.split()[1] for row in rows(page)[:2]] == ["eval", "train"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Takes")
    page.locator("tr .opener").first.click()
    detail = page.locator("tr.detail").inner_text()
    assert "BRK401 costs most." in detail
    assert "lib/a.py" in detail
    page.get_by_placeholder("Search units").fill("Error:")
    page.locator("tr .opener").first.click()
    assert "Traceback\nError: </script>" in page.locator("pre.said").inner_text()


@pytest.mark.process
def test_what_units_have_in_common_leads_to_them(show: Any) -> None:
    page = show("#causes")
    assert rows(page)[0].startswith("BRK101 ")
    page.get_by_role("link", name="BRK401").click()
    assert names(page) == ["zoo/broken"]
    page.get_by_role("tab", name="Files").click()
    page.get_by_role("link", name="lib/a.py").click()
    assert names(page) == ["zoo/broken", "zoo/broken"]
    page.get_by_role("tab", name="Places").click()
    assert "b.py:7 BRK401 1" in rows(page)
    page.get_by_role("tab", name="Did not run").click()
    page.locator("#panel-endings td a").click()
    assert len(rows(page)) == 1


@pytest.mark.process
def test_without_scripts_the_tables_are_there(show: Any) -> None:
    page = show(java_script_enabled=False)
    assert page.locator("#static").is_visible()
    assert page.locator("#static td", has_text="BRK401").first.is_visible()
