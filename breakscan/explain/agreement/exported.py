"""Compares what ``check`` reports for the code that a run exported with what stood against the exports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.explain.agreement.compiled import is_wanted, with_enclosing
from breakscan.explain.agreement.excludes import excludes
from breakscan.explain.agreement.result import AgreementOutcome, ExportAgreement, Judged, Missed
from breakscan.explain.agreement.silenced import silencer
from breakscan.explain.agreement.sources import Sources
from breakscan.explain.explanation import Explanation
from breakscan.explain.exported import Export, ExportFailure, ExportTry, ExportWay
from breakscan.model.findings import Finding, Mode
from breakscan.rulebook.config import FileSettings

_TARGETS: Mapping[Mode, str] = {Mode.EXPORT: "export", Mode.EXPORT_STRICT: "export-strict"}
_WAYS = (ExportWay.EXPORT, ExportWay.DRAFT)
"""The ways that ``check --target`` speaks of; the others take what is compiled or exported already."""


def agree_on_exports(explanation: Explanation, settings: FileSettings, sources: Sources) -> Iterator[ExportAgreement]:
    """Checks what a run exported, for each of the two ways in which it did; see :func:`agree`."""
    is_silenced = silencer(settings, sources)
    for mode in _TARGETS:
        exports = [one for one in explanation.exports if _mode(one) is mode]
        failures = [one for one in explanation.export_failures if mode in map(_mode, one.exports)]
        exported = _exported_functions(exports, failures, sources)
        functions = {path: names for path, names in exported.items() if not excludes(path, settings)}
        if exports:
            yield _compared(mode, functions, failures, settings, is_silenced)


def _compared(
    mode: Mode,
    functions: dict[str, dict[str, bool]],
    failures: list[ExportFailure],
    settings: FileSettings,
    is_silenced: Callable[[Missed | ExportFailure], bool],
) -> ExportAgreement:
    by_file = {Path(os.path.abspath(path)): with_enclosing(names) for path, names in functions.items()}
    result = check_paths(sorted(by_file), settings.changed(target=_TARGETS[mode], fullgraph=False), functions=by_file)
    unknown = [
        one
        for one in failures
        if one.site.path in functions and not any(one.site.shares_line_with(found.site) for found in result.findings)
    ]
    return ExportAgreement(
        mode=mode,
        files=tuple(functions),
        judged=tuple(_judge(finding, failures) for finding in result.findings),
        missed=tuple(one for one in unknown if not is_silenced(one)),
        silenced=tuple(one for one in unknown if is_silenced(one)),
        errors=result.errors,
    )


def _judge(finding: Finding, failures: list[ExportFailure]) -> Judged:
    """An export that goes on does not show that a line ran, nor one that ended where it would have gone on to."""
    by = next((one.site for one in failures if one.site.shares_line_with(finding.site)), None)
    return Judged(finding, AgreementOutcome.CONFIRMED if by else AgreementOutcome.NOT_TRIGGERED, by, is_traced=False)


def _exported_functions(
    exports: list[Export], failures: list[ExportFailure], sources: Sources
) -> dict[str, dict[str, bool]]:
    """The functions that are known to have been exported, by file, as :func:`traced_functions` gives those that were
    compiled."""
    found: dict[str, dict[str, bool]] = {}

    def add(path: str, line: int, is_root: bool) -> None:
        if is_wanted(path) and sources.module(path) is not None:
            names = found.setdefault(path, {})
            if function := sources.function(path, line):
                names[function] = names.get(function, False) or is_root

    for one in exports:
        if one.site:
            add(one.site.path, one.site.line, True)
    for failure in failures:
        add(failure.site.path, failure.site.line, False)
        for caller in failure.stack:
            add(caller.path, caller.line, False)
    return found


def _mode(one: Export | ExportTry) -> Mode | None:
    if one.way not in _WAYS:
        return None
    return Mode.EXPORT_STRICT if one.strict else Mode.EXPORT
