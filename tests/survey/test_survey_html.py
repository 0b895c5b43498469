"""The pages of surveys in a real browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from breakscan.cli.survey import survey
from breakscan.report.survey_html import write_survey_html
from breakscan.survey.facts import FACTS
from breakscan.survey.overview import overview
from breakscan.survey.plan import PlannedUnit
from breakscan.survey.store import Store
from breakscan.survey.unit_row import page_names, row_of
from breakscan.survey.units import Environment, StageResult, SurveyStage, Unit, packed

NASTY = "</script><img src=x onerror=alert(1)>\u202e`${1}|<!--\x1b[31m"
SITE = {"path": "/e/site-packages/lib/a.py", "line": 7, "column": 1, "end_line": 7, "end_column": 9}


def problem(kind: str, rule: str | None, function: str, **values: Any) -> dict[str, Any]:
    names = {"gb_id": "GB0170", "reason": "", "why": "", "consequences": [], "hints": [], "remedies": [], "cause": None}
    where = {"site": SITE, "functions": [function], "origin": "library", "code": None, "count": 1, "cost": None}
    return {"kind": kind, "rule": rule, "verdict": "eager", "what": "runs eager", **names, **where, **values}


def a_break(rule: str | None, path: str = str(SITE["path"]), seconds: float = 0.002) -> dict[str, Any]:
    remedies = [{"kind": "edit", "text": "write torch.where", "tried": False}]
    values = {"site": {**SITE, "path": path}, "code": "if x.sum() > 0:", "cost": 3 * seconds, "remedies": remedies}
    why = f"why {NASTY}"
    return problem("break", rule, "M.forward", why=why, reason=why, verdict="splits", what="splits the graph", **values)


def explain_json(*breaks: dict[str, Any]) -> dict[str, Any]:
    why = "calls a C function"
    function = problem("function", None, "g", why=why, reason=why, code="def g():")
    recompile = {"rule": "BRK701", "guard": "x.shape[0] == 8", "seconds": 1.5, "site": SITE, "origin": "library"}
    again = problem("recompiles", "BRK701", "M.forward", why="x.shape[0] was 8, then 9", cost=1.5)
    return {
        "summary": {
            "graphs": 2,
            "entries": 1,
            "ops": 9,
            "compile_seconds": 1.5,
            "recompiles": 1,
            "break_sites": len(breaks),
        },
        "script": {"seconds": 3.0},
        "problems": [*breaks, function, again] if breaks else [],
        "recompiles": [{**recompile, "function": "M.forward"}] if breaks else [],
        "notices": ["a note"],
        "traced": {},
    }


FINDING = {"rule": "BRK101", "message": "a branch", "site": SITE, "function": "M.forward"}
CHECK = {"findings": [FINDING], "summary": {"by_rule": {"BRK101": 1}, "files": 1}}
OFFER = {"finding": FINDING, "rewrite": "where"}
OTHERS: dict[str, list[Any]] = {name: [] for name in ("unsafe", "declined", "without")}
FIX = {"files": [{**OTHERS, "path": "a.py", "diff": f"- old {NASTY}\n+ new\n", "applied": [OFFER]}]}
PROOF = {"label": "where", "rewrite": "where", "verdict": "accepted", "ratio": {"median": 1.25}, "reason": None}
VERIFY = {"proofs": [PROOF]}
BENCH = {"ways": [{"way": "reduce-overhead", "ratio": None, "problem": "fails"}], "best": None}


def result(stage: str, told: dict[str, Any]) -> StageResult:
    facts = FACTS[SurveyStage(stage)](told)
    return StageResult(stage, "ok", 2.0, 10**9, facts, packed(json.dumps(told)), "", "host")


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
def pages(store: Path, tmp_path: Path) -> Path:
    done = CliRunner().invoke(survey, ["report", str(store), "--format", "html", "--output", str(tmp_path / "pages")])
    assert done.exit_code == 0, done.output
    return tmp_path / "pages"


@pytest.fixture
def show(chromium: Any, pages: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page, and fails the test for any error, message or request of it."""
    contexts = []
    said: list[str] = []

    def open_page(place: str = "index.html", **options: Any) -> Any:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: request.url.startswith("file:") or said.append(request.url))
        page.goto(f"{pages.as_uri()}/{place}")
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


def test_a_page_runs_its_own_script_alone_and_links_to_nothing_else(pages: Path) -> None:
    text = (pages / "index.html").read_text(encoding="ascii")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    assert re.findall(r"sha256-([^']*)", policy) == digests
    assert not re.findall(r"<\w[^<>]*\b(?:src|href|action)=", text.replace(script, ""))
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)


def test_what_programs_say_is_no_markup(pages: Path) -> None:
    for path in [pages / "index.html", *pages.glob("units/*.html")]:
        text = path.read_text(encoding="ascii")
        assert "<img" not in text
        assert "<!--" not in text
        assert text.count("</script>") == (2 if path.name == "index.html" else 0)


def test_one_file_has_all_but_the_pages_of_units(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "survey.html"
    assert CliRunner().invoke(survey, ["report", str(store), "--format", "html", "-o", str(path)]).exit_code == 0
    data = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("ascii"), re.DOTALL)
    told = json.loads(data[0])
    assert len(told["units"]) == 6
    assert {unit[-1] for unit in told["units"]} == {None}
    done = CliRunner().invoke(survey, ["report", str(store), "-o", str(tmp_path)])
    assert done.exit_code == 2
    assert "--output is a folder" in done.output


def test_each_unit_has_a_file_name_of_its_own(store: Path) -> None:
    with Store(store) as opened:
        one = row_of(next(opened.surveyed(1)))
    told = [
        replace(one, key=str(number), name=name) for number, name in enumerate(("A/b", "a b", "é" * 300, "", "x" * 300))
    ]
    found = page_names(told)
    assert len({name.lower() for name in found.values()}) == len(told)
    assert all(re.fullmatch(r"units/[\w.-]{1,140}\.html", name, re.ASCII) for name in found.values())


def test_the_page_of_a_unit_tells_what_each_stage_found(pages: Path) -> None:
    text = (pages / "units/zoo-broken-eval-cpu-2.13.0.html").read_text(encoding="ascii")
    for words in (
        "2 graphs, 2 breaks, 1 recompile, 1.5 s of compiling.",
        "lib/a.py:7 in M.forward: if x.sum() &gt; 0:<td>splits the graph, BRK101",
        "write torch.where<td>6.0 ms",
        "calls a C function",
        "x.shape[0] was 8, then 9",
        "<li>a note",
        "BRK101<td>a branch",
        "applied<td>BRK101<td>where",
        "- old &lt;/script&gt;",
        "where<td>accepted<td>1.25&#215;",
        "reduce-overhead<td><td>fails",
        "breakscan explain --format html --output report.html -m breakscan.survey.model_program z:b",
    ):
        assert words in text, words
    assert len(list(pages.glob("units/*.html"))) == 5, "what has not run has no page"


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
    page.get_by_role("button", name="Costs", exact=True).click()
    assert [row.split()[1] for row in rows(page)[:2]] == ["eval", "train"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Costs")
    page.locator("tr .opener").first.click()
    detail = page.locator("tr.detail").inner_text()
    assert "BRK401 costs most." in detail
    assert "lib/a.py" in detail
    page.get_by_placeholder("Search units").fill("Error:")
    page.locator("tr .opener").first.click()
    assert "Traceback\nError: </script>" in page.locator("pre.said").inner_text()


@pytest.mark.process
def test_what_units_have_in_common_leads_to_them(show: Any) -> None:
    page = show("index.html#causes")
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
def test_a_unit_links_to_its_own_page_and_back(show: Any) -> None:
    page = show()
    page.get_by_role("link", name="zoo/broken").first.click()
    assert page.locator("h1").inner_text() == "zoo/broken"
    page.get_by_role("link", name="All units").click()
    page.locator("#panel-units").wait_for()
    page.get_by_placeholder("Search units").fill("failed Error")
    page.get_by_placeholder("Search units").fill("onerror")
    page.locator("#panel-units td.path a").first.click()
    assert "onerror" in page.locator("h1").inner_text()


@pytest.mark.process
def test_without_scripts_the_tables_are_there(show: Any) -> None:
    page = show(java_script_enabled=False)
    assert page.locator("#static").is_visible()
    assert page.locator("#static td", has_text="BRK401").first.is_visible()
