"""The page of each rule, from its document and the verdict ledgers: what ``breakscan rule`` shows in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from breakscan.fix.rewrites import described
from breakscan.model.findings import Kind, Mode, Place, Verdict
from breakscan.report.findings import MODE_WORDS
from breakscan.report.rules import MEANING, MODES_OF_KINDS, PLACES
from breakscan.rulebook.document import FAMILIES, Rule
from breakscan.rulebook.ledger import Ledger
from breakscan.rulebook.library import Library
from tools.site.markdown_tables import code, table

INFO = re.compile(r"^```python +(?:form=\S+ *)?(?:inputs=)?(.*)$", re.MULTILINE)
"""The opening line of an example that says what it is called with."""


def path_of(rule: Rule) -> str:
    """Where the page of a rule is in the site."""
    return f"rules/{rule.path.name}"


def rule_page(rule: Rule, ledgers: Sequence[Ledger]) -> str:
    """The page of a rule.  ``ledgers`` begin with the newest version."""
    facts = [rule.kind.value, f"family {rule.family}xx: {FAMILIES[rule.family]}", *rule.gb]
    parts = [
        f"# {rule.id} {rule.name}\n",
        f"{rule.summary[0].upper()}{rule.summary[1:]}.\n",
        " · ".join(facts) + "\n",
        f"`# breakscan: ignore[{rule.id}] the reason` on the line suppresses it.\n",
        INFO.sub(_titled, rule.body.strip()) + "\n",
        *_rewrites(rule),
        *_verdicts(rule, ledgers),
    ]
    return "\n".join(parts)


def _titled(opening: re.Match[str]) -> str:
    inputs = opening[1].strip().replace('"', "'")
    return f'```python title="called with {inputs}"' if inputs else "```python"


def _rewrites(rule: Rule) -> Iterator[str]:
    if rule.rewrites:
        yield "## Rewrites\n"
        yield "What [`breakscan fix`](../fix.md) tries, in this order:\n"
        yield table(
            ("rewrite", "what it does"), ((code(one), described(one).replace("``", "`")) for one in rule.rewrites)
        )


def _verdicts(rule: Rule, ledgers: Sequence[Ledger]) -> Iterator[str]:
    places = list(Place) if rule.kind is Kind.GRAPH_BREAK else [Place.PLAIN]
    forms = list(dict.fromkeys(example.form for example in rule.examples if example.breaks))
    rows = []
    seen: set[Verdict] = set()
    for ledger in ledgers:
        for mode in MODES_OF_KINDS.get(rule.kind, (Mode.DEFAULT,)):
            for form in forms:
                rulings = [ledger.ruling(rule.id, mode, place, form) for place in places]
                verdicts = [ruling.verdict for ruling in rulings if ruling]
                if len(verdicts) == len(places):
                    seen.update(verdicts)
                    of_form = [form or "any"] if len(forms) > 1 else []
                    rows.append([ledger.torch, MODE_WORDS[mode], *of_form, *(verdict.value for verdict in verdicts)])
    if rows:
        yield "## Verdicts\n"
        yield "What each version of torch does with the examples that break:\n"
        heads = ["torch", "mode", *(["form"] if len(forms) > 1 else []), *(PLACES[place] for place in places)]
        yield table(heads, rows)
        yield "".join(f"- *{verdict.value}*: {words}\n" for verdict, words in MEANING.items() if verdict in seen)


def index_page(library: Library, ledgers: Sequence[Ledger]) -> str:
    """All rules, by family, with what each version does with the first example that breaks."""
    parts = [
        "# Rules\n",
        f"{len(library)} rules. The columns say what each version of torch does with an example of the rule, as it "
        "stands and compiled with the defaults; a rule about exports is exported. "
        "[What differs between versions](../torch-versions.md) has all examples, and [rule documents](../rules.md) "
        "says how to write your own.\n",
    ]
    versions = list(reversed(ledgers))
    for family, title in FAMILIES.items():
        rules = [rule for rule in library if rule.family == family]
        if rules:
            parts.append(f"## {family}xx {title}\n")
            rows = ([_link(rule), rule.summary, *(_verdict(rule, one) for one in versions)] for rule in rules)
            parts.append(table(["rule", "what it finds", *(one.torch for one in versions)], rows))
    return "\n".join(parts)


def _link(rule: Rule) -> str:
    return f"[{rule.id} {rule.name}]({rule.path.name})"


def _verdict(rule: Rule, ledger: Ledger) -> str:
    mode = Mode.EXPORT if rule.kind is Kind.EXPORT else Mode.DEFAULT
    ruling = ledger.ruling(rule.id, mode, Place.PLAIN)
    return ruling.verdict.value if ruling else "—"
