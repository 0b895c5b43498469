"""What came of trying a rule."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TextIO

from breakscan.check.pipeline.rule_trial import RuleTrial
from breakscan.model.findings import Site
from breakscan.model.words import counted, position
from breakscan.report.shared.finding_words import one_line
from breakscan.report.shared.printable import printable, visible
from breakscan.source.paths import display_path

MOST_NAMED = 5
"""Of the names that are called, where none is near."""


def write_trial(trial: RuleTrial, stream: TextIO) -> None:
    """Writes the findings in files, why there is none, and which examples contradict the rule."""
    result = printable(trial.result)
    for finding in result.findings:
        stream.write(f"{position(finding.site)}: {finding.rule} {one_line(finding)}\n")
    for error in result.errors:
        stream.write(f"{error.path}:{error.line}:{error.column}: not checked {error.message}\n")
    if result.files:
        stream.write(f"{trial.rule.id} {trial.rule.name}: {counted(len(result.findings), 'finding')} in ")
        stream.write(f"{counted(result.files, 'file')}\n")
    stream.writelines(f"  {line}\n" for line in _uncalled(trial))
    document = display_path(trial.rule.path, os.getcwd())
    for example in trial.missed:
        stream.write(f"{document}:{example.line}: {example.label} is not found, although it is under Breaks\n")
    for example in trial.mistaken:
        stream.write(f"{document}:{example.line}: {example.label} is found, although it is under Compiles\n")
    if not trial.rule.examples:
        stream.write("  The document has no examples, which would show whether it finds what it is for.\n")


def _uncalled(trial: RuleTrial) -> Iterator[str]:
    if trial.called is None or not trial.uncalled:
        return
    called: dict[str, tuple[Site, int]] = printable(dict(trial.called))
    anywhere = any(pattern.anywhere for pattern in trial.rule.match)
    for name in trial.uncalled:
        where = "" if anywhere else " in compiled code"
        near = next(iter(get_close_matches(name, called, 1)), None) or _of_the_same_end(name, called)
        hint = ""
        if near is not None:
            site, count = called[near]
            hint = f": did you mean {near} ({counted(count, 'call')}, the first at {position(site)})?"
        yield f"{visible(name)} is not called{where}{hint}"
    if called and not any(get_close_matches(name, called, 1) for name in trial.uncalled):
        names = sorted(called, key=lambda name: -called[name][1])
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        yield f"Called are {', '.join(names[:MOST_NAMED])}{more}"


def _of_the_same_end(name: str, called: dict[str, tuple[Site, int]]) -> str | None:
    """A name that differs only in what is before the last dot: where the function is imported from."""
    return next((one for one in called if one.rpartition(".")[2] == name.rpartition(".")[2]), None)
