"""The reports of ``explain`` and ``report``: the options ``--show`` and ``--source-root``."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from breakscan.cli.exit_status import show_failure
from breakscan.cli.options import flag, option
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_recording import Relocation
from breakscan.model.findings import Finding, Origin, Site, Verdict
from breakscan.model.problem import Problem, ProblemKind
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.tables import FINDINGS, LISTINGS
from breakscan.rulebook.config import NearestSettings
from breakscan.source.source_files import SourceFiles

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


show_option = option(
    "--show", f"List more in the terminal report: {', '.join(_WORDS)}, or {ALL}.", metavar="LIST", callback=_tables
)
check_option = flag(
    "--check", "Also name the breaks and recompiles of your code that breakscan check has no finding for."
)
source_root_option = option(
    "--source-root",
    "Read source files also below this folder, not only below the working directory; with OLD=, it holds the "
    "files that were below OLD when the program ran.",
    metavar="[OLD=]FOLDER",
    multiple=True,
    callback=_relocation,
)


def readable_files(relocation: Relocation) -> SourceFiles:
    """Return the source files that may be read for a recording or a log, which can come from anyone."""
    return SourceFiles((os.getcwd(), *relocation.folders))


def require_room(tables: tuple[str, ...], check: bool, format_: str) -> None:
    """Raises UsageError if something is requested in a format that cannot show it."""
    if tables and format_ != "terminal":
        raise click.UsageError("--show goes with --format terminal; json has all that it lists")
    if check and format_ != "terminal":
        raise click.UsageError("--check goes with --format terminal")


def explain_report(
    explanation: Explanation,
    files: SourceFiles,
    format_: str,
    tables: tuple[str, ...],
    check: bool,
    *,
    is_read: bool,
    again: str = "",
) -> ExplainReport:
    """Returns what a report in this format shows.  Of a trace, whose files may have changed since, it has nothing that
    ``check`` or ``fix`` say, unless ``check`` asks for it.  Edits are planned if somebody reads it on a terminal."""
    made = ExplainReport(explanation, tables=tables, again=again, files=files)
    if format_ != "terminal" or (explanation.trace is not None and not check):
        return made
    try:
        return _checked(made, check, is_read)
    except Exception as error:
        show_failure(error)
        return made


def _checked(report: ExplainReport, compare: bool, count_edits: bool) -> ExplainReport:
    """Adds what ``check`` says of the breaks of the user's code, to ``count_edits`` what ``fix`` does, and to
    ``compare``, the problems that ``check`` has no finding for.  In a file that has changed, they find other code."""
    breaks = [one for one in report.explanation.breaks if one.origin is Origin.USER]
    own = {one.site: _absolute(one.site) for one in breaks if report.files.is_current(one.site.path)}
    hiding = {one.site for one in breaks if one.site in own and one.verdict in (Verdict.EAGER, Verdict.RAISES)}
    rewritten = [one for one in breaks if count_edits and one.rule and one.rule.rewrites]
    editable = {own[one.site] for one in rewritten if one.site in own}
    compared = [
        one
        for one in (report.explanation.problems if compare else ())
        if (one.is_lost or one.kind in (ProblemKind.BREAK, ProblemKind.RECOMPILES))
        and one.origin is Origin.USER
        and report.files.is_current(one.site.path)
    ]
    sites = [*(own[site] for site in hiding), *editable, *(_absolute(one.site) for one in compared)]
    paths = sorted({site.path for site in sites})
    if not paths:
        return replace(report, compared=0 if compare else None)
    from breakscan.check.pipeline.check import check_paths

    settings = NearestSettings()
    found = check_paths([*map(Path, paths)], settings, jobs=1)
    edits = []
    if editable:
        from breakscan.fix.repair import fixable

        edits = [_absolute(one.site) for one in fixable(found, settings)]
    hidden: dict[Site, list[Finding]] = {}
    for finding in found.findings:
        is_recorded = any(_absolute(finding.site).shares_line_with(site) for site in own.values())
        head = None if finding.behind is None or is_recorded else _absolute(finding.behind)
        for site in hiding:
            if head and head.shares_line_with(own[site]):
                hidden.setdefault(site, []).append(finding)
    fixed = sum(any(site.shares_line_with(edit) for edit in edits) for site in editable)
    missed = [one for one in compared if not any(_is_found(one, finding) for finding in found.findings)]
    return replace(report, hidden=hidden, fixable=fixed, compared=len(compared) if compare else None, missed=missed)


def _is_found(problem: Problem, finding: Finding) -> bool:
    """Return True if a finding is on the line of a problem, or has a recompile's rule in the same file."""
    site, other = _absolute(problem.site), _absolute(finding.site)
    is_cause = problem.kind is ProblemKind.RECOMPILES and finding.rule == problem.rule and other.path == site.path
    return is_cause or other.shares_line_with(site)


def _absolute(site: Site) -> Site:
    return replace(site, path=os.path.abspath(site.path))
