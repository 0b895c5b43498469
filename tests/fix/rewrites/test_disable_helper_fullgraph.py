"""Under ``fullgraph=True``, and in an export, a helper that is left to Python would be an error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.rulebook.config import load_settings

TEXT = """import torch


def f(x: torch.Tensor):
    y = x.sin()
    for _ in range(2):
        if y.sum() > 1:
            y = y / 2
    return y.cos()
"""


@pytest.mark.parametrize("asked", [{"fullgraph": True}, {"target": "export"}, {"target": "export-strict"}], ids=str)
def test_it_declines_for_a_full_graph(tmp_path: Path, asked: dict[str, Any]) -> None:
    path = tmp_path / "case.py"
    path.write_text(TEXT, encoding="utf-8")
    settings = load_settings(tmp_path, None, target_torch="2.13", no_cache=True)
    settings = replace(settings, regions="all", **asked)
    found = repair_file(path, (), settings, WantedRewrites(unsafe=True, soften=True, ids=frozenset({"disable-helper"})))
    assert not found.changed
    assert {reason.text for one in found.refused for reason in one.reasons} == {
        "neither fullgraph=True nor torch.export allows code outside the graph"
    }
