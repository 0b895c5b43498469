"""Compares what ``check`` reports for the code that a run compiled with what the run recorded.

The two halves do not import each other; they meet here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.explanation.agreement.matching import (
    Sources,
    confirming_sites,
    hands_over,
    head_of,
    hidden_behind,
    is_compiled,
    lines_of,
    touches,
    traced_functions,
    with_enclosing,
)
from breakscan.explanation.agreement.result import Agreement, AgreementOutcome, Judged
from breakscan.explanation.breaks import Key
from breakscan.explanation.explanation import Explanation
from breakscan.model.findings import Confidence, Finding, Kind, Mode, Severity
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.torch_versions import minor_version
from breakscan.rulebook.config import FileSettings, Settings, enabled_rules
from breakscan.rulebook.document import Rule
from breakscan.rulebook.library import load_library
from breakscan.source.paths import PatternLayers, PerFileIgnores
from breakscan.source.source_files import SourceFiles
from breakscan.source.suppressions import Suppressions


def excludes(path: str, settings: FileSettings) -> bool:
    """Return whether the configuration of a file excludes it.  Installed packages count here, since they were
    compiled."""
    absolute = os.path.abspath(path)
    return bool(PatternLayers(settings.of(Path(absolute)).exclude).decide(absolute))


def silencer(rules: Mapping[str, Rule], settings: FileSettings, sources: Sources) -> Callable[[Problem], bool]:
    """Return a function that is True if the rule of a problem is turned off at its site."""

    def is_silenced(problem: Problem) -> bool:
        module, rule = sources.module(problem.site.path), rules.get(problem.rule or "")
        if rule is None or module is None:
            return False
        path = Path(os.path.abspath(problem.site.path))
        if _is_off(rule, path, settings.of(path)):
            return True
        return Suppressions.read(module).covers(_as_finding(problem, rule))

    return is_silenced


def _is_off(rule: Rule, path: Path, settings: Settings) -> bool:
    enabled = enabled_rules(settings, load_library(settings.rule_folders))
    return rule.id not in enabled or PerFileIgnores(settings).covers(path, rule.id, rule.name)


def _as_finding(problem: Problem, rule: Rule) -> Finding:
    return Finding(
        rule=rule.id,
        name=rule.name,
        kind=Kind.GRAPH_BREAK,
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        message=rule.message,
        site=problem.site,
        function=problem.functions[0] if problem.functions else None,
        region=None,
        gb=(),
        torch="",
    )


_SURE = (Confidence.CERTAIN, Confidence.LIKELY)


def agree(explanation: Explanation, settings: FileSettings, files: SourceFiles) -> Agreement:
    """Checks the functions that a run compiled, with a user's settings and the run's torch, and compares.

    The code is checked for being compiled, whatever the settings say. Covers the files of the run that may be
    read, are as they were in the run and are not excluded; files of torch and of Python are left out. Paths of the
    explanation are relative to the working directory. Raises what ``check`` raises for a version without verdicts.
    """
    torch = minor_version(explanation.torch)
    # How the run compiled counts, whatever the settings are for; where a trace does not say it, they do.
    compiled = {"fullgraph": all(one.fullgraph for one in explanation.targets)} if explanation.targets else {}
    settings = settings.changed(target_torch=torch, target="compile", **compiled)
    sources = Sources(files)
    traced = traced_functions(explanation, sources)
    functions = {path: names for path, names in traced.items() if not excludes(path, settings)}
    by_file = {Path(os.path.abspath(path)): with_enclosing(names) for path, names in functions.items()}
    result = check_paths(sorted(by_file), settings, functions=by_file)
    refused = [one for one in explanation.problems if one.is_lost and one.counts_as_break]
    wanted = (
        f for f in result.findings if is_compiled(f, functions) or any(hands_over(f, one, sources) for one in refused)
    )
    result = replace(result, findings=tuple(wanted))
    hidden = hidden_behind(explanation, result, sources)
    judged = tuple(_judge(result.findings, explanation, hidden, sources))
    unknown = list(_unknown(judged, explanation, functions))
    is_silenced = silencer(explanation.rules, settings, sources)
    return Agreement(
        torch=torch,
        mode=result.targets[0].mode if result.targets else Mode.DEFAULT,
        files=tuple(functions),
        judged=judged,
        missed=tuple(site for site in unknown if not is_silenced(site)),
        silenced=tuple(site for site in unknown if is_silenced(site)),
        hidden=hidden,
        errors=result.errors,
    )


def _judge(
    findings: Sequence[Finding],
    explanation: Explanation,
    hidden: Mapping[Key, Sequence[Finding]],
    sources: Sources,
) -> Iterator[Judged]:
    kinds = (ProblemKind.BREAK, ProblemKind.RECOMPILES)
    predicted = [one for one in explanation.problems if one.kind in kinds or one.is_lost]
    confirmed = confirming_sites(findings, predicted, sources)
    hiding = {id(finding): key[0] for key, group in hidden.items() for finding in group}
    for number, finding in enumerate(findings):
        is_traced = touches(finding.site, explanation.traced)
        if number in confirmed:
            yield Judged(finding, AgreementOutcome.CONFIRMED, confirmed[number], is_traced)
        elif id(finding) in hiding:
            yield Judged(finding, AgreementOutcome.HIDDEN, hiding[id(finding)], is_traced)
        elif (
            is_traced
            and finding.kind is Kind.GRAPH_BREAK
            and finding.confidence in _SURE
            and not sources.may_be_skipped(finding.site)
        ):
            yield Judged(finding, AgreementOutcome.CONTRADICTED, None, is_traced)
        else:
            yield Judged(finding, AgreementOutcome.NOT_TRIGGERED, None, is_traced)


def _unknown(
    judged: Sequence[Judged], explanation: Explanation, functions: Mapping[str, Mapping[str, bool]]
) -> Iterator[Problem]:
    """Return what was recorded in the checked files and is not predicted by any finding."""
    known = {(site.path, line) for one in judged for site in [one.finding.site] for line in lines_of(site)}
    confirming = {one.by for one in judged}
    for one in explanation.problems:
        site = head_of(one).site
        is_recompile = one.kind is ProblemKind.RECOMPILES
        if one.kind is ProblemKind.BREAK:
            is_predicted = any((site.path, line) in known for line in lines_of(site))
        else:
            is_predicted = site in confirming or (one.gb_type is None and not is_recompile)
        is_wanted = is_recompile or (one.counts_as_break and one.kind is not ProblemKind.EXPORT and one.cause is None)
        if is_wanted and site.path in functions and not is_predicted:
            yield one
