"""The HTML report in a real browser: what is shown, what can be done with it, and that nothing hostile runs."""

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from explain_results import BREAK, CALLER, COMPILE, FRAME, GRAPH, RECOMPILE, explanation
from hostile import NASTY, poisoned

from breakscan.explanation.breaks import BREAK_PAGES
from breakscan.explanation.compilations import GuardLine
from breakscan.explanation.explanation import NO_RECORDING, Explanation, RankDifference, RankReport, exit_ending
from breakscan.explanation.graphs import Generated, Kernel, KernelKind
from breakscan.model.findings import Site
from breakscan.model.problem import Price
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.html import write as page_of
from breakscan.report.explain.html.write import write_html
from breakscan.report.explain.summary import headline
from breakscan.source.source_files import SourceFiles

MODEL = """\
class Block(nn.Module):
    def forward(self, x):
        if x.item():
            x = x.sin()
        return x.cos()
"""
TRAIN = "".join(f"step_{number}()\n" for number in range(1, 61))
CODE = """\
cpp_fused_sin_0 = async_compile.cpp_pybinding(['const float*'], r'''
void kernel(const float* in_ptr0) {}
''')
def call(args):
    cpp_fused_sin_0(buf0)
    extern_kernels.mm(buf0, buf1)
"""
pytestmark = pytest.mark.process

PROGRAM = """\
import torch

@torch.compile(backend="eager")
def scaled(x):
    x = x.sin()
    size = x.sum().item()
    return x * size

for number in range(3):
    scaled(torch.ones(8 + number))
"""
SIN = Kernel("cpp_fused_sin_0", KernelKind.CPP, 1, ("aten.sin",), (Site("src/model.py", 4, 1, 4, 20),))
MM = Kernel("extern_kernels.mm", KernelKind.EXTERN, 2, ("aten.mm",), (Site("src/model.py", 5, 1, 5, 20),))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the explanations speak of."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def html(told: Explanation) -> str:
    stream = io.StringIO()
    write_html(ExplainReport(told, files=SourceFiles.trusted()), stream)
    return stream.getvalue()


def island(text: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


# -- the file --------------------------------------------------------------------------------------------------


def test_it_is_one_ascii_file_whose_policy_names_its_only_script_and_style() -> None:
    text = html(explanation())
    assert text.isascii()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    assert re.findall(r"sha256-([^']*)", policy) == digests
    assert policy.startswith("default-src 'none';")
    assert not re.findall(r"\b(?:src|href|action)=", text.replace(script, ""))


def test_no_two_scripts_define_the_same_name() -> None:
    """They share one scope, in which the last definition counts."""
    folder = Path(page_of.__file__ or "").parent / "script"
    texts = (path.read_text(encoding="ascii") for path in folder.glob("*.js"))
    names = [name for text in texts for name in re.findall(r"^(?:function|class|const|let) (\w+)", text, re.M)]
    assert len(names) > 100
    assert len(names) == len(set(names))


def test_the_data_names_each_file_once_and_holds_its_text() -> None:
    data = island(html(explanation()))
    model = data["paths"].index("src/model.py")
    assert data["explanation"]["breaks"][0]["site"] == [model, 3, 8, 3, 15]
    assert data["sources"][str(model)] == [[1, MODEL]]
    assert len(data["paths"]) == len(set(data["paths"]))


def test_of_files_that_are_only_spoken_of_the_lines_around_are_kept() -> None:
    data = island(html(explanation()))
    ((first, text),) = data["sources"][str(data["paths"].index("train.py"))]
    assert first == 41 - page_of.AROUND
    assert text.split("\n")[41 - first] == "step_41()"


def test_without_room_the_code_is_left_out_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_of, "MOST_CODE", 10)
    monkeypatch.setattr(page_of, "MOST_GUARDS", 40)
    monkeypatch.setattr(page_of, "MOST_CHARACTERS", 0)
    data = island(html(explanation()))
    assert data["explanation"]["graphs"][0]["generated"][0]["code"] is None
    assert data["explanation"]["graphs"][0]["generated"][0]["kernels"]
    assert [len(frame["guards"]) for frame in data["explanation"]["compiles"]] == [2, 0]
    assert [frame["guard_count"] for frame in data["explanation"]["compiles"]] == [2, 2]
    assert data["sources"] == {}


# -- the browser -----------------------------------------------------------------------------------------------


@pytest.fixture
def show(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a report from its file, and fails the test for any error, message or request of the page."""
    contexts = []
    said: list[str] = []

    def open_report(told: Explanation | str, place: str = "", **options: Any) -> Any:
        path = tmp_path / "report.html"
        path.write_text(told if isinstance(told, str) else html(told), encoding="ascii")
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: request.url.startswith("file:") or said.append(request.url))
        page.goto(f"{path.as_uri()}{place}")
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert said == []


def rows(page: Any, panel: str = "breaks") -> list[str]:
    """Those of the last table: breaks can have an overview before."""
    last = page.locator(f"#panel-{panel} table.list").last
    return [row.strip() for row in last.locator("tbody > tr:not(.detail):not(.foot)").all_inner_texts()]


def places(page: Any) -> list[str]:
    return page.locator("#panel-breaks tbody > tr > td .place").all_inner_texts()


def test_the_headline_is_the_terminals(show: Any) -> None:
    told = explanation()
    page = show(told)
    assert page.locator("h1").inner_text().split() == headline(told).split()
    assert "train.py finished with exit status 0" in page.locator("#outcome").inner_text()
    assert "2.9 of 11.8 ms a call of Model.forward" in page.locator("#calls").inner_text()
    assert page.title() == "train.py · breakscan explain"
    assert not page.locator("#static").is_visible()


def test_a_break_opens_to_all_that_is_known_of_it(show: Any) -> None:
    page = show(explanation(breaks=(replace(BREAK, site=Site("src/model.py", 3, 12, 3, 20)),)), "#breaks")
    page.get_by_text("src/model.py:3", exact=True).first.click()
    detail = page.locator("tr.detail").inner_text()
    for words in (
        "keep the 0-d tensor", "the break is inside a loop", "1.2 ms a pass", "340 passes",
        "waits for the device", "900 ms to compile", "train.py:41", "in main", "GB0124", "r1:0/0", "if x.item():",
    ):  # fmt: skip
        assert words.lower() in detail.lower(), words
    assert "".join(page.locator("tr.detail .span.eager").all_inner_texts()) == "x.item()"
    page.get_by_text("src/model.py:3", exact=True).first.click()
    assert page.locator("tr.detail").count() == 0


def test_breaks_are_searched_filtered_and_counted(show: Any) -> None:
    page = show(explanation())
    assert page.locator(".count").first.inner_text() == "3 sites"
    page.get_by_placeholder("Search files").fill("ATTENTION branching")
    assert places(page) == ["lib/attention.py:88"]
    assert page.locator(".count").first.inner_text() == "1 of 3 sites"
    page.get_by_placeholder("Search files").fill("no such thing")
    assert page.get_by_text("No break is like that.").is_visible()
    page.get_by_placeholder("Search files").fill("")
    page.locator(".chip[data-value=user]").click()
    assert places(page) == ["lib/attention.py:88"]
    page.locator(".chip[data-value=user]").click()
    page.locator(".chip[data-value=splits]").click()
    assert places(page) == ["src/model.py:3", "src/model.py:9"]


def test_a_break_links_to_pytorchs_page(show: Any) -> None:
    page = show(
        explanation(breaks=(replace(BREAK, gb_id="GB0124"), replace(BREAK, gb_id="javascript:alert(1)"))), "#breaks"
    )
    for row in page.locator("#panel-breaks tr .opener").all():
        row.click()
    (link,) = page.locator("tr.detail a[href^=http]").all()
    assert link.get_attribute("href") == "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html"
    assert link.inner_text() == "GB0124"


def test_breaks_are_sorted_by_any_column(show: Any) -> None:
    cheap = Price(passes=10_000, host_seconds=0.00001, device_seconds=None, waits=False, compile_seconds=0.0)
    breaks = [
        replace(BREAK, site=Site("b10.py", 1, 1, 1, 2), price=cheap, count=1),
        replace(BREAK, site=Site("b9.py", 1, 1, 1, 2), count=2),
        replace(BREAK, site=Site("c.py", 1, 1, 1, 2), price=None, count=7),
    ]
    page = show(explanation(breaks=breaks), "#breaks")

    def by(label: str) -> list[str]:
        page.get_by_role("button", name=label, exact=True).click()
        return [place.partition(".")[0] for place in places(page)]

    assert [place.partition(".")[0] for place in places(page)] == ["b9", "b10", "c"], "the dearest first"
    assert by("Passes") == ["b10", "b9", "c"]
    assert by("Passes") == ["b9", "b10", "c"], "what has no value stays last"
    assert by("Met") == ["c", "b9", "b10"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Met")
    assert by("Where") == ["b9", "b10", "c"]


def test_marks_in_the_source_open(show: Any) -> None:
    page = show(explanation())
    page.get_by_role("tab", name="Source").click()
    assert page.locator(".files [aria-current]").inner_text().startswith("model.py")
    line = page.locator(".file .line[data-line='3']")
    assert "if x.item():" in line.inner_text()
    assert "420 ms" in line.inner_text(), "the price over the run"
    mark = line.get_by_role("button")
    assert mark.get_attribute("aria-label") == "line 3: runs eager, a dynamic size became a constant"
    mark.click()
    assert "Keep the 0-d tensor" in page.locator(".card").inner_text()
    assert "waits for the device" in page.locator(".card").inner_text()
    mark.click()
    assert page.locator(".card").count() == 0
    assert page.locator(".file .line[data-line='2'] .mark.recompiled").is_visible()
    assert page.locator(".file .line.traced").count() == 3
    assert page.locator(".legend").inner_text().split("\n")[-1] == "in a graph"


@pytest.mark.parametrize(
    "place", ["#nothing", "#source/99/1", "#breaks/99", "#<img src=x>", "#graphs/x/../y", "#source/0/9999"]
)
def test_any_address_shows_something(show: Any, place: str) -> None:
    page = show(explanation(), place)
    assert page.locator(".panel:not([hidden])").count() == 1


def test_long_files_are_folded_around_marks(show: Any, project: Path) -> None:
    (project / "long.py").write_text("".join(f"line_{n} = '''{n}'''\n" for n in range(1, 3001)), encoding="utf-8")
    breaks = [replace(BREAK, site=Site("long.py", line, 1, line, 5)) for line in (500, 2000)]
    page = show(explanation(breaks=breaks, recompiles=(), frames=(), specialisations=()), "#source/0/2000")
    assert page.locator(".file .line.here").inner_text().endswith("line_2000 = '''2000'''")
    assert page.locator(".file .line").count() < 100
    page.locator(".fold").first.click()
    assert page.locator(".file .line[data-line='1']").count() == 1
    page.evaluate("location.hash = '#source/0/1200'")
    page.locator(".file .line.here[data-line='1200']").wait_for()


def test_recompiles_are_a_tree_of_call_cause_and_function(show: Any) -> None:
    other = replace(CALLER, line=50)
    changes = [
        replace(RECOMPILE, compile_id=f"0/{number}", old="32", new=str(31 - number), cause=0) for number in range(3)
    ]
    told = [
        *changes,
        replace(
            RECOMPILE,
            trigger=other,
            guard=replace(RECOMPILE.guard, subject="flag", demand="flag == 'a'"),
            subject="flag",
            old="'a'",
            new="'b'",
            cause=1,
        ),
    ]
    page = show(explanation(recompiles=told), "#recompiles")
    triggers = page.locator(".trigger > summary").all_inner_texts()
    assert ["train.py:41" in triggers[0], "train.py:50" in triggers[1]] == [True, True]
    assert "step_41()" in triggers[0]
    causes = page.locator(".cause > summary").all_inner_texts()
    assert "x.shape[0] was 32, then 31, 30, 29" in causes[0]
    assert page.locator(".cause .new").all_inner_texts() == ["31", "30", "29", "'b'"]
    page.locator(".cause > summary").first.click()
    assert page.locator(".cause .new").first.is_visible() is False
    page.get_by_placeholder("Search guards").fill("flag")
    assert page.locator(".cause").count() == 1
    assert "1 recompile from 1 cause" in page.locator("#panel-recompiles .count").inner_text()
    assert "the code needs it as a Python number" in page.locator("#panel-recompiles section").inner_text()


def with_kernels() -> Explanation:
    made = Generated("forward", 12, ("f32[8] relu",), (SIN, MM), "/tmp/x.py", CODE)
    back = replace(made, phase="backward", kernels=(MM,), code=None)
    lines = (Site("src/model.py", 4, 1, 4, 20), Site("src/model.py", 5, 1, 5, 20))
    return explanation(graphs=(replace(GRAPH, lines=lines, generated=(made, back)),))


def test_a_kernel_lights_up_its_lines_and_its_code(show: Any) -> None:
    page = show(with_kernels(), "#graphs/0")
    detail = page.locator("#panel-graphs tr.detail").first
    for words in ("f32[8] relu", "aten.sin", "40, 34 operations"):
        assert words in detail.inner_text()
    page.locator("[data-kernel=cpp_fused_sin_0]").click()
    lit = [text.strip() for text in page.locator(".line.lit").all_inner_texts()]
    assert [text.split("\n")[-1].strip() for text in lit][1:] == [CODE.split("\n")[0].strip(), "cpp_fused_sin_0(buf0)"]
    assert "x = x.sin()" in lit[0]
    page.locator(".line .kernels").last.click()
    assert "extern_kernels.mm(buf0, buf1)" in page.locator(".line.lit").last.inner_text()
    page.locator("[data-phase=backward]").click()
    assert "The generated code is in /tmp/x.py." in detail.inner_text()


def test_guards_are_shown_by_the_line_that_asks_for_them(show: Any) -> None:
    site = Site("src/model.py", 3, 1, 3, 5)
    guards = tuple(GuardLine("TENSOR_MATCH", f"check_tensor(x{number})", site) for number in range(300))
    page = show(explanation(compiles=(replace(COMPILE, guards=guards, guard_count=500),)), "#guards")
    assert "3.50 µs" in rows(page, "guards")[0]
    page.locator("#panel-guards .opener").click()
    assert "if x.item():" in page.locator(".asks").inner_text()
    assert "300 guards, of 500 that are checked" in page.locator("#panel-guards .count").inner_text()
    assert page.locator(".guard-group li").count() < 20
    page.get_by_role("button", name="292 more").click()
    assert page.locator(".guard-group li").count() == 300
    page.get_by_placeholder("Search these guards").fill("x299")
    assert page.locator(".guard-group li").all_inner_texts() == ["TENSOR_MATCH\ncheck_tensor(x299)"]


def test_compile_time_by_part_and_function(show: Any) -> None:
    page = show(explanation(), "#compiling")
    assert page.get_by_role("heading", name="Where compile time went on rank 0").is_visible()
    assert re.match(r"Inductor\s+2.00 s\s+Dynamo\s+1.00 s", page.locator(".spent").first.inner_text())
    page.locator("#panel-compiling .opener").first.click()
    detail = page.locator("#panel-compiling tr.detail").inner_text()
    for words in ("mutated while tracing", "fx_graph: bypass, a custom pass", "500 ms"):
        assert words in detail
    assert page.get_by_text("never called").is_visible()


def test_ranks_stand_side_by_side(show: Any) -> None:
    endings = {rank: exit_ending(0) for rank in range(3)} | {3: NO_RECORDING}
    breaks = RankDifference("graph breaks (print)", BREAK.site, {0: "never", 1: "never", 2: "2 times"})
    page = show(explanation(ranks=RankReport(4, (0, 1, 2), endings, (breaks,))), "#ranks")
    assert page.locator(".ranks thead th").all_inner_texts() == ["What", "rank 0", "rank 1", "rank 2", "rank 3"]
    assert page.locator(".ranks .differs").all_inner_texts()[:2] == ["left no recording", "2 times"]
    assert "1 rank of 4 left no recording" in page.locator(".lead").inner_text()


def test_exports_stand_below_what_stands_against_them(show: Any) -> None:
    page = show(explanation(), "#exports")
    row = page.locator("#panel-exports tbody tr").first
    assert "fails to export" in row.inner_text()
    assert "the code does not leave the sizes free that dynamic_shapes declares" in row.inner_text()
    row.locator(".opener").click()
    detail = page.locator("#panel-exports tr.detail").inner_text()
    for words in ("It ends torch.export.export(Model, strict=True)", "torch suggests batch = 4", "train.py:41"):
        assert words in detail
    every = page.locator("#panel-exports section tbody tr").first.inner_text()
    assert "torch.export.export, strict\tfailed" in every


def test_tabs_without_anything_to_show_are_left_out(show: Any) -> None:
    happened = "breaks recompiles frames compiles specialisations cudagraph_skips calls targets graphs"
    happened += " around exports export_problems precompiled"
    page = show(explanation(**dict.fromkeys(happened.split(), ()), ranks=None))
    assert page.get_by_role("tab").all_inner_texts() == ["Notes1"]
    assert "Nothing was compiled" in page.locator("h1").inner_text()


def test_light_and_dark(show: Any) -> None:
    def back(page: Any) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    dark = show(explanation(), color_scheme="dark")
    assert back(dark) == "rgb(20, 23, 28)"
    page = show(explanation(), color_scheme="light")
    assert back(page) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Show dark").click()
    assert back(page) == "rgb(20, 23, 28)"
    page.reload()
    assert back(page) == "rgb(20, 23, 28)", "the choice is kept"
    page.get_by_role("button", name="Show light").click()
    assert back(page) == "rgb(255, 255, 255)"


def test_all_of_it_works_with_the_keyboard(show: Any) -> None:
    page = show(explanation(exports=(), export_problems=()))
    page.locator("#tab-breaks").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#panel-frames").is_visible()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.id") == "tab-breaks"
    page.keyboard.press("/")
    page.keyboard.type("model.py:9")
    assert places(page) == ["src/model.py:9"]
    page.keyboard.press("Escape")
    page.locator(".opener").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("tr.detail").count() == 1
    assert page.locator(".opener").first.get_attribute("aria-expanded") == "true"


def test_without_scripts_the_breaks_can_be_read(show: Any) -> None:
    page = show(explanation(), java_script_enabled=False)
    assert page.locator("h1").is_visible()
    text = page.locator("#static").inner_text()
    for words in (
        "src/model.py:3:8 in Block.forward",
        "BRK201 tensor-item",
        "x.shape[0] was 32",
        "this torch lacks what breakscan hooks into for memory: something is missing",
    ):
        assert words in text


def test_a_part_that_fails_leaves_the_tables(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.html"
    path.write_text(html(explanation()).replace('"graphs":[', '"graphs":null,"x":['), encoding="ascii")
    page = chromium.new_page()
    page.goto(path.as_uri())
    assert page.locator("#static").is_visible()
    page.close()


@pytest.mark.parametrize("scripts", [True, False])
def test_hostile_strings_do_nothing(show: Any, project: Path, scripts: bool) -> None:
    nasty = [*NASTY, "javascript:alert(1)", "';alert(1)//", "${alert(1)}", "__proto__", "constructor"]
    name = "</script><img src=x onerror=window.x=1>".replace("/", "\\")
    (project / name).write_text("\n".join(text.replace("\n", " ") for text in nasty), "utf-8", "surrogatepass")
    for shift in range(0, len(nasty), 7):
        told = poisoned(explanation(), nasty[shift:] + nasty[:shift])
        told = replace(told, breaks=(*told.breaks, replace(BREAK, site=Site(name, 1, 1, 40, 3))), frames=(FRAME,))
        page = show(told, "#breaks/0", java_script_enabled=scripts)
        if not scripts:
            continue
        for tab in page.get_by_role("tab").all():
            tab.click()
            for button in page.locator(".panel:not([hidden]) .opener, .panel:not([hidden]) .mark").all()[:6]:
                button.click()
        assert page.evaluate("window.x") is None
        assert page.locator("img, iframe, object, embed, base, form, script[src]").count() == 0
        assert page.locator(f"a:not([href^='#']):not([href^='{BREAK_PAGES}'])").count() == 0


@pytest.mark.torch
def test_a_report_of_a_real_run(show: Any, project: Path) -> None:
    (project / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "breakscan", "explain", "--format", "html", "-o", "run.html", "program.py"]
    subprocess.run(command, check=True, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"})
    page = show((project / "run.html").read_text(encoding="ascii"), "#breaks")
    assert places(page) == ["program.py:6"]
    page.locator(".opener").click()
    assert "".join(page.locator("tr.detail .span.splits").all_inner_texts()) == "x.sum().item()"
    page.get_by_role("tab", name="Source").click()
    assert page.locator(".file .line.traced").count() == 3, "sin, sum and the product"
    for tab in page.get_by_role("tab").all():
        tab.click()
        for button in page.locator(".panel:not([hidden]) .opener").all():
            button.click()


def test_many_breaks_begin_with_an_overview(show: Any) -> None:
    breaks = [replace(BREAK, site=Site(f"m{number % 12}.py", number, 1, number, 2)) for number in range(1, 31)]
    breaks += [replace(breaks[0], rule=None, gb_type="Unsupported call", price=None)]
    page = show(explanation(breaks=breaks), "#breaks")
    kinds, files = page.locator(".overview table").all()
    assert [row.split("\t")[:2] for row in kinds.locator("tbody tr").all_inner_texts()] == [
        ["BRK201 tensor-item", "30"],
        ["Unsupported call", "1"],
    ]
    assert files.locator("tbody tr").count() == 10
    assert "and 2 more" in page.locator(".overview").inner_text()
    kinds.get_by_role("button", name="Unsupported call").click()
    assert len(rows(page)) == 1
    assert page.locator(".filter .count").first.inner_text() == "1 of 31 sites"


def test_print_shows_all_rows_and_no_tools(show: Any) -> None:
    breaks = [replace(BREAK, site=Site(f"m{number}.py", 1, 1, 1, 2)) for number in range(450)]
    page = show(explanation(breaks=breaks), "#breaks")
    assert len(rows(page)) < 450
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert len(rows(page)) == 450
    assert not page.locator("#tabs").is_visible()
    assert not page.locator(".filter").first.is_visible()


def test_it_fits_a_telephone(show: Any) -> None:
    page = show(with_kernels(), "#breaks/0", viewport={"width": 420, "height": 800})
    for tab in page.get_by_role("tab").all():
        tab.click()
        for button in page.locator(".panel:not([hidden]) .opener").all()[:2]:
            if button.get_attribute("aria-expanded") == "false":
                button.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 420, tab.inner_text()
