"""A file that is studied again with another text, as after each round of edits."""

from pathlib import Path

from breakscan.check.pipeline.rewrite_facts import Studies
from tests.fix.conftest import Written

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


def test_what_depends_on_a_changed_file_is_found_out_again(written: Written) -> None:
    files, settings = written(PROJECT)
    roots, changed = files[:1], files[-1]
    # What `step` does, and with it what `scaled` does, is kept with steps.py, which does not change.
    studies = Studies(settings, files)

    def rules(path: Path, text: str) -> list[str]:
        return [finding.rule for finding in studies.study(path, text, roots).findings]

    first = rules(changed, PROJECT["ops.py"])
    assert first
    assert rules(changed, PROJECT["ops.py"].replace("    print(x)\n", "")) == []
    twice = PROJECT["ops.py"].replace("    print(x)\n", "    print(x)\n    print(x)\n")
    assert rules(changed, twice) == first * 2
    assert rules(changed, PROJECT["ops.py"]) == first
    studies.release()
