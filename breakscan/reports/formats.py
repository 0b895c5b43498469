"""The formats of every command: name → writer, imported when it is used.

A format that shows messages at lines (GitHub, SARIF, …) is written once for all commands that have such messages: one
file in ``diagnostics/`` with a function ``write_NAME(report: DiagnosticReport, stream: TextIO)``, and one line in
:data:`DIAGNOSTIC_FORMATS`.  A format of one command is a file in the folder of that command and a line below.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TextIO, TypeVar

if TYPE_CHECKING:
    from breakscan.bench.result import Bench
    from breakscan.reports.check.report import CheckReport
    from breakscan.reports.diagnostics.diagnostic import DiagnosticReport
    from breakscan.reports.diff.comparison import RunComparison
    from breakscan.reports.explain.report import ExplainReport
    from breakscan.reports.fix.report import FixReport
    from breakscan.reports.rules.report import RuleListReport, RuleReport
    from breakscan.survey.comparison import SurveyComparison
    from breakscan.survey.overview import SurveyOverview
    from breakscan.verify.proof import Verification

Report = TypeVar("Report")

DIAGNOSTIC_FORMATS = {
    "github": "breakscan.reports.diagnostics.github:write_github",
    "sarif": "breakscan.reports.diagnostics.sarif:write_sarif",
    "gitlab": "breakscan.reports.diagnostics.gitlab:write_gitlab",
    "rdjson": "breakscan.reports.diagnostics.rdjson:write_rdjson",
    "junit": "breakscan.reports.diagnostics.junit:write_junit",
    "checkstyle": "breakscan.reports.diagnostics.checkstyle:write_checkstyle",
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
        "full": "breakscan.reports.check.terminal:write_full",
        "concise": "breakscan.reports.check.concise:write_concise",
        "json": "breakscan.reports.check.json:write_json",
    },
    producer="breakscan.reports.check.diagnostics:check_diagnostics",
)
EXPLAIN: Formats[ExplainReport] = Formats(
    {
        "terminal": "breakscan.reports.explain.terminal:write_explanation",
        "json": "breakscan.reports.explain.json:write_explain_json",
        "markdown": "breakscan.reports.explain.markdown:write_explain_markdown",
        "html": "breakscan.reports.explain.html.write:write_html",
        "perfetto": "breakscan.reports.explain.perfetto:write_explain_perfetto",
    },
    producer="breakscan.reports.explain.diagnostics:explain_diagnostics",
)
FIX: Formats[FixReport] = Formats(
    {
        "diff": "breakscan.reports.fix.diff:write_diff",
        "json": "breakscan.reports.fix.json:write_fix_json",
    },
    producer="breakscan.reports.fix.diagnostics:fix_diagnostics",
)
VERIFY: Formats[Verification] = Formats(
    {
        "terminal": "breakscan.reports.verify.terminal:write_verify_terminal",
        "json": "breakscan.reports.verify.json:write_verify_json",
        "markdown": "breakscan.reports.verify.markdown:write_verify_markdown",
        "html": "breakscan.reports.verify.html:write_verify_html",
    },
    producer="breakscan.reports.verify.diagnostics:verify_diagnostics",
)
BENCH: Formats[Bench] = Formats(
    {
        "terminal": "breakscan.reports.bench.terminal:write_bench_terminal",
        "json": "breakscan.reports.bench.json:write_bench_json",
        "markdown": "breakscan.reports.bench.markdown:write_bench_markdown",
    }
)
DIFF: Formats[RunComparison] = Formats(
    {
        "terminal": "breakscan.reports.diff.terminal:write_diff_terminal",
        "json": "breakscan.reports.diff.json:write_diff_json",
        "markdown": "breakscan.reports.diff.markdown:write_diff_markdown",
    }
)
RULE: Formats[RuleReport] = Formats(
    {
        "text": "breakscan.reports.rules.page:write_rule",
        "json": "breakscan.reports.rules.json:write_rule_json",
    }
)
RULES: Formats[RuleListReport] = Formats(
    {
        "table": "breakscan.reports.rules.page:write_rules",
        "json": "breakscan.reports.rules.json:write_rules_json",
    }
)
SURVEY: Formats[SurveyOverview] = Formats(
    {
        "terminal": "breakscan.reports.survey.terminal:write_survey_terminal",
        "json": "breakscan.reports.survey.json:write_survey_json",
        "markdown": "breakscan.reports.survey.markdown:write_survey_markdown",
        "html": "breakscan.reports.survey.html.write:write_survey_html",
    }
)
SURVEY_DIFF: Formats[SurveyComparison] = Formats(
    {
        "terminal": "breakscan.reports.survey.terminal:write_survey_diff_terminal",
        "json": "breakscan.reports.survey.json:write_survey_diff_json",
        "markdown": "breakscan.reports.survey.markdown:write_survey_diff_markdown",
    }
)
