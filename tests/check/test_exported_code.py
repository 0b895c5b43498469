"""Exported code is judged by the verdicts of ``torch.export.export``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from breakscan.model.findings import CheckResult, Mode, Severity, Verdict
from breakscan.report.findings import region_words, verdict_sentence
from breakscan.rulebook.config import Settings, check_targets

NET = """
class Net(nn.Module):
    def forward(self, x):
        print("in forward")
        n = x.sum().item()
        if x.max() > 3:  # ! BRK101
            n = n + 1
        return x[x > 0].sum() * n
"""


def test_a_file_that_only_exports_is_judged_by_the_export(marked, check: Callable[..., CheckResult]) -> None:
    source = f"{NET}\nprogram = torch.export.export(Net(), (torch.randn(4),))\n"
    marked(source)
    (finding,) = check(source).findings
    assert (finding.mode, finding.verdict, finding.severity) == (Mode.EXPORT, Verdict.RAISES, Severity.ERROR)
    assert verdict_sentence(finding) == (
        "torch.export.export of torch 2.13 raises an error here; plain Python does not."
    )
    assert region_words(finding) == "in Net.forward, exported from line 13"


def test_a_strict_export_traces_with_dynamo(marked, check: Callable[..., CheckResult]) -> None:
    source = """
        class Net(nn.Module):
            def forward(self, x):
                print("in forward")
                if x.max() > 3:  # ! BRK101
                    x = x + 1
                class Scale:  # ! BRK501
                    factor = 2.0
                return x * Scale.factor

        program = torch.export.export(Net(), (torch.randn(4),), strict=True)
    """
    marked(source)
    assert {finding.mode for finding in check(source).findings} == {Mode.EXPORT_STRICT}


def test_what_a_file_compiles_comes_before_what_it_exports(marked) -> None:
    source = """
        class Net(nn.Module):
            def forward(self, x):
                return x * x.sum().item()  # ! BRK201

        net = Net()
        fast = torch.compile(net)
        program = torch.export.export(net, (torch.randn(4),))
    """
    marked(source)
    marked(source.replace("  # ! BRK201", ""), target="export")


def test_the_target_holds_for_every_forward(marked, check: Callable[..., CheckResult]) -> None:
    marked(NET, target="export")
    (finding,) = check(NET, target="export").findings
    assert region_words(finding) == "in Net.forward, assumed exported"


def test_a_number_that_is_drawn_stays_in_the_program(check: Callable[..., CheckResult]) -> None:
    (finding,) = check(
        """
        import random

        class Net(nn.Module):
            def forward(self, x):
                return x * random.choice([1, 2, 3])
        """,
        target="export",
    ).findings
    assert (finding.rule, finding.verdict, finding.severity) == ("BRK405", Verdict.WRONG, Severity.ERROR)
    assert verdict_sentence(finding) == (
        "With torch 2.13, the exported program always has the value from the export here."
    )


def test_what_asks_for_the_compiler_is_answered_as_in_an_export(marked) -> None:
    source = """
        class Net(nn.Module):
            def forward(self, x):
                if torch.compiler.is_dynamo_compiling():
                    return x if x.max() > 2 else -x  # ! BRK103
                if torch.compiler.is_exporting():
                    return x if x.max() > 3 else -x
                return x if x.max() > 4 else -x
    """
    marked(source)
    in_export = source.replace("  # ! BRK103", "").replace("> 3 else -x", "> 3 else -x  # ! BRK103")
    marked(in_export, target="export")


def test_code_that_dynamo_is_kept_out_of_is_exported(marked) -> None:
    source = """
        @torch.compiler.disable
        def outside(x):
            return x if x.max() > 3 else -x  # ! BRK103

        class Net(nn.Module):
            def forward(self, x):
                return outside(x)
    """
    marked(source, target="export")


def test_rules_about_other_things_than_breaks_are_left_out(marked) -> None:
    marked(
        """
        def step(x: torch.Tensor, n: int):
            return x * n

        fast = torch.compile(step)
        for n in range(10):
            fast(torch.ones(3), n)
        """,
        target="export",
        regions="all",
    )


SIZES = """
    class Net(nn.Module):
        def forward(self, x: torch.Tensor, labels: torch.Tensor):
            n = x.size(0)
            if n > 3 or x.shape[1] == 2:
                x = x + 1
            kept = x[labels > 0]
            if kept.shape[1] > 2 or kept.dim() == 3:
                x = x + 1
            if kept.shape[0] > 2:  # !
                x = x + 1
            scaled = (kept * 2 + 1).sin().to(torch.float64)
            few = scaled.size(0) * 2 < n  # compared, not tested
            if few:  # !
                x = x + 1
            (rows,) = torch.where(x[:, 0] > 0)
            picked = x[rows]
            count, width = picked.shape
            if width > 3:
                x = x + 1
            while count > n:  # !
                count = count - 1
            index = (labels == 2).nonzero().squeeze(-1)
            if not index.numel():  # !
                x = x + 1
            largest = max(index.size(0), 1)
            return x * largest, kept[:2], x[: index.shape[0]]
"""


def test_a_size_that_data_decides_is_followed(marked) -> None:
    marked(SIZES.replace("# !", "# ! BRK122"), target="export")
    marked(SIZES.replace("# !", "# ! BRK122"), target="export-strict")
    compiled = SIZES.replace("  # !", "")
    for line in ("kept = x[labels > 0]", "picked = x[rows]"):
        assert line in compiled
    compiled = compiled.replace("kept = x[labels > 0]", "kept = x[labels > 0]  # ! BRK303")
    compiled = compiled.replace("torch.where(x[:, 0] > 0)", "torch.where(x[:, 0] > 0)  # ! BRK302")
    marked(compiled.replace("(labels == 2).nonzero().squeeze(-1)", "(labels == 2).nonzero().squeeze(-1)  # ! BRK301"))


def test_python_asks_for_a_number(marked) -> None:
    source = """
        import math

        class Net(nn.Module):
            def forward(self, x: torch.Tensor, scales: list[float]):
                n = (x > 0).sum().item()
                whole = int(n)  # ! BRK222
                for i in range(1, n):  # ! BRK222
                    x = x + i
                for row in x[x > 0]:  # ! BRK222
                    x = x + row
                sizes = [1.0, 2.0, 3.0]
                x = x * sizes[n] * math.sqrt(n) + {"a": 1}.get("a")  # ! BRK222 BRK222
                return x[n:] * math.floor(x.mean().item()) * abs(n) * whole
    """
    marked(source, target="export")


def test_what_is_formatted_as_a_number_needs_one(marked) -> None:
    source = """
        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                loss, n = x.sum(), x.nonzero().shape[0]
                print(f"{loss} {n} {n!r:>9} {x.shape[0]:>5}")
                print(f"{loss:.3f}")  # ! BRK223
                print("{} {:.3f}".format(loss, loss.item()))  # ! BRK223
                print("{:>4} {b}".format(x.shape[0], b=loss))
                print("{0} {b:.3f}".format(1, b=loss))  # ! BRK223
                print("%s %d%%" % (loss, x.shape[0]))
                print("%s %5d" % (loss, n))  # ! BRK223
                return x
    """
    marked(source, target="export")


def test_numpy_itself_runs_in_a_plain_export(marked) -> None:
    source = """
        import numpy as np

        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                steps = np.linspace(0.0, 1.0, x.shape[0])
                if steps.max() > 3 or np.median(steps) > 2:
                    steps = np.interp(steps, [0.0, 1.0], [0.0, 2.0])
                n = int(np.round(steps[0]).item())
                return x * n, np.sin(x), np.array([x[0], x[1]]), np.maximum(0.0, x)  # ! BRK221 BRK221 BRK221
    """
    marked(source, target="export")


@pytest.mark.parametrize("mode", ["export", "export-strict"])
def test_a_configuration_says_it_too(tmp_path: Path, mode: str) -> None:
    settings = Settings(root=tmp_path, target=mode)  # type: ignore[arg-type]
    assert settings.mode is Mode(mode)
    assert {target.mode for target in check_targets([settings])} == {Mode(mode)}
