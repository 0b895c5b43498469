"""The formats of every command: name → function of ``breakscan.report``, imported when it is used."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar

if TYPE_CHECKING:
    from breakscan.prove.bench import Bench
    from breakscan.prove.proof import Tuning, Verification
    from breakscan.report.caches import ColdStart
    from breakscan.report.check import CheckReport
    from breakscan.report.diff import RunComparison
    from breakscan.report.explain import ExplainReport
    from breakscan.report.fix import FixReport
    from breakscan.report.rules import RuleListReport, RuleReport
    from breakscan.survey.overview import SurveyComparison, SurveyOverview

Report = TypeVar("Report")

DIAGNOSTIC_FORMATS = {
    "github": "ci_formats:write_github",
    "sarif": "ci_formats:write_sarif",
    "gitlab": "ci_formats:write_gitlab",
}
"""Formats of ``check``, ``explain`` and ``report``, written from diagnostics."""
PAGE_FORMATS = {"terminal": "measured_page:write_page_terminal", "markdown": "measured_page:write_page_markdown"}
"""Formats of ``verify``, ``bench``, ``tune`` and comparisons, written from a page."""

FOR_LOGS = ("terminal", "github")  # may go to standard error, between the program's output; others need a file


def load(name: str) -> Callable[..., Any]:
    """A writer or a producer, by its module and name."""
    function: Callable[..., Any] = pkgutil.resolve_name(f"{__package__}.{name}")
    return function


@dataclass(frozen=True, slots=True)
class Formats(Generic[Report]):
    """The formats of one command.  ``writers`` are its own; ``producer`` makes diagnostics of its report, which
    :data:`DIAGNOSTIC_FORMATS` then write, and ``page`` a page for :data:`PAGE_FORMATS`."""

    writers: Mapping[str, str]
    producer: str | None = None
    page: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names, as choices of ``--format``; the first is the default."""
        return (*(PAGE_FORMATS if self.page else ()), *self.writers, *(DIAGNOSTIC_FORMATS if self.producer else ()))

    def write(self, name: str, report: Report, stream: TextIO) -> None:
        if name in self.writers:
            load(self.writers[name])(report, stream)
            return
        maker, formats = (self.page, PAGE_FORMATS) if self.page else (self.producer, DIAGNOSTIC_FORMATS)
        assert maker is not None, name
        load(formats[name])(load(maker)(report), stream)


CHECK: Formats[CheckReport] = Formats(
    {"full": "check_terminal:write_full", "concise": "check_terminal:write_concise", "json": "check:write_json"},
    producer="check:check_diagnostics",
)
EXPLAIN: Formats[ExplainReport] = Formats(
    {
        "terminal": "explain.terminal:write_explanation",
        "json": "explain.json:write_explain_json",
        "markdown": "explain.markdown:write_explain_markdown",
        "html": "explain.html.write:write_html",
    },
    producer="explain.diagnostics:explain_diagnostics",
)
FIX: Formats[FixReport] = Formats({"diff": "fix:write_diff", "json": "fix:write_fix_json"})
VERIFY: Formats[Verification] = Formats({"json": "verify:write_verify_json"}, page="verify:verify_page")
BENCH: Formats[Bench] = Formats({"json": "bench:write_bench_json"}, page="bench:bench_page")
TUNE: Formats[Tuning] = Formats({"json": "tune:write_tune_json"}, page="tune:tune_page")
CACHES: Formats[ColdStart] = Formats({"json": "caches:write_caches_json"}, page="caches:caches_page")
DIFF: Formats[RunComparison] = Formats({"json": "diff:write_diff_json"}, page="diff:diff_page")
RULE: Formats[RuleReport] = Formats({"text": "rules:write_rule", "json": "rules:write_rule_json"})
RULES: Formats[RuleListReport] = Formats({"table": "rules:write_rules", "json": "rules:write_rules_json"})
SURVEY: Formats[SurveyOverview] = Formats(
    {
        "terminal": "survey:write_survey_terminal",
        "json": "survey:write_survey_json",
        "markdown": "survey:write_survey_markdown",
    }
)
SURVEY_DIFF: Formats[SurveyComparison] = Formats(
    {"json": "survey:write_survey_diff_json"}, page="survey:survey_diff_page"
)
