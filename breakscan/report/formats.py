"""The formats of every command: name → writer, imported when it is used.

A format that shows messages at lines (GitHub, SARIF, …) is written once for all commands that have such messages: a
function ``write_NAME(report: DiagnosticReport, stream: TextIO)``, and one line in :data:`DIAGNOSTIC_FORMATS`.  A format
of one command is a function in the file of that command and a line below.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TextIO, TypeVar

if TYPE_CHECKING:
    from breakscan.prove.bench_result import Bench
    from breakscan.prove.proof import Verification
    from breakscan.report.check import CheckReport
    from breakscan.report.diagnostics import DiagnosticReport
    from breakscan.report.diff.comparison import RunComparison
    from breakscan.report.explain.report import ExplainReport
    from breakscan.report.fix import FixReport
    from breakscan.report.rules import RuleListReport, RuleReport
    from breakscan.survey.comparison import SurveyComparison
    from breakscan.survey.overview import SurveyOverview

Report = TypeVar("Report")

DIAGNOSTIC_FORMATS = {
    "github": "breakscan.report.github:write_github",
    "sarif": "breakscan.report.sarif:write_sarif",
    "gitlab": "breakscan.report.ci_formats:write_gitlab",
    "rdjson": "breakscan.report.ci_formats:write_rdjson",
    "junit": "breakscan.report.ci_formats:write_junit",
    "checkstyle": "breakscan.report.ci_formats:write_checkstyle",
}
"""What ``check``, ``explain``, ``report``, ``fix`` and ``verify`` can all write, from diagnostics."""

FOR_LOGS = ("terminal", "github")
"""Formats that may go to standard error, between the output of the program that is run.  All others need a file."""
WITH_AGREEMENT = ("terminal", "json")
"""Formats of ``explain`` that can show what ``check`` reports for the code that was compiled."""
WITH_REPRO = ("terminal", "markdown", "json", "html", "github", "sarif")
"""Formats of ``explain`` that name the program that ``--repro`` wrote."""


@dataclass(frozen=True, slots=True)
class Formats(Generic[Report]):
    """The formats of one command.  ``writers`` are its own; ``producer`` makes diagnostics of its report, which
    :data:`DIAGNOSTIC_FORMATS` then write."""

    writers: Mapping[str, str]
    producer: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names, as choices of ``--format``; the first is the default."""
        return (*self.writers, *(DIAGNOSTIC_FORMATS if self.producer else ()))

    def write(self, name: str, report: Report, stream: TextIO) -> None:
        """Writes the report in the format of this name."""
        if name in self.writers:
            write: Callable[[Report, TextIO], None] = pkgutil.resolve_name(self.writers[name])
            write(report, stream)
            return
        assert self.producer is not None, name
        produce: Callable[[Report], DiagnosticReport] = pkgutil.resolve_name(self.producer)
        render: Callable[[DiagnosticReport, TextIO], None] = pkgutil.resolve_name(DIAGNOSTIC_FORMATS[name])
        render(produce(report), stream)


CHECK: Formats[CheckReport] = Formats(
    {
        "full": "breakscan.report.check_terminal:write_full",
        "concise": "breakscan.report.check_terminal:write_concise",
        "json": "breakscan.report.check:write_json",
    },
    producer="breakscan.report.check:check_diagnostics",
)
EXPLAIN: Formats[ExplainReport] = Formats(
    {
        "terminal": "breakscan.report.explain.terminal:write_explanation",
        "json": "breakscan.report.explain.json:write_explain_json",
        "markdown": "breakscan.report.explain.markdown:write_explain_markdown",
        "html": "breakscan.report.explain.html.write:write_html",
        "perfetto": "breakscan.report.explain.perfetto:write_explain_perfetto",
    },
    producer="breakscan.report.explain.diagnostics:explain_diagnostics",
)
FIX: Formats[FixReport] = Formats(
    {
        "diff": "breakscan.report.fix:write_diff",
        "json": "breakscan.report.fix:write_fix_json",
    },
    producer="breakscan.report.fix:fix_diagnostics",
)
VERIFY: Formats[Verification] = Formats(
    {
        "terminal": "breakscan.report.verify:write_verify_terminal",
        "json": "breakscan.report.verify:write_verify_json",
        "markdown": "breakscan.report.verify:write_verify_markdown",
        "html": "breakscan.report.verify_html:write_verify_html",
    },
    producer="breakscan.report.verify:verify_diagnostics",
)
BENCH: Formats[Bench] = Formats(
    {
        "terminal": "breakscan.report.bench:write_bench_terminal",
        "json": "breakscan.report.bench:write_bench_json",
        "markdown": "breakscan.report.bench:write_bench_markdown",
    }
)
DIFF: Formats[RunComparison] = Formats(
    {
        "terminal": "breakscan.report.diff.write:write_diff_terminal",
        "json": "breakscan.report.diff.write:write_diff_json",
        "markdown": "breakscan.report.diff.write:write_diff_markdown",
    }
)
RULE: Formats[RuleReport] = Formats(
    {
        "text": "breakscan.report.rules:write_rule",
        "json": "breakscan.report.rules:write_rule_json",
    }
)
RULES: Formats[RuleListReport] = Formats(
    {
        "table": "breakscan.report.rules:write_rules",
        "json": "breakscan.report.rules:write_rules_json",
    }
)
SURVEY: Formats[SurveyOverview] = Formats(
    {
        "terminal": "breakscan.report.survey:write_survey_terminal",
        "json": "breakscan.report.survey:write_survey_json",
        "markdown": "breakscan.report.survey:write_survey_markdown",
        "html": "breakscan.report.survey_html:write_survey_html",
    }
)
SURVEY_DIFF: Formats[SurveyComparison] = Formats(
    {
        "terminal": "breakscan.report.survey:write_survey_diff_terminal",
        "json": "breakscan.report.survey:write_survey_diff_json",
        "markdown": "breakscan.report.survey:write_survey_diff_markdown",
    }
)
