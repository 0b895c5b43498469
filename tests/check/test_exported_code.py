"""Exported code is judged by the verdicts of ``torch.export.export``."""

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


@pytest.mark.parametrize("mode", ["export", "export-strict"])
def test_a_configuration_says_it_too(tmp_path: Path, mode: str) -> None:
    settings = Settings(root=tmp_path, target=mode)  # type: ignore[arg-type]
    assert settings.mode is Mode(mode)
    assert {target.mode for target in check_targets([settings])} == {Mode(mode)}
