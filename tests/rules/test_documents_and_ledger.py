"""Every rule document against the real Dynamo of the installed torch: the compiler is the referee."""

import pytest

torch = pytest.importorskip("torch")

from breakscan.model.findings import Mode, Place  # noqa: E402
from breakscan.model.torch_versions import PINNED, minor_version  # noqa: E402
from breakscan.recording.replay import disagreements, replay_example  # noqa: E402
from breakscan.rulebook.document import Rule  # noqa: E402
from breakscan.rulebook.ledger import digest, ledger_version_for, load_ledger  # noqa: E402
from breakscan.rulebook.library import load_library  # noqa: E402

pytestmark = pytest.mark.torch

INSTALLED = minor_version(torch.__version__)


def assert_agrees(rule: Rule, only_plain: bool) -> None:
    """With ``only_plain``, an example that the ledger holds with this text is not run again in loops, try and with, nor
    exported."""
    ledger = load_ledger(ledger_version_for(INSTALLED))
    for example in rule.examples:
        recorded = ledger.examples.get(rule.id, {}).get(example.label) if ledger.torch == INSTALLED else None
        unchanged = recorded is not None and recorded.digest == digest(example)
        known = only_plain and unchanged
        seen = replay_example(rule, example, [Place.PLAIN] if known else Place, export=not known)
        if minor_version(PINNED) == INSTALLED:
            assert disagreements(rule, seen, example.label) == []
        if recorded is not None and unchanged:
            verdicts = {where: ruling.verdict for where, ruling in seen.rulings.items()}
            assert verdicts == {where: recorded.rulings[where].verdict for where in verdicts}
            nested = {
                place: ruling.verdict for place, ruling in recorded.nested.items() if (Mode.DEFAULT, place) in verdicts
            }
            assert {place: ruling.verdict for place, ruling in seen.nested.items()} == nested


def is_measured(rule: Rule) -> bool:
    """Return True if the ledger of the installed torch holds all examples of a rule as they are."""
    ledger = load_ledger(ledger_version_for(INSTALLED))
    held = ledger.examples.get(rule.id, {})
    digests = {label: rulings.digest for label, rulings in held.items()}
    return ledger.torch == INSTALLED and digests == {one.label: digest(one) for one in rule.examples}


@pytest.mark.parametrize(
    "rule",
    [
        # Where nothing has changed, some rules show that the compiler is asked as it was; nightly, all do.
        pytest.param(rule, marks=pytest.mark.slow if place % 5 and is_measured(rule) else ())
        for place, rule in enumerate(load_library())
    ],
    ids=lambda rule: rule.id,
)
def test_compiler_agrees_with_the_document_and_the_ledger(rule: Rule) -> None:
    assert_agrees(rule, only_plain=True)


@pytest.mark.slow
@pytest.mark.parametrize("rule", load_library(), ids=lambda rule: rule.id)
def test_compiler_agrees_with_the_whole_ledger(rule: Rule) -> None:
    assert_agrees(rule, only_plain=False)
