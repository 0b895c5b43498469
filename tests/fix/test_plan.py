"""Rounds of edits: what lies in one another, what does not help, and what goes wrong."""

from dataclasses import replace
from pathlib import Path

import libcst as cst
import pytest

from breakscan.fix import planner as plan
from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.result import FileRepair
from breakscan.fix.support.build import expression
from breakscan.fix.support.context import Declined, Edit, Rewrite, RewriteContext
from breakscan.rulebook.config import load_settings

PRINTS = """import torch


def f(x: torch.Tensor):
    y = x.sin()
    print(y)
    z = y.cos()
    print(z)
    return z
"""


def repaired(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, rewrite: Rewrite) -> FileRepair:
    """The repair of a text where every rewrite of every rule is the one given."""
    monkeypatch.setattr(plan, "load_rewrite", lambda _: rewrite)
    path = folder / "case.py"
    path.write_text(text, encoding="utf-8")
    settings = replace(
        load_settings(folder, None, target_torch="2.13", no_cache=True), regions="all", select=("BRK401",)
    )
    return repair_file(path, (), settings, WantedRewrites())


def test_an_edit_that_does_not_help_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def adds_an_argument(context: RewriteContext) -> Edit:
        if "y" not in context.code(context.node):
            return Edit({context.line(): None})
        return Edit({context.node: expression("print(y, y)")})

    found = repaired(tmp_path, PRINTS, monkeypatch, adds_an_argument)
    assert found.after == PRINTS.replace("    print(z)\n", "")
    (refused,) = found.refused
    assert refused.finding.site.line == 6
    assert "would break instead" in refused.reasons[0].text


def test_a_finding_whose_text_an_edit_changes_is_not_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changes_the_inner_call(context: RewriteContext) -> Edit:
        if context.code(context.node) != "print(print(y))":
            raise Declined("it stays")
        return Edit({context.node: expression("str(print(y, y))")})

    text = PRINTS.replace("print(y)", "print(print(y))").replace("    print(z)\n", "")
    found = repaired(tmp_path, text, monkeypatch, changes_the_inner_call)
    assert [one.finding.site.column for one in found.applied] == [5]
    assert [one.reasons[0].text for one in found.refused] == ["it stays"]


def test_an_edit_that_says_the_same_again_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = repaired(tmp_path, PRINTS, monkeypatch, lambda context: Edit({context.node: context.node.deep_clone()}))
    assert not found.changed
    assert {reason.text for refused in found.refused for reason in refused.reasons} == {
        "with the edit that was tried, the line would still break"
    }


def test_a_text_that_does_not_parse_is_never_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = repaired(tmp_path, PRINTS, monkeypatch, lambda context: Edit({context.node: cst.Name("class")}))
    assert not found.changed
    assert "the edit that was tried would not be valid Python" in {
        reason.text for refused in found.refused for reason in refused.reasons
    }


def test_a_rewrite_that_fails_costs_only_its_own_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_on_y(context: RewriteContext) -> Edit:
        if "y" in context.code(context.node):
            raise RuntimeError("boom")
        return Edit({context.line(): None})

    found = repaired(tmp_path, PRINTS, monkeypatch, fails_on_y)
    assert found.after == PRINTS.replace("    print(z)\n", "")
    assert (
        "a bug in breakscan, please report it: RuntimeError('boom') in test_plan.py:"
        in found.refused[0].reasons[0].text
    )


def test_sites_in_one_another_are_mended_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nested = PRINTS.replace("    print(y)\n", "    print(print(y))\n")

    def the_inner_one(context: RewriteContext) -> Edit:
        assert isinstance(context.node, cst.Call)
        return Edit({context.node: context.node.args[0].value.deep_clone()})

    found = repaired(tmp_path, nested, monkeypatch, the_inner_one)
    assert found.after == PRINTS.replace("print(y)", "y").replace("print(z)", "z")
    assert len(found.applied) == 3


def test_sites_are_those_of_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def widens(context: RewriteContext) -> Edit:
        if "z" in context.code(context.node):
            raise Declined("it is the last one")
        line = context.line()
        more = [cst.parse_statement(f"w{number} = {number}") for number in range(5)]
        return Edit({line: more})

    found = repaired(tmp_path, PRINTS, monkeypatch, widens)
    assert [one.finding.site.line for one in found.applied] == [6]
    assert [(one.finding.site.line, one.reasons[0].text) for one in found.refused] == [(8, "it is the last one")]


def test_an_only_statement_leaves_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\n\n\ndef f(x: torch.Tensor):\n    if x.shape[0] > 2:\n        print(x)\n    return x\n"
    found = repaired(tmp_path, text, monkeypatch, lambda context: Edit({context.line(): None}))
    assert found.after == text.replace("print(x)", "pass")


def test_an_import_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        '"""Doc."""\n\nfrom torch import Tensor\n\n\ndef f(x: Tensor):\n    print(x)\n    print(x + 1)\n    return x\n'
    )

    def shows(context: RewriteContext) -> Edit:
        return Edit({context.node: cst.Call(cst.Name("show"), [cst.Arg(context.imported("torch.sin"))])})

    found = repaired(tmp_path, text, monkeypatch, shows)
    assert found.after.count("import torch\n") == 1


def test_what_is_disabled_is_not_enabled_again(tmp_path: Path) -> None:
    text = """import torch


def pick(x: torch.Tensor):
    n = x.argmax().item()
    rows = x.nonzero()
    return rows[: n + 1].sum()


def f(x: torch.Tensor):
    return pick(x.sin()) * 2
"""
    path = tmp_path / "case.py"
    path.write_text(text, encoding="utf-8")
    settings = replace(load_settings(tmp_path, None, target_torch="2.13", no_cache=True), regions="all")
    found = repair_file(path, (), settings, WantedRewrites())
    assert {one.rewrite for one in found.applied} == {"disable-function"}
    assert found.after == text.replace("def pick", "@torch.compiler.disable\ndef pick")
