"""What the analysis of a file gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from breakscan.check.pipeline.shadowed import Reach
from breakscan.model.findings import CompiledFunction, Finding, SourceError


@dataclass(slots=True)
class FileResult:
    """What one file, at an absolute path, gave in itself and in the files that are reached from it.

    ``suppressed`` are the findings that a comment silences.  ``depends`` says what the result rests on: absolute path
    → digest of the content (see :class:`.Digests`), ``""`` where a file was looked for and there was
    none.  ``reaches`` tells what lies behind those findings that give a function up, ``compiled`` what
    the file hands to the compiler.
    """

    path: str = ""
    findings: list[Finding] = field(default_factory=list)
    suppressed: list[Finding] = field(default_factory=list)
    errors: list[SourceError] = field(default_factory=list)
    warnings: list[SourceError] = field(default_factory=list)
    depends: dict[str, str] = field(default_factory=dict)
    reaches: list[Reach] = field(default_factory=list)
    compiled: list[CompiledFunction] = field(default_factory=list)
