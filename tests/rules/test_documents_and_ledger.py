"""Every rule document against the real Dynamo of the installed torch: the compiler is the referee."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from breakscan.rulebook.document import Rule  # noqa: E402
from breakscan.rulebook.ledger import ledger_version_for, load_ledger  # noqa: E402
from breakscan.rulebook.library import load_library  # noqa: E402
from breakscan.runtime.replay import disagreements, replay_example  # noqa: E402
from breakscan.torch_versions import version_key  # noqa: E402

pytestmark = pytest.mark.torch

WRITTEN_FOR = "2.13"
"""The version whose behaviour the documents describe; of others the ledger tells."""
INSTALLED = ".".join(map(str, version_key(torch.__version__)))


@pytest.mark.parametrize("rule", load_library(), ids=lambda rule: rule.id)
def test_compiler_agrees_with_the_document_and_the_ledger(rule: Rule) -> None:
    ledger = load_ledger(ledger_version_for(INSTALLED))
    for example in rule.examples:
        rulings = replay_example(rule, example)
        if INSTALLED == WRITTEN_FOR:
            assert disagreements(rule, rulings, example.label) == []
        if ledger.torch == INSTALLED:
            recorded = ledger.examples[rule.id][example.label]
            assert {k: v.verdict for k, v in rulings.rulings.items()} == {
                k: v.verdict for k, v in recorded.rulings.items()
            }
