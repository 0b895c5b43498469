"""A file that is studied again with another text, as after each round of edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakscan.check.pipeline.rewrite_facts import Studies
from breakscan.rulebook.config import load_settings

PROJECT = {
    "model.py": """import torch

from steps import step


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return step(x)
""",
    "steps.py": """import torch

from ops import scaled


def step(x: torch.Tensor):
    y = scaled(x.sin())
    if y:
        return y
    return x
""",
    "ops.py": """import torch


def scaled(x: torch.Tensor):
    print(x)
    return x.sum()
""",
}


def test_what_depends_on_a_changed_file_is_found_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = load_settings(tmp_path, None, target_torch="2.13", no_cache=True)
    roots, changed = [tmp_path / "model.py"], tmp_path / "ops.py"
    # What `step` does, and with it what `scaled` does, is kept with steps.py, which does not change.
    studies = Studies(settings, [tmp_path / name for name in PROJECT])

    def rules(path: Path, text: str) -> list[str]:
        return [finding.rule for finding in studies.study(path, text, roots).findings]

    first = rules(changed, PROJECT["ops.py"])
    assert first
    assert rules(changed, PROJECT["ops.py"].replace("    print(x)\n", "")) == []
    twice = PROJECT["ops.py"].replace("    print(x)\n", "    print(x)\n    print(x)\n")
    assert rules(changed, twice) == first * 2
    assert rules(changed, PROJECT["ops.py"]) == first
    studies.release()
