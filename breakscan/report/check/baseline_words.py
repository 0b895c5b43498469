"""What is said of a baseline: what was written, what is out of date."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.check.baseline.baseline_file import BaselineTarget, FindingsBaseline
from breakscan.check.baseline.comparison import BaselineComparison
from breakscan.model.words import counted
from breakscan.report.shared.finding_words import MODE_WORDS
from breakscan.report.shared.printable import visible


def made_words(baseline: FindingsBaseline) -> str:
    """``was made, and allows 12 findings``."""
    return f"was made, and allows {counted(sum(one.count for one in baseline.findings), 'finding')}"


def change_words(found: BaselineComparison, added: bool) -> str:
    """``1 finding added, 2 findings gone``: in what a baseline differs from what follows."""
    new = f"{counted(len(found.new), 'finding')} added" if added and found.new else ""
    gone = f"{counted(found.gone, 'finding')} gone" if found.gone else ""
    return ", ".join(filter(None, (new, gone))) or "lines edited"


def other_target_sentence(path: str, baseline: FindingsBaseline, others: Iterable[BaselineTarget]) -> str:
    """Of a baseline that was written for another torch, another way to compile, or other code."""
    return (
        f"{path} is for {_targets(baseline.targets)}, and this run checks for {_targets(others)}: set it in the "
        "configuration (target-torch, target, regions), so that everyone checks for the same, or write it again with "
        "--baseline-add"
    )


def no_baseline_sentence(path: str, config: str) -> str:
    """Of a baseline that a configuration names, where there is none."""
    return f"there is no {path}, which {config} names: make it with breakscan check --baseline {path}, and commit it"


def not_made_words(path: str, unchecked: int) -> str:
    """Why no baseline was made."""
    return f"{path} was not made: {counted(unchecked, 'path')} not checked"


def _targets(targets: Iterable[BaselineTarget]) -> str:
    return " and ".join(_target(one) for one in targets)


def _target(target: BaselineTarget) -> str:
    regions = "" if target.regions == "auto" else f" with --regions {target.regions}"
    return f"torch {visible(target.torch)}, {MODE_WORDS[target.mode]}{regions}"
