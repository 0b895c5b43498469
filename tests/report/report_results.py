"""Hand-made results of ``check``, and the text of a report."""

import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from breakscan.model.findings import (
    CheckResult,
    CheckTarget,
    Condition,
    ConditionKind,
    Confidence,
    Finding,
    Kind,
    Mode,
    Place,
    Region,
    RewriteOffer,
    Severity,
    Site,
    SourceError,
    Verdict,
)
from breakscan.report.check import CheckReport
from breakscan.report.formats import CHECK, Formats
from breakscan.rulebook.library import load_library

LIBRARY = load_library()
EAGER = Finding(
    rule="BRK101",
    name="branch-on-tensor",
    kind=Kind.GRAPH_BREAK,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    message="a Python branch on a tensor's value",
    site=Site("src/model.py", 3, 8, 3, 15),
    function="Block.forward",
    region=Region("train.py", 41, "torch.compile(model)", "Model.forward"),
    gb=("GB0170", "GB7000"),
    verdict=Verdict.EAGER,
    place=Place.LOOP,
    rewrite=RewriteOffer("where", "unsafe"),
    torch="2.13",
)
SPLIT = Finding(
    rule="BRK101",
    name="branch-on-tensor",
    kind=Kind.GRAPH_BREAK,
    severity=Severity.WARNING,
    confidence=Confidence.CONDITIONAL,
    message="a Python branch on a tensor's value",
    site=Site("src/model.py", 5, 4, 7, 6),
    function=None,
    region=None,
    gb=("GB0170",),
    verdict=Verdict.SPLITS,
    conditions=(Condition(ConditionKind.GIVEN, "mask"),),
    torch="2.13",
)
BEHIND = replace(EAGER, site=Site("src/model.py", 4, 9, 4, 13), behind=EAGER.site)
SOURCE = """import torch
for h in heads:
    if x.any():
        pass
if (
        y.sum()
    ):
    pass
"""


def result(*findings: Finding, **changes: Any) -> CheckResult:
    values: dict[str, Any] = {
        "findings": findings,
        "errors": (),
        "files": 41,
        "suppressed": 0,
        "targets": (CheckTarget("2.13", "2.13", Mode.DEFAULT),),
    }
    return CheckResult(**(values | changes))


def report(found: CheckResult, texts: Mapping[str, str] | None = None, **changes: Any) -> CheckReport:
    """What the writers of ``check`` take."""
    values: dict[str, Any] = {"seconds": 0.4, "library": LIBRARY, "texts": texts or {}}
    return CheckReport(found, **(values | changes))


UNPARSED = SourceError("src/bad.py", 2, 7, "cannot be parsed: invalid syntax", syntax=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def text_of(formats: Formats[Any], name: str, told: Any) -> str:
    """What a format writes of a report."""
    stream = io.StringIO()
    formats.write(name, told, stream)
    return stream.getvalue()


def checked(name: str, found: CheckResult, texts: Mapping[str, str] | None = None, **changes: Any) -> str:
    """A report of ``check``."""
    return text_of(CHECK, name, report(found, {"src/model.py": SOURCE} if texts is None else texts, **changes))
