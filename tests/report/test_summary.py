"""The line at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from report_results import BEHIND, EAGER, SPLIT, UNPARSED, report, result

from breakscan.model.findings import CheckTarget, Finding, Mode, Severity
from breakscan.report.check import summary_line

HINT = replace(EAGER, severity=Severity.INFO)


@pytest.mark.parametrize(
    ("findings", "changes", "line"),
    [
        ([], {}, "nothing found in 41 files (1.2 s) · torch 2.13, default mode"),
        ([EAGER], {"files": 1}, "1 error in 1 file (1.2 s) · torch 2.13, default mode"),
        (
            [EAGER, EAGER, SPLIT, HINT, HINT],
            {},
            "2 errors, 1 warning, 2 hints in 41 files (1.2 s) · torch 2.13, default mode",
        ),
        ([SPLIT], {"suppressed": 3}, "1 warning in 41 files (1.2 s) · torch 2.13, default mode · 3 suppressed"),
        (
            [EAGER, BEHIND, BEHIND],
            {"suppressed": 3},
            "1 error in 41 files (1.2 s) · torch 2.13, default mode · 2 hidden · 3 suppressed",
        ),
        (
            [],
            {"targets": (CheckTarget("2.13", "2.13", Mode.FULLGRAPH),)},
            "nothing found in 41 files (1.2 s) · torch 2.13, fullgraph=True",
        ),
        (
            [replace(EAGER, mode=Mode.EXPORT), SPLIT],
            {},
            "1 error, 1 warning in 41 files (1.2 s) · torch 2.13, default mode and torch.export",
        ),
        (
            [],
            {"targets": (CheckTarget("2.14", "2.13", Mode.DEFAULT),)},
            "nothing found in 41 files (1.2 s) · torch 2.14 (judged by the verdicts of 2.13), default mode",
        ),
        (
            [],
            {"targets": (CheckTarget("2.12", "2.12", Mode.DEFAULT), CheckTarget("2.13", "2.13", Mode.FULLGRAPH))},
            "nothing found in 41 files (1.2 s) · torch 2.12 and 2.13, default mode and fullgraph=True",
        ),
        (
            [],
            {"errors": (UNPARSED, UNPARSED)},
            "nothing found in 41 files (1.2 s) · torch 2.13, default mode · 2 paths not checked",
        ),
    ],
)
def test_says_what_was_found_and_for_which_target(findings: list[Finding], changes: dict[str, Any], line: str) -> None:
    assert summary_line(report(result(*findings, **changes), seconds=1.23)) == line
