"""Findings about the use of compiled code, and code that has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.model.findings import CheckResult
from breakscan.report.findings import conditions_in_words
from breakscan.rulebook.config import Settings

Marked = Callable[..., None]
Check = Callable[..., CheckResult]


def test_keys_of_a_compiled_module(marked: Marked, check: Check) -> None:
    marked(
        """
        def train(path):
            model = torch.compile(nn.Linear(4, 4))
            state = {"model": model.state_dict()}  # ! BRK805
            torch.save(state, path)

        def keep(path):
            model = nn.Linear(4, 4)
            compiled = torch.compile(model)
            compiled(torch.randn(4))
            torch.save(model.state_dict(), path)

        def average(model):
            model = torch.compile(model)
            mean = nn.Linear(4, 4)
            mean.load_state_dict(model.state_dict())  # ! BRK806
            return mean
        """
    )
    flagged = check(
        """
        def train(path, fast):
            model = nn.Linear(4, 4)
            if fast:
                model = torch.compile(model)
            torch.save(model.state_dict(), path)
        """
    )
    assert [(f.rule, conditions_in_words(f.conditions)) for f in flagged.findings] == [("BRK805", "`fast`")]


def test_a_class_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n"
        "    @classmethod\n    def small(cls):\n        return cls()\n\n"
        "    def forward(self, x):\n        return x\n\n"
        "    def generate(self, x):\n        return self(x)\n",
        encoding="utf-8",
    )
    main = tmp_path / "main.py"
    main.write_text(
        "import torch\nfrom net import Net\n\n"
        "model = torch.compile(Net())\nmodel.generate(torch.ones(4))\n"
        "small = torch.compile(Net.small())\nsmall.generate(torch.ones(4))\n",
        encoding="utf-8",
    )
    found = check_paths([main], Settings(root=tmp_path, target_torch="2.13")).findings
    assert [(f.site.line, f.rule) for f in found] == [(5, "BRK807"), (7, "BRK807")]
