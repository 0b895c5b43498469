"""Code that the compiler does not reach is marked with the break that hides it."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from breakscan.check.pipeline.check import check_paths
from breakscan.check.pipeline.shadowed import gives_up, mark_behind, reach_of
from breakscan.model.findings import CheckResult, Condition, ConditionKind, Confidence, Finding, Kind, Verdict
from breakscan.rulebook.config import Settings
from breakscan.source.module import parse_module

Check = Callable[..., CheckResult]
PROGRAM = Path(__file__).with_name("behind_program.py")
A, B = (Condition(ConditionKind.TEST, name) for name in "ab")

LOOP = """
    def f(x: torch.Tensor):
        for _ in range(2):
            x = x + x.sum().item()
        return x + x.max().item()
"""


def marks() -> dict[str, set[int]]:
    found: dict[str, set[int]] = {"head": set(), "behind": set(), "seen": set()}
    for number, line in enumerate(PROGRAM.read_text(encoding="utf-8").splitlines(), 1):
        _, mark, word = line.partition("#: ")
        if mark:
            found[word].add(number)
    return found


def marked(findings: list[Finding], path: Path) -> list[Finding]:
    module = parse_module(path.read_text(encoding="utf-8"), path, findings[0].site.path)
    return mark_behind(findings, [reach_of(finding.site, module) for finding in findings if gives_up(finding)])


def test_every_break_behind_one_that_gives_its_function_up_names_it() -> None:
    settings = Settings(root=PROGRAM.parent, target_torch="2.13", regions="all", no_cache=True)
    found = [f for f in check_paths([PROGRAM], settings).findings if f.kind is Kind.GRAPH_BREAK]
    wanted = marks()
    behind = {f.site.line for f in found if f.behind}
    assert {line for line in wanted["behind"] if line not in behind} == set()
    assert {line for line in wanted["head"] | wanted["seen"] if line in behind} == set()
    heads = {f.site: f.function for f in found if f.site.line in wanted["head"]}
    assert {f.site.line for f in found if f.behind and heads.get(f.behind) != f.function} == set()


def test_a_break_that_shows_where_the_graph_ends_is_hidden_by_later_ones(check: Check) -> None:
    source = """
        def hidden(x: torch.Tensor, chart: torch.Tensor):
            x.requires_grad_()
            y = x.sin()
            return torch.stack([y[i, row] for i, row in enumerate(torch.tensor([1] * 3))])

        def shown(x: torch.Tensor, up: bool):
            x.requires_grad_()
            if up:
                for _ in range(2):
                    x = x + x.sum().item()
            print(x.shape)
            return x
        """
    found = [f for f in check(source, regions="all").findings if f.rule == "BRK603"]
    assert [f.function for f in found] == ["shown"]
    found = [f for f in check(source, regions="all", confidence=Confidence.POSSIBLE).findings if f.rule == "BRK603"]
    assert [(f.function, f.behind is not None, f.confidence) for f in found] == [
        ("hidden", True, Confidence.POSSIBLE),
        ("shown", False, Confidence.CERTAIN),
    ]


@pytest.mark.torch
def test_dynamo_does_not_get_there(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--format", "json", "--output", str(report), str(PROGRAM)]
    subprocess.run([sys.executable, "-m", "breakscan", "explain", *options], check=True, capture_output=True)
    breaks = json.loads(report.read_text(encoding="utf-8"))["breaks"]
    met = {b["site"]["line"] for b in breaks if Path(b["site"]["path"]).name == PROGRAM.name}
    wanted = marks()
    assert wanted["behind"] & met == set()
    assert (wanted["head"] | wanted["seen"]) - met == set()


@pytest.fixture
def pair(check: Callable[..., CheckResult], tmp_path: Path) -> Callable[..., bool]:
    """True if the first finding of ``LOOP`` hides the second one, both changed."""

    def run(head: dict[str, object], other: dict[str, object]) -> bool:
        first, second = check(LOOP, regions="all").findings
        findings = [replace(first, **head), replace(second, **{"behind": None, **other})]  # type: ignore[arg-type]
        found = marked(findings, tmp_path / "model.py")
        assert found[0] == findings[0]
        assert found[1].behind in (None, first.site)
        return found[1].behind is not None

    return run


def test_a_sure_break_that_gives_its_function_up_hides_a_break_of_any_sort(pair: Callable[..., bool]) -> None:
    assert pair({}, {})
    assert pair({"confidence": Confidence.LIKELY}, {"confidence": Confidence.CONDITIONAL})
    assert pair({}, {"verdict": Verdict.EAGER, "via": "g"})
    conditional = {"confidence": Confidence.CONDITIONAL, "conditions": (A,)}
    assert pair(conditional, conditional)
    assert pair(conditional, {**conditional, "conditions": (B, A)})


@pytest.mark.parametrize(
    ("head", "other"),
    [
        ({"confidence": Confidence.CONDITIONAL, "conditions": (A,)}, {}),
        ({"confidence": Confidence.CONDITIONAL, "conditions": (A,)}, {"conditions": (B,)}),
        ({"confidence": Confidence.CONDITIONAL, "conditions": (A, B)}, {"conditions": (B,)}),
        ({"confidence": Confidence.POSSIBLE}, {}),
        ({"verdict": Verdict.SPLITS}, {}),
        ({"verdict": Verdict.RAISES}, {}),
        ({"via": "g"}, {}),
        ({"kind": Kind.PERFORMANCE}, {}),
        ({"function": None}, {"function": None}),
        ({}, {"function": "g"}),
        ({}, {"kind": Kind.RECOMPILE}),
        ({}, {"kind": Kind.MISUSE}),
    ],
)
def test_others_are_not_hidden(pair: Callable[..., bool], head: dict[str, object], other: dict[str, object]) -> None:
    assert not pair(head, other)
