"""The static half and the compiler see the same in the examples of every rule.

Each example is checked as if ``f`` were handed to torch.compile: what Dynamo broke on must be found, what it
compiled must not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from breakscan.check.pipeline.rule_trial import example_result
from breakscan.rulebook.config import Settings
from breakscan.rulebook.document import Example, Rule
from breakscan.rulebook.library import load_library


def examples() -> Iterator[object]:
    for rule in load_library():
        if rule.match:
            for example in filter(lambda e: e.static, rule.examples):
                yield pytest.param(rule, example, id=f"{rule.id}-{example.label}")


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
