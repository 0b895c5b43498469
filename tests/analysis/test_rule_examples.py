"""The static half and the compiler see the same in the examples of every rule.

Each example is checked as if ``f`` were handed to torch.compile: what Dynamo broke on must be found, what it
compiled must not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from breakscan.analysis.pipeline.check import check_paths
from breakscan.config import Settings
from breakscan.findings import Kind
from breakscan.rulebook.document import Example, Rule
from breakscan.rulebook.library import load_library

COMPILED = "\nimport torch as _torch\n_compiled = _torch.compile(f)\n"


def examples() -> Iterator[object]:
    for rule in load_library():
        if rule.match:
            for example in filter(lambda e: e.static, rule.examples):
                yield pytest.param(rule, example, id=f"{rule.id}-{example.label}")


def found_rules(rule: Rule, example: Example, folder: Path) -> set[str]:
    path = folder / "example.py"
    path.write_text(example.source + ("" if rule.kind is Kind.MISUSE else COMPILED), encoding="utf-8")
    # A recompile or a wrong result needs several calls, so such an example makes its module elsewhere.
    regions: Literal["auto", "all"] = "all" if rule.kind in (Kind.RECOMPILE, Kind.WRONG_RESULT) else "auto"
    target: Literal["compile", "export"] = "compile"
    if rule.kind is Kind.EXPORT:
        regions, target = "all", "export"
    result = check_paths([path], Settings(root=folder, target_torch="2.13", regions=regions, target=target))
    assert not result.errors
    return {finding.rule for finding in result.findings if finding.kind is rule.kind}


@pytest.mark.parametrize(("rule", "example"), list(examples()))
def test_check_agrees_with_the_compiler(rule: Rule, example: Example, tmp_path: Path) -> None:
    found = found_rules(rule, example, tmp_path)
    if example.breaks:
        assert rule.id in found
    else:
        assert found == set()
