"""Values that differ before the first call, and that the call overwrites, such as memory of ``torch.empty``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from breakscan.fix.source_map import SourceMap
from breakscan.prove import faster as measure
from breakscan.prove.candidate import Candidate
from breakscan.prove.original import running_original
from breakscan.prove.verifier import Verifier
from breakscan.prove.worker import UserProgram
from breakscan.report.measurements import observation_words
from breakscan.rulebook.config import load_settings
from breakscan.rulebook.library import load_library

pytestmark = pytest.mark.torch

SCRIPT = """\
import numpy as np
import torch


def step(x, out, counts, array):
    y = x * 2
    out.copy_(y)
    counts.fill_(3)
    y = y + READ
    array[...] = 1
    return y + out


compiled = torch.compile(step, backend="aot_eager")
for _ in range(3):
    out = torch.full((8,), 4.0)
    counts = torch.full((2,), 4)
    array = np.full((2,), 4.0)
    compiled(torch.ones(8), out, counts, array)
"""


Prove = Callable[[str, str], list[str]]


@pytest.fixture(scope="module")
def prove(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prove]:
    """The reasons against a change of the program, which adds ``request.param`` to its result."""
    folder = tmp_path_factory.mktemp("overwritten")
    script = folder / "train.py"
    before = SCRIPT.replace("READ", request.param)
    script.write_text(before, encoding="utf-8")
    rules = load_library(load_settings(folder).rule_folders)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "ROUNDS", 4)
        patch.setattr(measure, "LONGEST", 1.0)
        with running_original(UserProgram((str(script),)), folder / "workers", rules, lambda *_: None) as original:
            verifier = Verifier(original, [str(script)], lambda *_: None)

            def reasons(old: str, new: str) -> list[str]:
                assert old in before
                after = before.replace(old, new)
                lines = {str(script): SourceMap.of_one_change(before, after)}
                proof = verifier.prove(Candidate("it", texts={str(script): (before, after)}, lines=lines))
                return [observation_words(one) for one in proof.reasons]

            yield reasons


@pytest.mark.parametrize("prove", ["0"], indirect=True)
class TestOverwritten:
    def test_need_not_be_the_same(self, prove: Prove) -> None:
        assert prove("4", "5") == []

    def test_a_change_that_reads_it_is_found(self, prove: Prove) -> None:
        assert any("args[1]" in reason for reason in prove("    out.copy_(y)\n", "    out.add_(y)\n"))


@pytest.mark.parametrize("prove", ["(1 if array[0] > 4.5 else 0)"], indirect=True)
def test_a_value_that_is_read_must_be_the_same(prove: Prove) -> None:
    assert prove("np.full((2,), 4.0", "np.full((2,), 5.0") == [
        "cannot be compared: other values before the first call: args[3]"
    ]
