"""The report of ``explain`` that people read: what it means, then where, then what to do."""

import shlex
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from breakscan.explanation.compilations import compile_time
from breakscan.explanation.explanation import Explanation, RankReport, rank_sentences
from breakscan.explanation.problems import Section, sections_of
from breakscan.model.findings import Severity
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.words import counted, place, position
from breakscan.report.console import INDENT, STYLES, code_text, heading, paragraph, print_page, report_console
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.summary import LONG_COMPILING, MANY, headline, made_lines, outcome_line, time_sentences
from breakscan.report.explain.tables import FINDINGS, LISTINGS, MOST_FUNCTIONS, difference_table, function_table
from breakscan.report.findings import FIX_HINT, behind_sentence
from breakscan.report.printable import printable

MOST_HINTS = 2
MOST_ENTRIES = 10  # entries of a section that are shown where it has many
WIDEST = 120


def write_explanation(report: ExplainReport, stream: TextIO) -> None:
    _Writer(report_console(stream), report).write(printable(report.explanation), report.tables)


class _Writer:
    def __init__(self, console: Console, report: ExplainReport) -> None:
        self.report = report
        self.again = f"{report.again} " if report.again else ""
        self.hidden = printable(report.hidden)
        self.missed = printable(report.missed)
        self.console = console
        self.width = min(console.width, WIDEST)
        self.explained: set[str] = set()
        self.advised: set[str] = set()
        self.last_advice: list[str] = []

    def write(self, explanation: Explanation, tables: Iterable[str]) -> None:
        self.console.print(Text("─" * self.width, "dim"))
        self.paragraph(outcome_line(explanation), indent="")
        style = "bold" if explanation.graphs else STYLES[Severity.ERROR]
        self.paragraph(headline(explanation), indent="", style=style)
        for sentence in time_sentences(explanation):
            self.paragraph(sentence, indent="")
        self.ranks(explanation.ranks)
        most = None if FINDINGS in tables else MOST_ENTRIES
        for section in sections_of(explanation.problems):
            self.section(section, most)
        if self.report.compared is not None:
            self.comparison(self.report.compared)
        if self.report.fixable:
            self.console.print()
            self.paragraph(FIX_HINT.format(self.report.fixable, "breaks"), indent="", style="dim")
        self.settings_hint(explanation)
        self.made(explanation, tables)
        if explanation.notices:
            self.console.print()
        for notice in explanation.notices:
            self.paragraph(f"Note: {notice.text}.", indent="", style="dim")

    def section(self, section: Section, most: int | None) -> None:
        """At most so many entries, unless only a few more are left."""
        self.console.print(heading(section.topic.value))
        shown = section.problems if len(section.problems) <= MANY else section.problems[:most]
        for problem in shown:
            self.problem(problem)
        if rest := len(section.problems) - len(shown):
            self.console.print()
            self.paragraph(f"{rest} more; {self.again}--show {FINDINGS} lists all.", style="dim")

    def comparison(self, compared: int) -> None:
        """Write which problems ``check`` has no finding for."""
        self.console.print(heading("Compared with breakscan check"))
        count = f"{compared - len(self.missed)} of {counted(compared, 'problem')}"
        found = f"It has findings for {count} of your code{', none for:' if self.missed else '.'}"
        self.paragraph(found if compared else "No problem is in a file of yours that has not changed since.", indent="")
        for problem in self.missed:
            self.paragraph("  ".join(filter(None, (position(problem.site), problem.what, problem.rule_words))))

    def ranks(self, report: RankReport | None) -> None:
        if report is None:
            return
        self.console.print(heading("Ranks"))
        for sentence in rank_sentences(report):
            self.paragraph(sentence, indent="")
        if (table := difference_table(report)) is not None:
            print_page(table, self.console, self.width)

    def made(self, explanation: Explanation, tables: Iterable[str]) -> None:
        """Write a line for each topic on what was compiled, and the tables that were asked for."""
        lines = list(made_lines(explanation))
        wanted = set(tables)
        if lines:
            self.console.print(heading("What was compiled"))
        for label, sentence in lines:
            self.labelled(label, sentence)
        if explanation.compile_seconds >= LONG_COMPILING and "compiles" not in wanted:
            table = function_table(compile_time(explanation.compiles), MOST_FUNCTIONS)
            if table is not None:
                print_page(table, self.console, self.width)
                self.console.print()
        there = [word for word, (is_there, _) in LISTINGS.items() if is_there(explanation)]
        if lines and there and not wanted:
            self.paragraph(f"{self.again}--show {','.join(there)} lists what there is.", style="dim")
        for word, (_, makers) in LISTINGS.items():
            if word in wanted and word in there:
                for page in (make(explanation) for make in makers):
                    if page is not None:
                        print_page(page, self.console, self.width)
            elif word in wanted:
                self.console.print()
                self.paragraph(f"No {word} were recorded.", indent="")

    def problem(self, problem: Problem) -> None:
        self.head(problem)
        if problem.code and problem.kind not in (ProblemKind.RECOMPILES, ProblemKind.FUNCTION):
            self.code(problem)
        if problem.kind is ProblemKind.RECOMPILES:
            self.paragraph(f"{problem.why}.")
        elif problem.why not in self.explained:
            self.labelled("Why", problem.why)
        for sentence in problem.consequences:
            self.paragraph(sentence)
        if problem.price and problem.takes:
            self.labelled("Takes", problem.takes)
        if hidden := self.hidden.get(problem.site):
            self.paragraph(behind_sentence(hidden))
        if problem.called_from:
            self.paragraph(f"Called from {', '.join(map(place, problem.called_from))}.")
        texts = [remedy.text for remedy in problem.remedies]
        advice = [text for text in texts if text not in self.advised]
        if problem.kind is ProblemKind.RECOMPILES and texts and texts[0] not in advice:
            advice = ["as above"] if texts == self.last_advice else [texts[0], *advice]
        # Where the best remedy stands above, the others are no better than it.
        is_above = bool(advice) and advice[0] in texts[1:]
        for number, text in enumerate(advice):
            self.labelled("Or" if number or is_above else "Instead", text)
        for hint in problem.hints[:MOST_HINTS]:
            self.labelled("Hint", hint)
        # A rule is named at each of its sites, and says the same at each.
        self.advised.update(texts)
        self.last_advice = texts
        if problem.rule:
            self.explained.add(problem.why)

    def settings_hint(self, explanation: Explanation) -> None:
        """The command that tries all settings at once."""
        problems = [one for section in sections_of(explanation.problems) for one in section.problems]
        tried = [(one, remedy.arguments) for one in problems for remedy in one.remedies if remedy.arguments]
        if tried:
            options = dict.fromkeys(option for _, arguments in tried for option in arguments)
            count = counted(len({id(one) for one, _ in tried}), "problem")
            command = shlex.join(["breakscan", "verify", *options, *explanation.argv])
            self.console.print()
            self.paragraph(f"'{command}' tries the settings for {count}.", indent="", style="dim")

    def head(self, problem: Problem) -> None:
        style = f"not bold {STYLES[problem.severity]}"
        text = Text(f"\n{position(problem.site)}", "bold").append(f"  {problem.what}", style)
        if problem.times:
            text.append(f" {problem.times}", style)
        rule = problem.rule_words
        inside = f"in {problem.function}" if problem.function else ""
        rest = Text("  ".join(filter(None, (rule, inside))), "not bold dim")
        rest.stylize("not dim bold", 0, len(rule))
        if problem.page:
            # Of a break that no rule knows, what happened leads to the page.
            linked, start = (rest, 0) if rule else (text, text.plain.index(problem.what))
            linked.stylize(f"link {problem.page}", start, start + len(rule or problem.what))
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

    def code(self, problem: Problem) -> None:
        """Where the file has not the line any more, or is not here, the line alone."""
        site, line = problem.site, problem.code
        lines = self.report.files.lines(site.path)
        text = code_text(lines, site, self.width, STYLES[problem.severity], context=False)
        if line is not None and line != "".join(lines[site.line - 1 : site.line]).strip():
            text = Text(f"{site.line:>6} │ ", "dim").append(line, "not dim")
            text.truncate(self.width, overflow="ellipsis")
        if text is not None:
            self.console.print(text)

    def labelled(self, label: str, sentence: str) -> None:
        self.paragraph(f"{sentence.strip().rstrip('. ')}.", label=f"{label}: ")

    def paragraph(self, sentence: str, indent: str = INDENT, style: str = "", label: str = "") -> None:
        self.console.print(paragraph(label, sentence, self.width, style=style, indent=indent))
