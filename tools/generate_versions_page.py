"""Writes ``docs/torch-versions.md`` from the verdict ledgers: what changed between neighbouring versions of torch.

``python -m tools.generate_versions_page``.  No example is run.  ``tests/test_versions_page.py`` fails where the page
differs from what this makes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby, pairwise
from pathlib import Path

from breakscan.model.findings import Mode, Place, Verdict
from breakscan.model.torch_versions import NESTED
from breakscan.model.words import counted
from breakscan.report.findings import MODE_WORDS
from breakscan.report.rules import PLACES
from breakscan.rulebook.document import Example, Rule
from breakscan.rulebook.ledger import Ledger, Ruling, digest, load_ledger, measured_versions
from breakscan.rulebook.library import load_library

PAGE = Path(__file__).parents[1] / "docs" / "torch-versions.md"
WIDTH = 70
"""Lines of examples are cut here."""

Cell = tuple[Mode, Place]
AS_IT_STANDS: Cell = (Mode.DEFAULT, Place.PLAIN)

PHRASES = {
    Verdict.COMPILES: "compiles without a break",
    Verdict.SPLITS: "breaks the graph",
    Verdict.EAGER: "runs as plain Python, with the whole function around it",
    Verdict.RECOMPILES: "compiles again on a later call",
    Verdict.RAISES: "fails with an error",
    Verdict.WRONG: "gives another result than eager Python",
    Verdict.UNUSED: "is never compiled",
}


EXPORTS = {Mode.EXPORT: "in an export", Mode.EXPORT_STRICT: "in a strict export"}


class Direction(Enum):
    """The change of an example; the value is a heading of the page."""

    BETTER = "Compiles now"
    WORSE = "No longer compiles"
    OTHER = "Another verdict"
    ELSEWHERE = "Only in some places"
    ID = "Only the break id"


@dataclass(frozen=True)
class Change:
    """An example whose verdict or break ids differ between two versions; ``cells`` are those that differ."""

    rule: Rule
    example: Example
    before: Mapping[Cell, Ruling]
    after: Mapping[Cell, Ruling]
    cells: tuple[Cell, ...]

    @property
    def main(self) -> Cell:
        """The example as it stands; that of an export rule is only exported."""
        return AS_IT_STANDS if AS_IT_STANDS in self.before else (Mode.EXPORT, Place.PLAIN)

    @property
    def direction(self) -> Direction:
        before, after = self.before[self.main].verdict, self.after[self.main].verdict
        if before is not after:
            better = {Verdict.COMPILES: Direction.WORSE}.get(before, Direction.OTHER)
            return Direction.BETTER if after is Verdict.COMPILES else better
        return Direction.ELSEWHERE if self.verdict_cells else Direction.ID

    @property
    def verdict_cells(self) -> list[Cell]:
        return [cell for cell in self.cells if self.before[cell].verdict is not self.after[cell].verdict]


def changes(before: Ledger, after: Ledger, rules: Iterable[Rule]) -> list[Change]:
    """The examples that changed, of those that both versions ran as they stand in the documents now."""
    found = []
    for rule in rules:
        for example in rule.examples:
            old, new = (ledger.examples.get(rule.id, {}).get(example.label) for ledger in (before, after))
            if old and new and old.digest == new.digest == digest(example):
                cells = tuple(c for c in old.rulings if c in new.rulings and old.rulings[c] != new.rulings[c])
                if cells:
                    found.append(Change(rule, example, old.rulings, new.rulings, cells))
    return found


def title(example: Example, others: Sequence[Example]) -> str:
    """``Breaks 2``, with the first line in a function that no other example of the rule has."""
    section, number = example.label.split("/")
    known = {line for other in others if other is not example for line in _lines(other)}
    own = [line for line in _lines(example) if line not in known] or list(_lines(example))
    code = own[0] if len(own[0]) <= WIDTH else f"{own[0][:WIDTH]}…"
    quote = "``" if "`" in code else "`"
    return f"{section.capitalize()} {number}: {quote}{code}{quote}"


def _lines(example: Example) -> Iterator[str]:
    tree = ast.parse(example.source)
    texts = example.source.splitlines()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inner: list[ast.AST] = [f for f in functions if f.name not in ("make_inputs", "make_calls", "__init__")] or [tree]
    numbers = {node.lineno for f in inner for node in ast.walk(f) if isinstance(node, ast.stmt) and node not in inner}
    return (texts[number - 1].strip() for number in sorted(numbers))


def meaning(change: Change, before: str, after: str) -> str:
    """The meaning of the change for code like the example."""
    old, new = change.before[change.main].verdict, change.after[change.main].verdict
    parts = []
    cells = change.verdict_cells
    if old is not new:
        parts.append(f"On {after} it {PHRASES[new]}; on {before} it {PHRASES[old]}.")
        cells = [cell for cell in cells if _goes_another_way(change, cell)]
        kept = [cell for cell in change.before if cell not in change.verdict_cells and not cell[0].exports]
        stays = [cell for cell in kept if _goes_another_way(change, cell)]
        parts += [f"{where[0].upper()}{where[1:]} it still {phrase}." for phrase, where in _same(change, stays)]
    for words, group in groupby(sorted(cells, key=lambda c: _step(change, c)), key=lambda c: _step(change, c)):
        where = _where(list(group))
        parts.append(f"{where[0].upper()}{where[1:]}: {words}.")
    return " ".join(parts)


def _goes_another_way(change: Change, cell: Cell) -> bool:
    """True if a cell gains or loses the break where the example as it stands does not, or the other way round."""
    pairs = [
        [ledger[c].verdict is Verdict.COMPILES for ledger in (change.before, change.after)] for c in (cell, change.main)
    ]
    return pairs[0] != pairs[1]


def _same(change: Change, cells: list[Cell]) -> Iterator[tuple[str, str]]:
    phrases = {cell: PHRASES[change.after[cell].verdict] for cell in cells}
    for phrase in dict.fromkeys(phrases.values()):
        yield phrase, _where([cell for cell in cells if phrases[cell] == phrase])


def _step(change: Change, cell: Cell) -> str:
    return f"{change.before[cell].verdict.value} → {change.after[cell].verdict.value}"


def _where(cells: list[Cell]) -> str:
    """``in a loop and in a try``, ``with `fullgraph=True```, ``in an export``."""
    parts = []
    for mode in Mode:
        places = [PLACES[place] for m, place in cells if m is mode and place is not Place.PLAIN]
        everywhere = len(places) == len(Place) - 1
        if mode.exports and any(m is mode for m, _ in cells):
            parts.append(EXPORTS[mode])
        elif mode is Mode.FULLGRAPH and any(m is mode for m, _ in cells):
            parts.append(
                f"with `{MODE_WORDS[mode]}`" + ("" if everywhere or not places else f" {' and '.join(places)}")
            )
        elif places:
            parts.append(" and ".join(places))
    return ", and ".join(parts)


def _verdict(ruling: Ruling) -> str:
    return " ".join([ruling.verdict.value, *ruling.gb])


def _ids(change: Change, rulings: Mapping[Cell, Ruling]) -> str:
    cell = change.main if change.main in change.cells else change.cells[0]
    return " ".join(rulings[cell].gb) or "none"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)]


def _rows(found: list[Change], before: str, after: str, direction: Direction) -> list[str]:
    chosen = [change for change in found if change.direction is direction]
    if not chosen:
        return []
    ids_only = direction is Direction.ID
    rows = []
    for change in chosen:
        rule = f"[{change.rule.id}](../rules/{change.rule.path.name}) {change.rule.name}"
        example = title(change.example, change.rule.examples)
        if ids_only:
            rows.append((rule, example, _ids(change, change.before), _ids(change, change.after)))
        else:
            old, new = (_verdict(rulings[change.main]) for rulings in (change.before, change.after))
            rows.append((rule, example, f"{old} → {new}", meaning(change, before, after)))
    heads = ("rule", "example", before, after) if ids_only else ("rule", "example", "verdict", "what it means")
    heading = direction.value if ids_only else f"{direction.value} on {after}"
    return [f"### {heading}", "", *_table(heads, rows), ""]


def pair(before: Ledger, after: Ledger, rules: Sequence[Rule]) -> list[str]:
    """The section on two neighbouring versions."""
    found = changes(before, after, rules)
    counts = [f"{sum(c.direction is d for c in found)} {words}" for d, words in COUNTED.items()]
    examples = sum(len(rule.examples) for rule in rules)
    lines = [f"## torch {before.torch} → {after.torch}", ""]
    lines += [f"{len(found)} of {counted(examples, 'example')} changed: {', '.join(counts)}.", ""]
    for direction in Direction:
        lines += _rows(found, before.torch, after.torch, direction)
    return lines


COUNTED = {
    Direction.BETTER: "compile now",
    Direction.WORSE: "no longer compile",
    Direction.OTHER: "have another verdict",
    Direction.ELSEWHERE: "differ only in some places",
    Direction.ID: "have only another break id",
}

INTRODUCTION = """\
# What breaks in which torch

`python -m tools.generate_versions_page` writes this page from the verdict ledgers (`rules/ledger/`): what the compiler
of each version did with every example of every rule, on the CPU. Do not edit it.

- *Breaks 2* is the second example under *Breaks* in the rule document, with a line that only this example has. An
  example under *Compiles* is what the rule recommends: if it does not compile, the advice fails on that version.
- The verdict is that of the default mode, for the example as it stands. The last column also names what differs in a
  loop, a `try` or a `with`, with `fullgraph=True`, and in a plain or strict `torch.export.export`.
  [architecture.md](architecture.md#glossary) lists the verdicts.
- `GBnnnn` is torch's own id of the break. Another id for the same verdict matters if you search logs for it.
- To check code for a version that you have not installed: `breakscan check --target-torch 2.15`.
- `2.15+nested` is 2.15 with `torch._dynamo.config.nested_graph_breaks = True`: a break in a called function then splits
  the graph once, and not once more in each caller. A call in a loop or in a `try` still gives its caller up. `check`
  judges so where the files set it, or for `--target-torch 2.15+nested` (from `2.13+nested` on).
"""


def page() -> str:
    """The text of the page."""
    rules = list(load_library())
    newest = measured_versions()[-1]
    pairs = [*pairwise(measured_versions()), (newest, newest + NESTED)]
    lines = [line for before, after in pairs for line in pair(load_ledger(before), load_ledger(after), rules)]
    return "\n".join([INTRODUCTION, *lines]).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
