"""Checks one text closely, as the rewrites need it: its findings, and what is known of its expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.analysis.interpreter.value_log import Notes
from breakscan.analysis.pipeline.check_file import FileChecker
from breakscan.analysis.pipeline.deep_stack import with_deep_stack
from breakscan.analysis.pipeline.merge import Merged
from breakscan.config import Settings, resolve_target
from breakscan.facts import FileFacts
from breakscan.findings import Finding, SourceError
from breakscan.source.module import SourceModule
from breakscan.source.paths import display_path


@dataclass(frozen=True, slots=True)
class Study:
    """What is known of one file.  Findings are in the order of their sites; ``errors`` are those of any root."""

    module: SourceModule
    findings: tuple[Finding, ...]
    facts: FileFacts
    errors: tuple[SourceError, ...]


def study(path: Path, text: str, roots: Sequence[Path], settings: Settings) -> Study:
    """Studies a text that goes by an absolute path, as it is reached from the files ``roots``.

    Raises SourceProblem where the text cannot be parsed.
    """
    notes = Notes([path], resolve_target(settings).ledger)
    checker = FileChecker(settings, texts={path: text}, notes=notes)
    merged = Merged()
    errors: list[SourceError] = []
    display = display_path(path, Path.cwd())
    for root in dict.fromkeys((*roots, path)):
        result = with_deep_stack(checker.check_file, root)
        errors += result.errors
        for finding in result.findings:
            if finding.site.path == display:
                merged.add(finding)
    module = checker.project.load(path).module
    facts = notes.facts(module)
    checker.project.release()
    ordered = sorted(merged.findings(), key=lambda f: (f.site.line, f.site.column, f.rule))
    return Study(module, tuple(ordered), facts, tuple(errors))
