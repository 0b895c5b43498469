"""What is exported is judged by what ``torch.export.export`` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from breakscan.config import Settings, check_targets
from breakscan.findings import CheckResult, Mode, Severity, Verdict
from breakscan.reports.shared.finding_words import region_words, verdict_sentence

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


@pytest.mark.parametrize("mode", ["export", "export-strict"])
def test_a_configuration_says_it_too(tmp_path: Path, mode: str) -> None:
    settings = Settings(root=tmp_path, target=mode)  # type: ignore[arg-type]
    assert settings.mode is Mode(mode)
    assert {target.mode for target in check_targets([settings])} == {Mode(mode)}
