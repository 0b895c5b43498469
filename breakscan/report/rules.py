"""Reports about rules: the page of a rule, the table of all rules, and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from breakscan.fix.rewrites import described
from breakscan.model.findings import Kind, Mode, Place, Verdict
from breakscan.report.console import plain_table, print_page, report_console
from breakscan.report.findings import MODE_WORDS
from breakscan.report.printable import picked, write_json
from breakscan.rulebook.document import FAMILIES, Rule
from breakscan.rulebook.ledger import Ledger


@dataclass(frozen=True, slots=True)
class RuleReport:
    """A rule and the verdicts of torch versions, the newest first."""

    rule: Rule
    ledgers: Sequence[Ledger]


@dataclass(frozen=True, slots=True)
class RuleListReport:
    """Rules with the verdicts of the targeted torch version."""

    rules: Sequence[Rule]
    ledger: Ledger
    torch: str


PLACES = {Place.PLAIN: "plain", Place.LOOP: "in a loop", Place.TRY: "in a try", Place.WITH: "in a with"}
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
    table = plain_table(show_header=False)
    for one in rule.rewrites:
        table.add_row(one, Markdown(described(one)))
    return [Text(), Text("What 'breakscan fix' tries, in this order", "bold"), Padding(table, (0, 0, 0, 2))]


def _verdicts(rule: Rule, ledgers: Sequence[Ledger]) -> RenderableType:
    places = list(Place) if rule.kind is Kind.GRAPH_BREAK else [Place.PLAIN]
    modes = MODES_OF_KINDS.get(rule.kind, (Mode.DEFAULT,))
    forms = list(dict.fromkeys(example.form for example in rule.examples if example.breaks))
    table = plain_table("torch", "mode", *(["form"] if len(forms) > 1 else []), *map(PLACES.__getitem__, places))
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
                table.add_row(ledger.torch, MODE_WORDS[mode], *([form or "any"] if len(forms) > 1 else []), *shown)
    if not seen:
        return Text("No verdicts are recorded: 'breakscan rules replay' makes them with the installed torch.")
    heading = Text("What torch does with the examples that break", "bold")
    legend = Text(" · ".join(f"{verdict.value}: {words}" for verdict, words in MEANING.items() if verdict in seen))
    return Group(heading, Padding(table, (0, 0, 0, 2)), Padding(legend, (0, 0, 0, 2)))


def write_rules(report: RuleListReport, stream: TextIO) -> None:
    """Writes the table of rules, by family, with what the target torch does by default, plain and in a loop."""
    console = report_console(stream)
    ledger, torch = report.ledger, report.torch
    judged = f"torch {torch}" if ledger.torch == torch else f"torch {torch} (by {ledger.torch})"
    table = plain_table("rule", "name", "summary", judged, "in a loop")
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


def _verdict(ledger: Ledger, rule: Rule, place: Place) -> Text:
    if place is not Place.PLAIN and rule.kind is not Kind.GRAPH_BREAK:
        return Text()
    ruling = ledger.ruling(rule.id, Mode.EXPORT if rule.kind is Kind.EXPORT else Mode.DEFAULT, place)
    return Text(ruling.verdict.value, STYLES.get(ruling.verdict, "yellow")) if ruling else Text("not replayed", "dim")


def write_rule_json(report: RuleReport, stream: TextIO) -> None:
    write_json(rule_object(report.rule, report.ledgers), stream)


def write_rules_json(report: RuleListReport, stream: TextIO) -> None:
    write_json([rule_object(rule, [report.ledger]) for rule in report.rules], stream)


def rule_object(rule: Rule, ledgers: Sequence[Ledger]) -> dict[str, Any]:
    return {
        "rule": rule.id,
        **picked(rule, "name kind severity summary why instead gb rewrites"),
        "family": FAMILIES[rule.family],
        "verdicts": [
            {"torch": ledger.torch, "example": label, "mode": mode, "place": place, **picked(ruling, "verdict gb")}
            for ledger in ledgers
            for label, example in ledger.examples.get(rule.id, {}).items()
            for (mode, place), ruling in example.rulings.items()
        ],
    }
