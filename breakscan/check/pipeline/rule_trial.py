"""Tries a rule: does it find its own examples, what does it find in files, and what is called there instead?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from breakscan.check.pipeline.check import check_paths
from breakscan.check.pipeline.check_file import FileChecker
from breakscan.check.pipeline.checker import Shown
from breakscan.check.pipeline.results import FileResult
from breakscan.model.findings import CheckResult, Kind, Site
from breakscan.rulebook.config import Settings
from breakscan.rulebook.document import EventPattern, Example, Rule
from breakscan.rulebook.events import EventKind

_COMPILED = "\nimport torch as _torch\n_compiled = _torch.compile(f)\n"


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """``result`` is that of the rule alone.  ``uncalled`` are the callees of the rule that no code calls which the rule
    is about, if it finds nothing; ``called`` are those that it does call, with the first site and the number of sites.
    ``missed`` are the examples that break and are not found, ``mistaken`` those that compile and are found."""

    rule: Rule
    result: CheckResult
    uncalled: tuple[str, ...] = ()
    called: Mapping[str, tuple[Site, int]] | None = None
    missed: tuple[Example, ...] = ()
    mistaken: tuple[Example, ...] = ()


def try_rule(rule: Rule, files: Sequence[Path], settings: Settings) -> RuleTrial:
    """Tries a rule on its examples, and on files, given by their absolute paths."""
    alone = replace(settings, select=(rule.id,), ignore=(), no_cache=True)
    result = check_paths(files, alone)
    called = None if result.findings else _called(rule, files, settings)
    wanted = dict.fromkeys(name for pattern in rule.match for name in pattern.callee if "*" not in name)
    static = [example for example in rule.examples if example.static and rule.match]
    found = [example for example in static if finds(rule, example, settings)]
    return RuleTrial(
        rule,
        result,
        tuple(name for name in wanted if called is not None and name not in called),
        called,
        tuple(example for example in static if example.breaks and example not in found),
        tuple(example for example in found if not example.breaks),
    )


def finds(rule: Rule, example: Example, settings: Settings) -> bool:
    """True if ``check`` finds the rule in an example, if what the example defines is compiled."""
    return rule.id in {finding.rule for finding in example_result(rule, example, settings).findings}


def example_result(rule: Rule, example: Example, settings: Settings) -> FileResult:
    """The result of ``check`` for an example, which is compiled as rules of its kind are about."""
    # A recompile or a wrong result needs several calls, so such an example makes its module elsewhere.
    regions: Literal["auto", "all"] = "all" if rule.kind in (Kind.RECOMPILE, Kind.WRONG_RESULT) else "auto"
    target: Literal["compile", "export"] = "compile"
    if rule.kind is Kind.EXPORT:
        regions, target = "all", "export"
    text = example.source + ("" if rule.kind is Kind.MISUSE else _COMPILED)
    settings = replace(settings, regions=regions, target=target, select=("ALL",), ignore=(), per_file_ignores=())
    checker = FileChecker(settings)
    result = checker.check_file(settings.root / "example.py", text)
    checker.project.release()
    shown = Shown(settings)
    return replace(result, findings=[finding for finding in result.findings if shown.shows(finding)])


def _called(rule: Rule, files: Sequence[Path], settings: Settings) -> dict[str, tuple[Site, int]]:
    """The functions called where the rule looks for calls, by name."""
    kinds = dict.fromkeys(
        (pattern.event, pattern.anywhere)
        for pattern in rule.match
        if pattern.callee and pattern.event is EventKind.CALL
    )
    if not kinds:
        return {}
    patterns = tuple(EventPattern(event, callee=("*",), anywhere=anywhere) for event, anywhere in kinds)
    probe = replace(rule, match=patterns, message="{callee}", kind=Kind.PERFORMANCE, reporting=False)
    checker = FileChecker(settings, rules=[probe])
    found: dict[str, tuple[Site, int]] = {}
    for path in files:
        for finding in checker.check_file(path).findings:
            first, count = found.get(finding.message, (finding.site, 0))
            found[finding.message] = first, count + 1
    checker.project.release()
    return found
