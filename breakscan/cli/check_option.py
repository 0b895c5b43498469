"""The option ``--check`` of ``explain`` and ``report``: compares a run with the findings of ``breakscan check``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from breakscan.cli.failures import show_failure
from breakscan.cli.fix_offer import fix_offer
from breakscan.explain.explanation import Explanation
from breakscan.explain.frames import FrameStatus
from breakscan.model.findings import Origin
from breakscan.model.torch_versions import is_version
from breakscan.report.explain.report import ExplainReport
from breakscan.report.formats import WITH_AGREEMENT
from breakscan.rulebook.config import NearestSettings
from breakscan.source.source_files import SourceFiles

if TYPE_CHECKING:
    from breakscan.explain.agreement.result import Agreement
    from breakscan.explain.repro.reproduction import Reproduction


def check_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the option, as ``check``, to a command."""
    return click.option(
        "--check",
        is_flag=True,
        help="Compare with what breakscan check says of the code that was compiled or exported.",
    )(command)


def require_room(check: bool, format_: str) -> None:
    """Raises UsageError if the comparison is requested in a format that cannot show it."""
    if check and format_ not in WITH_AGREEMENT:
        raise click.UsageError(f"--check goes with --format {' or '.join(WITH_AGREEMENT)}")


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
    offer = fix_offer(explanation, files) if format_ == "terminal" and explanation.trace is None else None
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
