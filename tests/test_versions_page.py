"""``docs/torch-versions.md`` says what the verdict ledgers say."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from breakscan.model.findings import Mode, Place, Verdict
from breakscan.model.torch_versions import SUPPORTED
from breakscan.rulebook.document import parse_rule
from breakscan.rulebook.ledger import ExampleRulings, Ledger, Ruling, digest
from tools.generate_versions_page import PAGE, Direction, changes, meaning, page, title

RULE = parse_rule(
    """\
+++
id = "BRK199"
name = "some-rule"
summary = "s"
message = "m"
why = "w"
instead = "i"
kind = "graph-break"

[[match]]
event = "branch"
+++
## Why
Because.

## Breaks
```python inputs=torch.ones(2)
def f(x):
    y = x.sin()
    return y.item()
```

```python inputs=torch.ones(2)
def f(x):
    y = x.sin()
    return y.tolist()
```

## Compiles
```python inputs=torch.ones(2)
def f(x):
    return x.sin()
```
""",
    Path("BRK199-some-rule.md"),
)
FIRST, SECOND, _ = RULE.examples
PLAIN, LOOP, FULL = (Mode.DEFAULT, Place.PLAIN), (Mode.DEFAULT, Place.LOOP), (Mode.FULLGRAPH, Place.PLAIN)
COMPILES, SPLITS, RAISES = Ruling(Verdict.COMPILES), Ruling(Verdict.SPLITS, ("GB0001",)), Ruling(Verdict.RAISES)


def ledger(rulings: dict[tuple[Mode, Place], Ruling], changed: str = "") -> Ledger:
    return Ledger("2.0", "3.11", {"BRK199": {FIRST.label: ExampleRulings(changed or digest(FIRST), None, rulings)}})


def test_the_page_is_what_the_tool_makes() -> None:
    """If it fails: ``python -m tools.generate_versions_page``."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_each_pair_of_neighbours_has_a_section() -> None:
    heads = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    assert heads == [f"## torch {before} → {after}" for before, after in pairwise(SUPPORTED)]


def test_what_differs_in_other_places_is_said() -> None:
    before = ledger({PLAIN: SPLITS, LOOP: SPLITS, FULL: RAISES})
    (gone,) = changes(before, ledger({PLAIN: COMPILES, LOOP: SPLITS, FULL: COMPILES}), [RULE])
    assert gone.direction is Direction.BETTER
    assert meaning(gone, "2.0", "2.1") == (
        "On 2.1 it compiles without a break; on 2.0 it breaks the graph. In a loop it still breaks the graph."
    )
    (elsewhere,) = changes(before, ledger({PLAIN: SPLITS, LOOP: SPLITS, FULL: COMPILES}), [RULE])
    assert elsewhere.direction is Direction.ELSEWHERE
    assert meaning(elsewhere, "2.0", "2.1") == "With `fullgraph=True`: raises → compiles."


def test_another_id_is_no_other_verdict() -> None:
    (one,) = changes(ledger({PLAIN: SPLITS}), ledger({PLAIN: Ruling(Verdict.SPLITS, ("GB0002",))}), [RULE])
    assert one.direction is Direction.ID


def test_an_example_with_another_text_is_not_compared() -> None:
    assert changes(ledger({PLAIN: SPLITS}, changed="0" * 12), ledger({PLAIN: COMPILES}), [RULE]) == []


def test_an_example_is_named_by_the_line_that_only_it_has() -> None:
    assert title(SECOND, RULE.examples) == "Breaks 2: `return y.tolist()`"
