"""The reports of ``explain`` and ``report``: the options ``--check``, ``--show`` and ``--source-root``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from breakscan.cli.exit_status import show_failure
from breakscan.explain.explanation import Explanation
from breakscan.explain.frames import FrameStatus
from breakscan.explain.relocation import Relocation
from breakscan.model.findings import Origin
from breakscan.model.torch_versions import is_version
from breakscan.report.explain.report import ExplainReport
from breakscan.report.explain.tables import FINDINGS, LISTINGS
from breakscan.report.formats import WITH_AGREEMENT
from breakscan.rulebook.config import NearestSettings
from breakscan.source.source_files import SourceFiles

if TYPE_CHECKING:
    from breakscan.explain.agreement.result import Agreement
    from breakscan.explain.repro.reproduction import Reproduction
    from breakscan.fix.offer import Offer

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
            raise click.BadParameter(f"there is no folder {old!r}; OLD=NEW tells where files are that were below OLD")
    return Relocation(roots, allowed)


check_option = click.option(
    "--check", is_flag=True, help="Compare with what breakscan check says of the code that was compiled or exported."
)
show_option = click.option(
    "--show",
    "tables",
    metavar="LIST",
    callback=_tables,
    help=f"List more, in the terminal report: {', '.join(_WORDS)}, or {ALL}.",
)
source_root_option = click.option(
    "--source-root",
    "relocation",
    metavar="[OLD=]FOLDER",
    multiple=True,
    callback=_relocation,
    help="Also read source files below this folder, beside those below the working directory; with OLD=, it holds "
    "the files that were below OLD when the program ran.",
)


def readable_files(relocation: Relocation) -> SourceFiles:
    """The sources that a recording or a log, which can come from anyone, may have opened."""
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
    reproduction: Reproduction | None = None,
) -> ExplainReport:
    """Returns what a report in this format shows: the whole comparison if it is requested, else the findings hidden by
    the first break of a function that runs eager.

    For a trace, only a requested comparison is shown, because its files may have changed since; for the same reason,
    nothing of it is offered to ``fix``.
    """
    given_up = any(frame.status is FrameStatus.EAGER and frame.origin is Origin.USER for frame in explanation.frames)
    has_hidden = format_ == "terminal" and given_up and explanation.trace is None
    agreement = _agreement(explanation, files) if check or has_hidden else None
    offer = _fix_offer(explanation, files) if format_ == "terminal" and explanation.trace is None else None
    return ExplainReport(
        explanation,
        agreement,
        with_agreement=check,
        tables=tables,
        again=again,
        reproduction=reproduction,
        offer=offer,
        files=files,
    )


def _agreement(explanation: Explanation, files: SourceFiles) -> Agreement | None:
    """Returns the agreement, or None if there is nothing to compare. A failure is reported and has no other effect."""
    from breakscan.explain.agreement.agree import agree

    try:
        return agree(explanation, NearestSettings(), files) if is_version(explanation.torch) else None
    except Exception as error:
        show_failure(error)
        return None


def _fix_offer(explanation: Explanation, files: SourceFiles) -> Offer | None:
    """The best of the edits that ``fix`` has for the breaks in the user's code; None if it has none.  A failure is
    reported and has no other effect."""
    breaks = [one for one in explanation.problems if one.may_be_rewritten]
    places = [(one.site.path, one.site.line, one.id) for one in breaks]
    compiled_from = [target.caller for target in explanation.targets if target.caller]
    callers = [*compiled_from, *(caller for one in breaks for caller in one.stack)]
    paths = dict.fromkeys([path for path, *_ in places] + [one.path for one in callers if one.origin is Origin.USER])
    sources = [Path(os.path.abspath(path)) for path in paths if path.endswith(".py") and files.lines(path)]
    if not places or not sources:
        return None
    from breakscan.fix.offers import best_offer

    try:
        return best_offer(sources, NearestSettings(), places)
    except Exception as error:
        show_failure(error)
        return None
