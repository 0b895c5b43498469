"""The report of ``explain`` that people read: what it means, then where, then what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TextIO, TypeVar

from rich.console import Console
from rich.text import Text

from breakscan.findings import Finding, Origin, Severity, Site
from breakscan.reports.explain.advice_words import recompile_advice
from breakscan.reports.explain.agreement_terminal import write_agreement
from breakscan.reports.explain.compiled_summary import made_lines
from breakscan.reports.explain.grouping import by_cause, frames_on_their_own, frames_over_limit, users_line
from breakscan.reports.explain.price_words import ceiling_sentence, comparable_calls, dearest_first, price_in_words
from breakscan.reports.explain.rank_words import difference_table, rank_sentences
from breakscan.reports.explain.report import ExplainReport
from breakscan.reports.explain.tables import LISTINGS
from breakscan.reports.explain.words import (
    frame_status,
    headline,
    hidden_sentence,
    outcome_line,
    recompile_sentence,
    useful_hints,
    verdict_sentence,
    why_nothing_compiled,
)
from breakscan.reports.shared.code_frame import INDENT, code_text, paragraph
from breakscan.reports.shared.console import STYLES, print_page, report_console
from breakscan.reports.shared.finding_words import FIX_HINT
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.site_words import VERDICT_STYLES, VERDICT_WORDS, rule_words, short_path
from breakscan.reports.shared.wording import listed
from breakscan.rulebook.document import Rule
from breakscan.runtime.explain.compiled import Calls
from breakscan.runtime.explain.explanation import (
    BreakSite,
    Explanation,
    FrameStatus,
    RankReport,
    Recompile,
    UncompiledFrame,
)
from breakscan.source.source_files import SourceFiles

T = TypeVar("T")

MOST_HINTS = 2
WIDEST = 120
_HEADINGS = {
    Origin.USER: "Graph breaks in your code",
    Origin.LIBRARY: "Graph breaks in libraries",
    Origin.FRAMEWORK: "Graph breaks inside torch",
}


def write_explanation(report: ExplainReport, stream: TextIO) -> None:
    """Writes the report, the tables that it asks for, and what ``check`` says if it asks for that."""
    explanation = report.explanation
    shown = printable(explanation)
    found = report.agreement.hidden if report.agreement else {}
    # Paths may differ after printable(); the order of the breaks is the same.
    hidden = {
        id(new): found.get((old.site, old.gb_type), ())
        for old, new in zip(explanation.breaks, shown.breaks, strict=True)
    }
    _Writer(report_console(stream), hidden, report.files).write(shown, report.tables)
    if report.agreement and report.with_agreement:
        write_agreement(report.agreement, stream)


class _Writer:
    def __init__(self, console: Console, hidden: Mapping[int, Sequence[Finding]], files: SourceFiles) -> None:
        self.files = files
        self.console = console
        self.hidden = hidden
        self.width = min(console.width, WIDEST)
        self.explained: set[str] = set()
        self.advised: set[str] = set()
        self.over_limit: dict[str | None, UncompiledFrame] = {}
        self.main_group: dict[str | None, Sequence[Recompile]] = {}

    def write(self, explanation: Explanation, tables: Iterable[str]) -> None:
        self.console.print(Text("─" * self.width, "dim"))
        self.paragraph(outcome_line(explanation), indent="")
        if explanation.graphs:
            self.paragraph(headline(explanation), indent="", style="bold")
        else:
            self.paragraph(why_nothing_compiled(explanation), indent="", style=STYLES[Severity.ERROR])
        if ceiling := ceiling_sentence(explanation):
            self.paragraph(ceiling, indent="")
        self.ranks(explanation.ranks)
        calls = comparable_calls(explanation)
        for origin, heading in _HEADINGS.items():
            sites = [site for site in explanation.breaks if site.origin is origin]
            self.section(heading, sorted(sites, key=dearest_first), lambda s: self.break_site(s, calls))
        self.fix_hint(explanation)
        groups = by_cause(explanation.recompiles)
        self.over_limit = {frame.function: frame for frame in frames_over_limit(explanation)}
        self.main_group = {name: max(groups, key=lambda group: _times(group, name)) for name in self.over_limit}
        self.section("Not compiled", frames_on_their_own(explanation), self.frame)
        self.section("Recompiles", groups, self.recompiles)
        self.made(explanation, tables)
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

    def ranks(self, report: RankReport | None) -> None:
        if report is None:
            return
        self.console.print()
        self.console.print(Text("Ranks", "bold underline"))
        for sentence in rank_sentences(report):
            self.paragraph(sentence, indent="")
        if report.differences:
            self.console.print()
            print_page(difference_table(report), self.console, self.width)

    def made(self, explanation: Explanation, tables: Iterable[str]) -> None:
        """What was compiled, a line a topic, and the tables that were asked for."""
        lines = list(made_lines(explanation))
        wanted = set(tables)
        if lines:
            self.console.print()
            self.console.print(Text("What was compiled", "bold underline"))
        for label, sentence in lines:
            self.paragraph(f"{sentence.rstrip('.')}.", label=f"{label}: ")
        there = [word for word, listing in LISTINGS.items() if listing.is_there(explanation)]
        if lines and there and not wanted:
            self.paragraph(f"--show {','.join(there)} lists what there is.", style="dim")
        for word, listing in LISTINGS.items():
            if word in wanted and word in there:
                for page in (make(explanation) for make in listing.makers):
                    if page is not None:
                        print_page(page, self.console, self.width)
            elif word in wanted:
                self.console.print()
                self.paragraph(f"No {word} were recorded.", indent="")

    def break_site(self, site: BreakSite, calls: Sequence[Calls]) -> None:
        word, style = VERDICT_WORDS[site.verdict], VERDICT_STYLES[site.verdict]
        self.head(site.site, word, style, site.count, site.function, rule_words(site.rule))
        self.code(site.site, style, site.code)
        if not site.rule or site.rule.id not in self.explained:
            self.labelled("Why", site.rule.why if site.rule else site.reason)
        if sentence := verdict_sentence(site):
            self.paragraph(sentence)
        if site.price and (price := price_in_words(site.price, calls)):
            self.labelled("Costs", price)
        if hidden := self.hidden.get(id(site)):
            self.paragraph(hidden_sentence(hidden))
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
        callers = dict.fromkeys(filter(None, [nearest, users_line(site.stack)]))
        if callers:
            self.paragraph(f"Called from {', from '.join(f'{short_path(c.path)}:{c.line}' for c in callers)}.")

    def frame(self, frame: UncompiledFrame) -> None:
        style = STYLES[Severity.INFO if frame.status is FrameStatus.PASSED_OVER else Severity.ERROR]
        self.head(frame.site, frame_status(frame), style, frame.count, frame.function, rule_words(frame.rule))
        self.labelled("Why", frame.reason)
        if frame.price and (price := price_in_words(frame.price, ())):
            self.labelled("Costs", price)
        self.instead(frame.rule, frame.advice)

    def recompiles(self, group: Sequence[Recompile]) -> None:
        first = group[0]
        style = STYLES[Severity.WARNING]
        functions = listed([r.function or "a function" for r in group], "function")
        rule = rule_words(first.rule)
        self.head(first.site, "recompiled", style, len(group), functions, rule, always_count=True)
        self.paragraph(f"{recompile_sentence(group)}.")
        if first.trigger and (first.trigger.path, first.trigger.line) != (first.site.path, first.site.line):
            self.paragraph(f"Called from {short_path(first.trigger.path)}:{first.trigger.line}.")
        for function in dict.fromkeys(r.function for r in group):
            if function in self.over_limit and self.main_group[function] is group:
                self.paragraph(f"{function} runs eager from then on: {self.over_limit[function].reason}.")
        self.instead(first.rule, recompile_advice(first))

    def fix_hint(self, explanation: Explanation) -> None:
        """Where to get the rewrites, if a rule of a break in the user's own code has any."""
        sites = [site for site in explanation.breaks if site.origin is Origin.USER]
        if any(site.rule and site.rule.rewrites for site in sites):
            self.console.print()
            self.paragraph(FIX_HINT, indent="", style="dim")

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
        rule: str,
        always_count: bool = False,
    ) -> None:
        text = Text(f"\n{short_path(site.path)}:{site.line}:{site.column}", "bold")
        text.append(f"  {word}", f"not bold {style}")
        if count > 1 or always_count:
            text.append(f" {count}×", f"not bold {style}")
        inside = f"in {function}" if function else ""
        rest = Text("  ".join(filter(None, (rule, inside))), "not bold dim")
        rest.stylize("not dim bold", 0, len(rule))
        if text.cell_len + rest.cell_len + 2 <= self.width:
            self.console.print(text.append("  " if rest else "").append_text(rest))
            return
        self.console.print(text)
        if len(INDENT) + rest.cell_len <= self.width:
            self.console.print(Text(INDENT).append_text(rest))
            return
        for part, look in ((rule, "bold"), (inside, "dim")):
            if part:
                self.paragraph(part, style=look)

    def code(self, site: Site, style: str, line: str | None) -> None:
        """Where the file has not the line any more, or is not here, the line alone."""
        lines = self.files.lines(site.path)
        text = code_text(lines, site, self.width, style, context=False)
        if line is not None and line != "".join(lines[site.line - 1 : site.line]).strip():
            text = Text(f"{site.line:>6} │ ", "dim").append(line, "not dim")
            text.truncate(self.width, overflow="ellipsis")
        if text is not None:
            self.console.print(text)

    def labelled(self, label: str, sentence: str) -> None:
        self.paragraph(f"{sentence.strip().rstrip('. ')}.", label=f"{label}: ")

    def paragraph(self, sentence: str, indent: str = INDENT, style: str = "", label: str = "") -> None:
        self.console.print(paragraph(label, sentence, self.width, style=style, indent=indent))


def _times(group: Sequence[Recompile], function: str | None) -> int:
    return sum(recompile.function == function for recompile in group)
