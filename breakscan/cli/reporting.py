"""The reports of ``explain`` and ``report``: the options ``--check``, ``--show`` and ``--source-root``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from breakscan.cli.exit_status import show_failure
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.explanation.relocation import Relocation
from breakscan.model.findings import Origin, Site
from breakscan.model.torch_versions import is_version
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.tables import FINDINGS, LISTINGS
from breakscan.report.formats import WITH_AGREEMENT
from breakscan.rulebook.config import NearestSettings
from breakscan.source.source_files import SourceFiles

if TYPE_CHECKING:
    from breakscan.explanation.agreement.result import Agreement

ALL = "all"
_WORDS = (FINDINGS, *LISTINGS)


def _tables(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    words = tuple(word.strip() for word in (value or "").split(",") if word.strip())
    for word in words:
        if word not in (*_WORDS, ALL):
            raise click.BadParameter(f"{word!r} is none of {', '.join(_WORDS)} and {ALL}")
    return _WORDS if ALL in words else words


def _relocation(_: click.Context, __: click.Parameter, values: Iterable[str]) -> Relocation:
    roots: dict[str, str] = {}
    allowed = []
    for value in values:
        old, equals, new = value.partition("=")
        if not old or (equals and not new):
            raise click.BadParameter(f"{value!r} is not of the form FOLDER or OLD=NEW")
        if equals:
            roots[old] = os.path.abspath(new)
        elif os.path.isdir(old):
            allowed.append(os.path.abspath(old))
        else:
            raise click.BadParameter(f"there is no folder {old!r}; use OLD=NEW for files that were below OLD")
    return Relocation(roots, allowed)


check_option = click.option(
    "--check",
    is_flag=True,
    help="Compare with the findings of breakscan check in the code that was compiled.",
)
show_option = click.option(
    "--show",
    "tables",
    metavar="LIST",
    callback=_tables,
    help=f"List more in the terminal report: {', '.join(_WORDS)}, or {ALL}.",
)
source_root_option = click.option(
    "--source-root",
    "relocation",
    metavar="[OLD=]FOLDER",
    multiple=True,
    callback=_relocation,
    help="Read source files also below this folder, not only below the working directory; with OLD=, it holds the "
    "files that were below OLD when the program ran.",
)


def readable_files(relocation: Relocation) -> SourceFiles:
    """Return the source files that may be read for a recording or a log, which can come from anyone."""
    return SourceFiles((os.getcwd(), *relocation.folders))


def require_room(check: bool, tables: tuple[str, ...], format_: str) -> None:
    """Raises UsageError if a comparison or tables are requested in a format that cannot show them."""
    if check and format_ not in WITH_AGREEMENT:
        raise click.UsageError(f"--check goes with --format {' or '.join(WITH_AGREEMENT)}")
    if tables and format_ != "terminal":
        raise click.UsageError("--show goes with --format terminal; json has all that it lists")


def explain_report(
    explanation: Explanation,
    files: SourceFiles,
    format_: str,
    check: bool,
    tables: tuple[str, ...],
    again: str = "",
) -> ExplainReport:
    """Returns what a report in this format shows: the whole comparison if it is requested, else the findings hidden by
    the first break of a function that runs eager.

    For a trace, only a requested comparison is shown, because its files may have changed since; for the same reason,
    nothing of it is offered to ``fix``.
    """
    given_up = any(frame.status is FrameStatus.EAGER and frame.origin is Origin.USER for frame in explanation.frames)
    has_hidden = format_ == "terminal" and given_up and explanation.trace is None
    agreement = _agreement(explanation, files) if check or has_hidden else None
    return ExplainReport(
        explanation,
        agreement,
        with_agreement=check,
        tables=tables,
        again=again,
        fixable=_fixable(explanation, files) if format_ == "terminal" and explanation.trace is None else 0,
        files=files,
    )


def _agreement(explanation: Explanation, files: SourceFiles) -> Agreement | None:
    """Returns the agreement, or None if there is nothing to compare. A failure is reported and has no other effect."""
    from breakscan.explanation.agreement.agree import agree

    try:
        return agree(explanation, NearestSettings(), files) if is_version(explanation.torch) else None
    except Exception as error:
        show_failure(error)
        return None


def _fixable(explanation: Explanation, files: SourceFiles) -> int:
    """Return the number of breaks in the user's code that ``fix`` has an edit for.  In a file that has changed since,
    an edit would not find what was recorded."""
    own = [one for one in explanation.breaks if one.origin is Origin.USER and one.rule and one.rule.rewrites]
    sites = {_absolute(one.site) for one in own if files.is_current(one.site.path)}
    paths = sorted({site.path for site in sites})
    if not paths:
        return 0
    from breakscan.check.pipeline.check import check_paths
    from breakscan.fix.repair import fixable

    settings = NearestSettings()
    edits = [_absolute(one.site) for one in fixable(check_paths([*map(Path, paths)], settings, jobs=1), settings)]
    return sum(any(site.shares_line_with(edit) for edit in edits) for site in sites)


def _absolute(site: Site) -> Site:
    return replace(site, path=os.path.abspath(site.path))
