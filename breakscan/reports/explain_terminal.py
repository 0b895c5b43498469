"""The report of ``explain`` that people read: what it means, then where, then what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TextIO, TypeVar

from rich.console import Console
from rich.text import Text

from breakscan.findings import Origin, Severity, Site, Verdict
from breakscan.reports.codeframe import INDENT, code_text, paragraph
from breakscan.reports.console import STYLES, report_console
from breakscan.reports.explain_words import (
    frame_status,
    headline,
    listed,
    outcome_line,
    recompile_sentence,
    useful_hints,
    verdict_sentence,
    why_nothing_compiled,
)
from breakscan.rulebook.document import Rule
from breakscan.runtime.explanation import BreakSite, Caller, Explanation, FrameFate, FrameStatus, Recompile
from breakscan.source.module import SourceProblem, decode_source

T = TypeVar("T")

MOST_HINTS = 2
WIDEST = 120
_PACKAGES = re.compile(r".*/(?:(?:site|dist)-packages|lib(?=/python3))/")
_HEADINGS = {
    Origin.USER: "Graph breaks in your code",
    Origin.LIBRARY: "Graph breaks in libraries",
    Origin.FRAMEWORK: "Graph breaks inside torch",
}
_VERDICTS = {
    Verdict.RAISES: ("raises", STYLES[Severity.ERROR]),
    Verdict.EAGER: ("runs eager", STYLES[Severity.ERROR]),
    Verdict.SPLITS: ("splits the graph", STYLES[Severity.WARNING]),
}


def write_explanation(explanation: Explanation, stream: TextIO) -> None:
    """Writes the report."""
    _Report(report_console(stream)).write(explanation)


class _Report:
    def __init__(self, console: Console) -> None:
        self.console = console
        self.width = min(console.width, WIDEST)
        self.explained: set[str] = set()
        self.advised: set[str] = set()
        self.over_limit: dict[str | None, FrameFate] = {}
        self.last_group: dict[str | None, Sequence[Recompile]] = {}

    def write(self, explanation: Explanation) -> None:
        self.console.print(Text("─" * self.width, "dim"))
        self.paragraph(outcome_line(explanation), indent="")
        if explanation.graphs:
            self.paragraph(headline(explanation), indent="", style="bold")
        else:
            self.paragraph(why_nothing_compiled(explanation), indent="", style=STYLES[Severity.ERROR])
        for origin, heading in _HEADINGS.items():
            sites = [site for site in explanation.breaks if site.origin is origin]
            self.section(heading, sites, self.break_site)
        groups = _by_cause(explanation.recompiles)
        recompiled = {recompile.function for group in groups for recompile in group}
        self.over_limit = {f.function: f for f in explanation.frames if f.over_limit and f.function in recompiled}
        self.last_group = {recompile.function: group for group in groups for recompile in group}
        told = [f for f in explanation.frames if f.break_site is None and f not in self.over_limit.values()]
        self.section("Not compiled", told, self.frame)
        self.section("Recompiles", groups, self.recompiles)
        if explanation.notices:
            self.console.print()
        for notice in explanation.notices:
            self.paragraph(f"Note: {notice}.", indent="", style="dim")

    def section(self, heading: str, things: Sequence[T], write: Callable[[T], None]) -> None:
        if not things:
            return
        self.console.print()
        self.console.print(Text(heading, "bold underline"))
        for thing in things:
            write(thing)

    def break_site(self, site: BreakSite) -> None:
        word, style = _VERDICTS[site.verdict]
        self.head(site.site, word, style, site.count, site.function, _named(site.rule))
        self.code(site.site, style)
        if not site.rule or site.rule.id not in self.explained:
            self.labelled("Why", site.rule.why if site.rule else site.reason)
        if sentence := verdict_sentence(site):
            self.paragraph(sentence)
        if site.origin is not Origin.USER:
            self.way_there(site)
        if site.rule:
            self.instead(site.rule, site.advice)
        elif site.origin is Origin.FRAMEWORK:
            self.labelled(
                "Instead", "keep the call that leads here out of the compiled code, or leave it: torch wants it so"
            )
        else:
            for hint in useful_hints(site.hints)[:MOST_HINTS]:
                self.labelled("Hint", hint)

    def way_there(self, site: BreakSite) -> None:
        """Which of the user's lines led into a library, and which of the library's to the break."""
        nearest = next((c for c in reversed(site.stack) if c.function != site.function), None)
        callers = dict.fromkeys(filter(None, [nearest, _last_of_users(site.stack)]))
        if callers:
            self.paragraph(f"Called from {', from '.join(f'{_short(c.path)}:{c.line}' for c in callers)}.")

    def frame(self, frame: FrameFate) -> None:
        style = STYLES[Severity.INFO if frame.status is FrameStatus.PASSED_OVER else Severity.ERROR]
        rule = _named(frame.rule)
        self.head(frame.site, frame_status(frame), style, frame.count, frame.function, rule)
        self.labelled("Why", frame.reason)
        self.instead(frame.rule, frame.advice)

    def recompiles(self, group: Sequence[Recompile]) -> None:
        first = group[0]
        style = STYLES[Severity.WARNING]
        functions = listed([r.function or "a function" for r in group], "function")
        rule = _named(first.rule)
        self.head(first.site, "recompiled", style, len(group), functions, rule, always_count=True)
        self.paragraph(f"{recompile_sentence(group)}.")
        if first.trigger:
            self.paragraph(f"Called from {_short(first.trigger.path)}:{first.trigger.line}.")
        for function in dict.fromkeys(r.function for r in group):
            if function in self.over_limit and self.last_group[function] is group:
                self.paragraph(f"{function} is given up: {self.over_limit[function].reason}.")
        self.instead(first.rule, first.advice)

    def instead(self, rule: Rule | None, advice: str | None) -> None:
        """What to do, once a report: a rule is named at each of its sites, and says the same at each."""
        if advice and advice not in self.advised:
            self.labelled("Instead", advice)
            self.advised.add(advice)
        if rule:
            self.explained.add(rule.id)

    def head(
        self,
        site: Site,
        word: str,
        style: str,
        count: int,
        function: str | None,
        rule: str | None,
        always_count: bool = False,
    ) -> None:
        text = Text(f"\n{_short(site.path)}:{site.line}:{site.column}", "bold")
        text.append(f"  {word}", f"not bold {style}")
        if count > 1 or always_count:
            text.append(f" {count}×", f"not bold {style}")
        rest = Text(rule or "", "bold")
        rest.append("  " if rule and function else "")
        rest.append(f"in {function}" if function else "", "not bold dim")
        text.append("  " if text.cell_len + rest.cell_len + 2 <= self.width else f"\n{INDENT}")
        self.console.print(text.append_text(rest) if rest else text)

    def code(self, site: Site, style: str) -> None:
        text = code_text(_lines(site.path), site, self.width, style, context=False)
        if text is not None:
            self.console.print(text)

    def labelled(self, label: str, sentence: str) -> None:
        self.paragraph(f"{sentence.strip().rstrip('. ')}.", label=f"{label}: ")

    def paragraph(self, sentence: str, indent: str = INDENT, style: str = "", label: str = "") -> None:
        self.console.print(paragraph(label, sentence, self.width, style=style, indent=indent))


def _by_cause(recompiles: Iterable[Recompile]) -> list[list[Recompile]]:
    groups: dict[int, list[Recompile]] = {}
    for recompile in recompiles:
        groups.setdefault(recompile.cause, []).append(recompile)
    return list(groups.values())


def _named(rule: Rule | None) -> str | None:
    return f"{rule.id} {rule.name}" if rule else None


def _last_of_users(stack: Sequence[Caller]) -> Caller | None:
    return next((caller for caller in reversed(stack) if caller.origin is Origin.USER), None)


def _short(path: str) -> str:
    """An installed file from its package on: what stands before says nothing of it."""
    return _PACKAGES.sub("", path)


def _lines(path: str) -> list[str]:
    try:
        return decode_source(Path(path).read_bytes(), path).split("\n")
    except (OSError, SourceProblem):
        return []
