"""What ``torch.export`` does with examples of rules, on the installed torch."""

import pytest

torch = pytest.importorskip("torch")

from breakscan.model.findings import Mode, Place, Verdict  # noqa: E402
from breakscan.model.torch_versions import minor_version  # noqa: E402
from breakscan.recording.replay import rulings_on_export  # noqa: E402
from breakscan.rulebook.document import Example, Rule  # noqa: E402
from breakscan.rulebook.ledger import load_ledger  # noqa: E402
from breakscan.rulebook.library import load_library  # noqa: E402

pytestmark = pytest.mark.torch

PLAIN, STRICT = (Mode.EXPORT, Place.PLAIN), (Mode.EXPORT_STRICT, Place.PLAIN)


def example(rule_id: str, label: str) -> tuple[Rule, Example]:
    rule = next(rule for rule in load_library() if rule.id == rule_id)
    return rule, next(each for each in rule.examples if each.label == label)


@pytest.mark.parametrize(
    ("rule_id", "plain", "strict"),
    [
        ("BRK101", Verdict.RAISES, Verdict.RAISES),  # a branch on a tensor
        ("BRK401", Verdict.COMPILES, Verdict.COMPILES),  # print
        ("BRK405", Verdict.WRONG, Verdict.RAISES),  # random.random()
        ("BRK121", Verdict.RAISES, Verdict.COMPILES),  # assert
        ("BRK501", Verdict.COMPILES, Verdict.RAISES),  # a class definition
    ],
)
def test_an_export_is_run_and_compared(rule_id: str, plain: Verdict, strict: Verdict) -> None:
    rule, breaks = example(rule_id, "breaks/1")
    found = rulings_on_export(rule, breaks)
    assert (found[PLAIN].verdict, found[STRICT].verdict) == (plain, strict)
    ledger = load_ledger(minor_version(torch.__version__))
    recorded = ledger.examples[rule_id]["breaks/1"].rulings
    assert {mode: recorded[mode].verdict for mode in (PLAIN, STRICT)} == {PLAIN: plain, STRICT: strict}


def test_what_an_export_leaves_behind_disturbs_no_other() -> None:
    """This one leaves a dispatch key excluded, after which nothing else could be exported."""
    rule, broken = example("BRK611", "breaks/4")
    assert rulings_on_export(rule, broken)[PLAIN].verdict is Verdict.RAISES
    assert rulings_on_export(*example("BRK101", "compiles/1"))[PLAIN].verdict is Verdict.COMPILES
