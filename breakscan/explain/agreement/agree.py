"""Compares what ``check`` reports for the code that a run compiled with what the run recorded.

The two halves do not import each other; they meet here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.explain.agreement.compiled import is_compiled, traced_functions, with_enclosing
from breakscan.explain.agreement.excludes import excludes
from breakscan.explain.agreement.exported import agree_on_exports
from breakscan.explain.agreement.hidden import hidden_behind
from breakscan.explain.agreement.lines import lines_of, touches
from breakscan.explain.agreement.matching import confirming_sites, hands_over
from breakscan.explain.agreement.recorded import recorded
from breakscan.explain.agreement.result import Agreement, AgreementOutcome, BreakKey, Judged, Missed
from breakscan.explain.agreement.silenced import silencer
from breakscan.explain.agreement.sources import Sources
from breakscan.explain.explanation import Explanation
from breakscan.explain.gates.site_match import given_up_alone
from breakscan.model.findings import Confidence, Finding, Kind, Mode, Origin
from breakscan.model.torch_versions import minor_version
from breakscan.rulebook.config import FileSettings
from breakscan.source.source_files import SourceFiles

_SURE = (Confidence.CERTAIN, Confidence.LIKELY)


def agree(explanation: Explanation, settings: FileSettings, files: SourceFiles) -> Agreement:
    """Checks the functions that a run compiled or exported, with a user's settings and the run's torch, and compares.

    The code is checked for what the run did with it: compile it, or export it. Covers the files of the run that may be
    read, are as they were in the run and are not excluded; files of torch and of Python are left out. Paths of the
    explanation are relative to the working directory. Raises what ``check`` raises for a version without verdicts.
    """
    torch = minor_version(explanation.torch)
    # How the run compiled counts, whatever the settings are for; what a trace does not tell, they do.
    compiled = {"fullgraph": all(one.fullgraph for one in explanation.targets)} if explanation.targets else {}
    settings = settings.changed(target_torch=torch, target="compile", **compiled)
    sources = Sources(files)
    traced = traced_functions(explanation, sources)
    functions = {path: names for path, names in traced.items() if not excludes(path, settings)}
    by_file = {Path(os.path.abspath(path)): with_enclosing(names) for path, names in functions.items()}
    result = check_paths(sorted(by_file), settings, functions=by_file)
    refused = given_up_alone(explanation)
    wanted = (
        f
        for f in result.findings
        if is_compiled(f, functions) or any(hands_over(f, frame.rule, frame.function, sources) for frame in refused)
    )
    result = replace(result, findings=tuple(wanted))
    hidden = hidden_behind(explanation, result, sources)
    judged = tuple(_judge(result.findings, explanation, hidden, sources))
    unknown = list(_unknown(judged, explanation, functions))
    is_silenced = silencer(settings, sources)
    return Agreement(
        torch=torch,
        mode=result.targets[0].mode if result.targets else Mode.DEFAULT,
        files=tuple(functions),
        judged=judged,
        missed=tuple(site for site in unknown if not is_silenced(site)),
        silenced=tuple(site for site in unknown if is_silenced(site)),
        hidden=hidden,
        errors=result.errors,
        exports=tuple(agree_on_exports(explanation, settings, sources)),
    )


def _judge(
    findings: Sequence[Finding],
    explanation: Explanation,
    hidden: Mapping[BreakKey, Sequence[Finding]],
    sources: Sources,
) -> Iterator[Judged]:
    confirmed = confirming_sites(findings, list(recorded(explanation)), sources)
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
) -> Iterator[Missed]:
    """Returns what was recorded in the checked files and is not predicted by any finding."""
    known = {(site.path, line) for one in judged for site in [one.finding.site] for line in lines_of(site)}
    for broken in explanation.breaks:
        path = broken.site.path
        predicted = any((path, line) in known for line in lines_of(broken.site))
        if path in functions and broken.origin is not Origin.FRAMEWORK and not predicted:
            yield broken
    confirming = {one.by for one in judged}
    for frame in given_up_alone(explanation):
        if frame.gb_type and frame.site.path in functions and frame.site not in confirming:
            yield frame
