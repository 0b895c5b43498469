"""What is said of a baseline: what was written, what is out of date."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.baseline.baseline_file import FindingsBaseline
from breakscan.baseline.comparison import BaselineComparison
from breakscan.findings import Mode
from breakscan.reports.shared.finding_words import MODE_WORDS
from breakscan.reports.shared.printable import visible
from breakscan.reports.shared.wording import counted


def made_words(baseline: FindingsBaseline) -> str:
    """``was made, and allows 12 findings``."""
    return f"was made, and allows {counted(sum(one.count for one in baseline.findings), 'finding')}"


def change_words(found: BaselineComparison, added: bool) -> str:
    """``1 finding added, 2 findings gone``: in what a baseline differs from what follows."""
    new = f"{counted(len(found.new), 'finding')} added" if added and found.new else ""
    gone = f"{counted(found.gone, 'finding')} gone" if found.gone else ""
    return ", ".join(filter(None, (new, gone))) or "lines edited"


def other_target_sentence(path: str, baseline: FindingsBaseline, others: Iterable[tuple[str, Mode]]) -> str:
    """Of a baseline that was written for another torch or another way to compile."""
    return (
        f"{path} is for {_targets(baseline.targets)}, and this run checks for {_targets(others)}: set target-torch in "
        "the configuration, so that everyone checks for the same, or write it again with --baseline-add"
    )


def _targets(targets: Iterable[tuple[str, Mode]]) -> str:
    return " and ".join(f"torch {visible(torch)}, {MODE_WORDS[mode]}" for torch, mode in targets)
