"""Reports about rules: the page of a rule, the table of all rules, JSON, and the result of trying a rule."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from breakscan.fix.registry import described
from breakscan.model.findings import Kind, Mode, Place, Site, Verdict
from breakscan.model.words import counted, position
from breakscan.report.console import print_page, report_console
from breakscan.report.findings import one_line
from breakscan.report.printable import printable, visible
from breakscan.rulebook.document import FAMILIES, Rule
from breakscan.rulebook.ledger import Ledger
from breakscan.source.paths import display_path

if TYPE_CHECKING:
    from breakscan.check.pipeline.rule_trial import RuleTrial


@dataclass(frozen=True, slots=True)
class RuleReport:
    """A rule and the verdicts of torch versions, the newest first."""

    rule: Rule
    ledgers: Sequence[Ledger]


@dataclass(frozen=True, slots=True)
class RuleListReport:
    """Rules with the verdicts of the targeted torch version.  ``compiled`` are those left out of ``rules`` because
    that version compiles what they find."""

    rules: Sequence[Rule]
    ledger: Ledger
    torch: str
    compiled: Sequence[Rule] = ()


PLACES = {Place.PLAIN: "plain", Place.LOOP: "in a loop", Place.TRY: "in a try", Place.WITH: "in a with"}
MODES = {
    Mode.DEFAULT: "default",
    Mode.FULLGRAPH: "fullgraph=True",
    Mode.EXPORT: "export",
    Mode.EXPORT_STRICT: "export, strict",
}

MODES_OF_KINDS = {Kind.GRAPH_BREAK: tuple(Mode), Kind.EXPORT: (Mode.EXPORT, Mode.EXPORT_STRICT)}

MEANING = {
    Verdict.COMPILES: "no break",
    Verdict.SPLITS: "a graph break here",
    Verdict.EAGER: "the whole function runs as plain Python (0 graphs)",
    Verdict.RECOMPILES: "compiles again on a later call",
    Verdict.RAISES: "an error",
    Verdict.WRONG: "another result than eager Python",
    Verdict.UNUSED: "nothing is ever compiled",
}
STYLES = {Verdict.COMPILES: "green", Verdict.EAGER: "bold red", Verdict.RAISES: "bold red", Verdict.WRONG: "bold red"}


def write_rule(report: RuleReport, stream: TextIO) -> None:
    """Writes the page of a rule, with the verdicts of each ledger, the newest version first."""
    rule = report.rule
    console = report_console(stream)
    width = min(console.width, 100)
    parts: list[RenderableType] = [
        Text.assemble((f"{rule.id} {rule.name}", "bold"), f": {rule.summary}"),
        Text(" · ".join(filter(None, (rule.kind.value, FAMILIES[rule.family], " ".join(rule.gb)))), "dim"),
        Text(),
        Markdown(rule.body, code_theme="ansi_dark"),
        Text(),
        _verdicts(rule, report.ledgers),
        *_rewrites(rule),
    ]
    print_page(Group(*parts), console, width)


def _rewrites(rule: Rule) -> list[RenderableType]:
    if not rule.rewrites:
        return []
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for one in rule.rewrites:
        table.add_row(one, Markdown(described(one)))
    return [Text(), Text("What 'breakscan fix' tries, in this order", "bold"), Padding(table, (0, 0, 0, 2))]


def _verdicts(rule: Rule, ledgers: Sequence[Ledger]) -> RenderableType:
    places = list(Place) if rule.kind is Kind.GRAPH_BREAK else [Place.PLAIN]
    modes = MODES_OF_KINDS.get(rule.kind, (Mode.DEFAULT,))
    table = Table("torch", "mode", box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    forms = list(dict.fromkeys(example.form for example in rule.examples if example.breaks))
    if len(forms) > 1:
        table.add_column("form")
    for place in places:
        table.add_column(PLACES[place])
    seen: set[Verdict] = set()
    for ledger in ledgers:
        for mode in modes:
            for form in forms:
                rulings = [ledger.ruling(rule.id, mode, place, form) for place in places]
                if not all(rulings):
                    continue
                verdicts = [ruling.verdict for ruling in rulings if ruling]
                seen.update(verdicts)
                shown = [Text(verdict.value, STYLES.get(verdict, "yellow")) for verdict in verdicts]
                table.add_row(ledger.torch, MODES[mode], *([form or "any"] if len(forms) > 1 else []), *shown)
    if not seen:
        return Text("No verdicts are recorded: 'breakscan rules replay' makes them with the installed torch.")
    heading = Text("What torch does with the examples that break", "bold")
    legend = Text(" · ".join(f"{verdict.value}: {words}" for verdict, words in MEANING.items() if verdict in seen))
    return Group(heading, Padding(table, (0, 0, 0, 2)), Padding(legend, (0, 0, 0, 2)))


def write_rules(report: RuleListReport, stream: TextIO) -> None:
    """Writes the table of rules, by family, with what the target torch does by default, plain and in a loop."""
    console = report_console(stream)
    ledger, torch = report.ledger, report.torch
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("rule", "name", "summary"):
        table.add_column(title, overflow="fold")
    table.add_column(f"torch {torch}" if ledger.torch == torch else f"torch {torch} (by {ledger.torch})")
    table.add_column("in a loop")
    family: int | None = None
    for rule in report.rules:
        if rule.family != family:
            if family is not None:
                table.add_row()
            family = rule.family
            table.add_row(Text(f"{family}xx", "bold"), Text(FAMILIES[family], "bold"))
        verdicts = (_verdict(ledger, rule, place) for place in (Place.PLAIN, Place.LOOP))
        table.add_row(rule.id, rule.name, rule.summary, *verdicts)
    print_page(table, console)
    if report.compiled:
        stream.write(f"\ntorch {torch} compiles what these find: {' '.join(rule.id for rule in report.compiled)}\n")


def _verdict(ledger: Ledger, rule: Rule, place: Place) -> Text:
    if place is not Place.PLAIN and rule.kind is not Kind.GRAPH_BREAK:
        return Text()
    ruling = ledger.ruling(rule.id, Mode.EXPORT if rule.kind is Kind.EXPORT else Mode.DEFAULT, place)
    return Text(ruling.verdict.value, STYLES.get(ruling.verdict, "yellow")) if ruling else Text("not replayed", "dim")


def write_rule_json(report: RuleReport, stream: TextIO) -> None:
    """Writes the rule as one JSON object, ASCII only, and a line end."""
    stream.write(json.dumps(rule_object(report.rule, report.ledgers), indent=2) + "\n")


def write_rules_json(report: RuleListReport, stream: TextIO) -> None:
    """Writes the rules as one JSON list, ASCII only, and a line end."""
    stream.write(json.dumps([rule_object(rule, [report.ledger]) for rule in report.rules], indent=2) + "\n")


def rule_object(rule: Rule, ledgers: Sequence[Ledger]) -> dict[str, Any]:
    """The rule as plain dictionaries and lists."""
    return {
        "rule": rule.id,
        "name": rule.name,
        "kind": rule.kind.value,
        "severity": rule.severity.value,
        "family": FAMILIES[rule.family],
        "summary": rule.summary,
        "why": rule.why,
        "instead": rule.instead,
        "gb": list(rule.gb),
        "rewrites": list(rule.rewrites),
        "verdicts": [
            {
                "torch": ledger.torch,
                "example": label,
                "mode": mode.value,
                "place": place.value,
                "verdict": ruling.verdict.value,
                "gb": list(ruling.gb),
            }
            for ledger in ledgers
            for label, example in ledger.examples.get(rule.id, {}).items()
            for (mode, place), ruling in example.rulings.items()
        ],
    }


MOST_NAMED = 5
"""Of the names that are called, where none is near."""


def write_trial(trial: RuleTrial, stream: TextIO) -> None:
    """Writes the findings in files, why there is none, and which examples contradict the rule."""
    result = printable(trial.result)
    for finding in result.findings:
        stream.write(f"{position(finding.site)}: {finding.rule} {one_line(finding)}\n")
    for error in result.errors:
        stream.write(f"{error.path}:{error.line}:{error.column}: not checked {error.message}\n")
    if result.files:
        stream.write(f"{trial.rule.id} {trial.rule.name}: {counted(len(result.findings), 'finding')} in ")
        stream.write(f"{counted(result.files, 'file')}\n")
    stream.writelines(f"  {line}\n" for line in _uncalled(trial))
    document = display_path(trial.rule.path, os.getcwd())
    for example in trial.missed:
        stream.write(f"{document}:{example.line}: {example.label} is not found, although it is under Breaks\n")
    for example in trial.mistaken:
        stream.write(f"{document}:{example.line}: {example.label} is found, although it is under Compiles\n")
    if not trial.rule.examples:
        stream.write("  The document has no examples, which would show whether it finds what it is for.\n")


def _uncalled(trial: RuleTrial) -> Iterator[str]:
    if trial.called is None or not trial.uncalled:
        return
    called: dict[str, tuple[Site, int]] = printable(dict(trial.called))
    anywhere = any(pattern.anywhere for pattern in trial.rule.match)
    for name in trial.uncalled:
        where = "" if anywhere else " in compiled code"
        near = next(iter(get_close_matches(name, called, 1)), None) or _of_the_same_end(name, called)
        hint = ""
        if near is not None:
            site, count = called[near]
            hint = f": did you mean {near} ({counted(count, 'call')}, the first at {position(site)})?"
        yield f"{visible(name)} is not called{where}{hint}"
    if called and not any(get_close_matches(name, called, 1) for name in trial.uncalled):
        names = sorted(called, key=lambda name: -called[name][1])
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        yield f"Called are {', '.join(names[:MOST_NAMED])}{more}"


def _of_the_same_end(name: str, called: dict[str, tuple[Site, int]]) -> str | None:
    """A name that differs only in what is before the last dot: where the function is imported from."""
    return next((one for one in called if one.rpartition(".")[2] == name.rpartition(".")[2]), None)
