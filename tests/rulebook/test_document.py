"""Rule documents: what a good one gives, and what a malformed one says."""

from pathlib import Path

import pytest

from breakscan.model.findings import Kind, Severity
from breakscan.rulebook.document import Rule, RuleError, read_rule
from breakscan.rulebook.library import load_library

GOOD = """+++
id = "BRK199"
name = "made-up"
summary = "does a thing"
why = "because"
instead = "do another"
kind = "graph-break"

[match]
event = "call"
callee = ["time.time", "time.sleep"]
operand = "tensor"
arguments = [{ index = 1, name = "size", is = "absent" }]

[recorded]
gb = ["GB0007"]
text = ["module: time"]
+++
## Why
Words.

## Breaks
```python form=if inputs=torch.ones(2), 3
def f(x, n):
    return x
```

```python runtime
def f(x):
    return x
```

## Compiles
```python
def make_inputs():
    return (1,)

def f(x):
    return x
```
"""


def read(text: str, folder: Path) -> Rule:
    path = folder / "BRK199-made-up.md"
    path.write_text(text, encoding="utf-8")
    return read_rule(path)


def test_a_document_is_a_rule_with_examples(tmp_path: Path) -> None:
    rule = read(GOOD, tmp_path)
    assert (rule.id, rule.family, rule.kind, rule.severity) == ("BRK199", 1, Kind.GRAPH_BREAK, Severity.WARNING)
    assert rule.message == rule.summary == "does a thing"
    assert repr(rule) == f"<Rule BRK199 {rule.name}>"
    [pattern] = rule.match
    assert pattern.callee == ("time.time", "time.sleep")
    [wanted] = pattern.arguments
    assert (wanted.index, wanted.name, wanted.states) == (1, "size", ("absent",))
    first, second, third = rule.examples
    assert (first.label, first.form, first.inputs, first.line) == ("breaks/1", "if", "torch.ones(2), 3", 24)
    assert (second.label, second.static, second.inputs) == ("breaks/2", False, "torch.randn(4)")
    assert (third.label, third.breaks, third.inputs) == ("compiles/1", False, None)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ("+++\nid", "id", 1, None, "starts with a line '+++'"),
        ("]\n+++\n## Why", "]\n## Why", 1, None, "not closed"),
        ('name = "made-up"', "name = made-up", 3, None, "not valid TOML"),
        ('id = "BRK199"', 'id = "BRK99"', 2, "id", "is not a rule id"),
        ('id = "BRK199"', 'id = "BRK099"', 2, "id", "BRK099 is for rules of projects"),
        ('name = "made-up"', 'name = "Made Up"', 3, "name", "is not a rule name"),
        ('id = "BRK199"', 'id = "BRK198"', 2, "id", "must be called BRK198-made-up.md"),
        ('kind = "graph-break"', 'kind = "graphbreak"', 7, "kind", "did you mean graph-break?"),
        ('why = "because"', "", 1, "why", "required"),
        ('why = "because"', 'because = "why"', 5, "because", "unknown key (known: id, name"),
        ('summary = "does a thing"', 'summary = "a {thing}"', 1, "message", "unknown field {thing}"),
        ('event = "call"', 'event = "cal"', 10, "match.event", "must be one of branch"),
        ('callee = ["time', 'calee = ["time', 11, "match.calee", "did you mean callee?"),
        ('operand = "tensor"', 'operand = "tensr"', 12, "match.operand", "did you mean tensor?"),
        ('is = "absent"', 'is = "gone"', 13, "match.arguments.is", "unknown word 'gone'"),
        (', is = "absent"', "", 13, "match.arguments", "an argument needs what it is"),
        ('gb = ["GB0007"]', 'gb = ["GB7"]', 16, "recorded.gb", "is not a graph-break id"),
        ('text = ["module: time"]', 'text = ["("]', 17, "recorded.text", "not a regular expression"),
        ("def f(x, n):", "def f(x, n:", 24, None, "not valid Python"),
        ("inputs=torch.ones(2), 3", "inputs=torch.ones(", 23, None, "not valid Python"),
        ("```python runtime", "```python run", 28, None, "unknown word 'run'"),
        ("## Compiles", "## Compile", 40, None, "no Python example under a heading '## Compiles'"),
    ],
)
def test_a_malformed_document_names_file_line_and_key(
    old: str, new: str, line: int, key: str | None, says: str, tmp_path: Path
) -> None:
    assert old in GOOD
    with pytest.raises(RuleError) as caught:
        read(GOOD.replace(old, new, 1), tmp_path)
    assert (caught.value.line, caught.value.key) == (line, key)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{caught.value.path}:{line}:")


def test_an_unreadable_document_is_named(tmp_path: Path) -> None:
    path = tmp_path / "BRK199-made-up.md"
    path.write_bytes(b"+++\n\xff")
    with pytest.raises(RuleError, match="cannot be read"):
        read_rule(path)


def test_a_folder_of_ones_own_rules_joins_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "BRK001-made-up.md").write_text(GOOD.replace("BRK199", "BRK001"), encoding="utf-8")
    library = load_library((tmp_path,))
    assert library.get("made-up") is library.get("brk001")
    assert len(library) == len(load_library()) + 1


def test_kept_rules_are_those_of_the_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "rules" / "BRK199-made-up.md"
    document.parent.mkdir()
    document.write_text(GOOD, encoding="utf-8")
    monkeypatch.setattr("breakscan.rulebook.library.user_cache_path", lambda *_, **__: tmp_path / "cache")
    monkeypatch.setattr("breakscan.rulebook.library.shipped_rules", lambda: document.parent)
    load = load_library.__wrapped__
    first = [*load(), *load()]
    assert first == [read_rule(document)] * 2
    assert len(list((tmp_path / "cache").iterdir())) == 1
    document.write_text(GOOD.replace("does a thing", "does another"), encoding="utf-8")
    assert [rule.summary for rule in load()] == ["does another"]
    next((tmp_path / "cache").iterdir()).write_text('{"stamp": 1', encoding="utf-8")
    assert [rule.summary for rule in load()] == ["does another"]


def test_an_id_is_given_once(tmp_path: Path) -> None:
    for name in ("one", "other"):
        text = GOOD.replace("BRK199", "BRK001").replace("made-up", name)
        (tmp_path / f"BRK001-{name}.md").write_text(text, encoding="utf-8")
    with pytest.raises(RuleError, match="BRK001 is taken by"):
        load_library((tmp_path,))


@pytest.mark.parametrize("taken", ["BRK101", "BRK199", "BRK999"])
def test_an_id_of_ones_own_is_not_one_of_breakscan(tmp_path: Path, taken: str) -> None:
    (tmp_path / f"{taken}-made-up.md").write_text(GOOD.replace("BRK199", taken), encoding="utf-8")
    with pytest.raises(RuleError, match=f"{taken} may become an id of breakscan: .* from BRK001 to BRK099"):
        load_library((tmp_path,))


def test_a_document_under_another_name_is_not_overlooked(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("Our rules.\n", encoding="utf-8")
    (tmp_path / "BRK001-made-up.md").write_text(GOOD.replace("BRK199", "BRK001"), encoding="utf-8")
    load_library((tmp_path,))
    (tmp_path / "made-down.md").write_text(GOOD, encoding="utf-8")
    load_library.cache_clear()
    with pytest.raises(RuleError, match=r"made-down.md:1: is not read: the file of a rule is called ID-NAME.md"):
        load_library((tmp_path,))


@pytest.mark.parametrize(
    ("selector", "count"), [("BRK101", 1), ("branch-on-tensor", 1), ("brk10", 9), ("ALL", len(load_library()))]
)
def test_selectors(selector: str, count: int) -> None:
    assert len(load_library().select(selector)) == count


def test_a_selector_that_names_nothing_offers_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean branch-on-tensor"):
        load_library().select("branch-on-tensors")
