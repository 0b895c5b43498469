"""The static half and the compiler see the same in the examples of every rule.

Each example is checked as if ``f`` were handed to torch.compile: what Dynamo broke on must be found, what it
compiled must not.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from breakscan.check.pipeline.check_file import FileChecker
from breakscan.check.pipeline.checker import Shown
from breakscan.check.pipeline.results import FileResult
from breakscan.model.findings import Kind
from breakscan.rulebook.config import Settings
from breakscan.rulebook.document import Example, Rule
from breakscan.rulebook.library import load_library


def examples() -> Iterator[object]:
    for rule in load_library():
        if rule.match:
            for example in filter(lambda e: e.static, rule.examples):
                yield pytest.param(rule, example, id=f"{rule.id}-{example.label}")


_COMPILED = "\nimport torch as _torch\n_compiled = _torch.compile(f)\n"


def example_result(rule: Rule, example: Example, settings: Settings) -> FileResult:
    """The result of ``check`` for an example, which is compiled as rules of its kind are about."""
    # A recompile or a wrong result needs several calls, so such an example makes its module elsewhere.
    regions: Literal["auto", "all"] = "all" if rule.kind in (Kind.RECOMPILE, Kind.WRONG_RESULT) else "auto"
    target: Literal["compile", "export"] = "compile"
    if rule.kind is Kind.EXPORT:
        regions, target = "all", "export"
    text = example.source + ("" if rule.kind is Kind.MISUSE else _COMPILED)
    settings = replace(settings, regions=regions, target=target, select=("ALL",), ignore=(), per_file_ignores=())
    checker = FileChecker(settings)
    result = checker.check_file(settings.root / "example.py", text)
    checker.project.release()
    shown = Shown(settings)
    return replace(result, findings=[finding for finding in result.findings if shown.shows(finding)])


def found_rules(rule: Rule, example: Example, folder: Path) -> set[str]:
    result = example_result(rule, example, Settings(root=folder, target_torch="2.13"))
    assert not result.errors
    return {finding.rule for finding in result.findings if finding.kind is rule.kind}


@pytest.mark.parametrize(("rule", "example"), list(examples()))
def test_check_agrees_with_the_compiler(rule: Rule, example: Example, tmp_path: Path) -> None:
    found = found_rules(rule, example, tmp_path)
    if example.breaks:
        assert rule.id in found
    else:
        assert found == set()
