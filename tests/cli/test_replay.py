"""``breakscan rules replay`` through the installed torch."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

RULE = """+++
id = "BRK001"
name = "our-own-rule"
summary = "branch on a sum"
why = "so"
instead = "else"
kind = "graph-break"

[match]
event = "branch"
+++
## Breaks
```python
def f(x):
    y = x.sin()
    if y.sum() > 0:
        y = y + 1
    return y.cos()
```

## Compiles
```python
def f(x):
    return {compiles}
```
"""


@pytest.fixture
def own_rule(folder: Path) -> Callable[[str], None]:
    """A rule of the user's own in the folder, whose second example returns the given expression."""
    (folder / "pyproject.toml").write_text("[tool.breakscan]\nrules = ['lint']\n", encoding="utf-8")

    def write(compiles: str) -> None:
        from breakscan.rulebook.library import load_library

        (folder / "lint").mkdir(exist_ok=True)
        (folder / "lint" / "BRK001-our-own-rule.md").write_text(RULE.format(compiles=compiles), encoding="utf-8")
        load_library.cache_clear()

    return write


@pytest.mark.torch
class TestReplay:
    @pytest.fixture(autouse=True)
    def torch(self) -> str:
        torch = pytest.importorskip("torch")
        return ".".join(torch.__version__.split(".")[:2])

    def test_writes_the_ledger_of_the_installed_version(
        self, breakscan: Run, own_rule: Callable[[str], None], folder: Path, torch: str
    ) -> None:
        own_rule("x.sin()")
        done = breakscan("rules", "replay", "BRK001", "--output", "ledgers")
        path = folder / "ledgers" / f"{torch}.json"
        assert (done.status, done.out) == (
            0,
            f"1 rule, 2 examples on torch {torch}: the compiler agrees with the documents"
            f" · wrote {Path('ledgers') / path.name}\n",
        )
        modes = json.loads(path.read_text(encoding="utf-8"))["rules"]["BRK001"]["breaks/1"]["modes"]
        assert modes["default"]["plain"] == ["splits", "GB0170"]
        assert modes["default"]["loop"][0] == "eager"
        assert modes["fullgraph"]["plain"][0] == "raises"
        assert (modes["export"], modes["export-strict"]["plain"][0]) == ({"plain": ["raises"]}, "raises")
        assert breakscan("rules", "replay", "our-own-rule", "--check", "--output", "ledgers").status == 0

    def test_a_document_that_the_compiler_contradicts_is_status_1(
        self, breakscan: Run, own_rule: Callable[[str], None]
    ) -> None:
        own_rule("x + x.sum().item()")
        done = breakscan("rules", "replay", "BRK001", "--output", "ledgers")
        assert done.status == 1
        assert done.out.startswith("BRK001 compiles/1: torch says splits ")
        assert ": 1 disagreement · wrote " in done.out

    def test_an_export_that_crashes_the_process_names_the_example(
        self, breakscan: Run, own_rule: Callable[[str], None], folder: Path
    ) -> None:
        own_rule("__import__('os')._exit(3) if __import__('torch').compiler.is_exporting() else x.sin()")
        done = breakscan("rules", "replay", "BRK001", "--output", "ledgers")
        assert done.status == 2
        assert "BRK001-our-own-rule.md:" in done.err
        assert "compiles/1 cannot be exported: the process crashes" in done.err
        assert not (folder / "ledgers").exists()

    def test_check_writes_nothing_and_compares_with_the_ledger(
        self, breakscan: Run, own_rule: Callable[[str], None], folder: Path, torch: str
    ) -> None:
        own_rule("x.sin()")
        done = breakscan("rules", "replay", "BRK001", "--check", "--output", "ledgers")
        assert done.status == 1
        assert "BRK001 breaks/1: the ledger does not hold this version of the example\n" in done.out
        assert not (folder / "ledgers").exists()
        breakscan("rules", "replay", "BRK001", "--output", "ledgers")
        path = folder / "ledgers" / f"{torch}.json"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"plain": ["splits", "GB0170"]', '"plain": ["eager"]'), encoding="utf-8")
        done = breakscan("rules", "replay", "BRK001", "--check", "--output", "ledgers")
        assert done.status == 1
        assert "BRK001 breaks/1 (default, plain): the ledger says eager, Dynamo splits GB0170\n" in done.out

    def test_replaying_one_rule_keeps_the_others(
        self, breakscan: Run, own_rule: Callable[[str], None], folder: Path, torch: str
    ) -> None:
        own_rule("x.sin()")
        breakscan("rules", "replay", "BRK001", "--output", "ledgers")
        breakscan("rules", "replay", "BRK811", "--output", "ledgers")
        path = folder / "ledgers" / f"{torch}.json"
        assert set(json.loads(path.read_text(encoding="utf-8"))["rules"]) == {"BRK811", "BRK001"}

    def test_an_example_that_cannot_run_is_status_2(self, breakscan: Run, own_rule: Callable[[str], None]) -> None:
        own_rule("x.no_such_method()")
        done = breakscan("rules", "replay", "BRK001", "--output", "ledgers")
        assert (done.status, done.out) == (2, "")
        assert "BRK001-our-own-rule.md:23: compiles/1 fails without the compiler: AttributeError" in done.err


@pytest.mark.torch
def test_a_rule_that_is_not_known(breakscan: Run) -> None:
    done = breakscan("rules", "replay", "BRK190")
    assert (done.status, done.out) == (2, "")
    assert "no rule is called 'BRK190'" in done.err
