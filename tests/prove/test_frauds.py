"""What would make a change look equal or faster that is not, planted in a program: each is caught, and by its name."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from breakscan.model.findings import Site
from breakscan.prove import faster as measure
from breakscan.prove.changed_code import UnseenKind
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.observation import ObservationKind
from breakscan.prove.original import running_original
from breakscan.prove.proof import Proof, ProofVerdict
from breakscan.prove.verify import Verifier
from breakscan.prove.worker import Candidate, UserProgram, Workers
from breakscan.report.measurements import observation_words
from breakscan.rulebook.config import load_settings
from breakscan.rulebook.library import load_library

pytestmark = pytest.mark.torch
SCRIPT = """\
import os
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(16, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.steps = 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.last = y = torch.relu(self.norm(self.fc(x)))
        self.seen = self.seen + 1
        if y.sum() > 0:
            y = y * 2
        return y

    def other(self, x):
        return x + 1


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net, backend="aot_eager")
for step in range(5):
    compiled(torch.randn(8, 16)).sum().backward()
"""
BRANCH = "        if y.sum() > 0:\n            y = y * 2\n"
WHERE = "        y = torch.where(y.sum() > 0, y * 2, y)\n"
BREAK = 16
"""The line of the branch."""

Prove = Callable[..., Proof]


@pytest.fixture(scope="module")
def prove(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prove]:
    """Proves the script with a piece of its text replaced."""
    folder = tmp_path_factory.mktemp("frauds")
    script, warm, library = folder / "train.py", folder / "warm", folder / "unused.py"
    script.write_text(SCRIPT, encoding="utf-8")
    library.write_text("x = 1\n", encoding="utf-8")
    (warm / "fxgraph").mkdir(parents=True)
    (warm / "fxgraph" / "graph").write_text("", encoding="utf-8")
    site = Site(str(script), BREAK, 12, BREAK, 23)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "ROUNDS", 12)
        patch.setattr(measure, "LONGEST", 3.0)
        rules = load_library(load_settings(folder).rule_folders)
        with (
            ForkServerProcess() as server,
            running_original(Workers(UserProgram((str(script),)), folder / "workers", server, rules)) as original,
        ):
            verifier = Verifier(original, [str(script)], lambda *_: None)

            def prove(old: str = "", new: str = "", *, path: Path = script) -> Proof:
                before = path.read_text(encoding="utf-8")
                assert old in before
                after = before.replace(old, new.replace("WARM", str(warm)), 1)
                texts = {str(path): (before, after)} if old else {}
                return verifier.prove(Candidate("it", texts=texts, targets=(site,) if "y" in old else ()))

            prove.library = library  # type: ignore[attr-defined]
            yield prove


@pytest.mark.slow
def test_an_honest_rewrite_is_equal(prove: Prove) -> None:
    proof = prove(BRANCH, WHERE)
    assert proof.verdict is not ProofVerdict.REJECTED, proof.reasons
    assert proof.outputs_equal
    assert proof.after
    assert (proof.before.breaks, proof.after.breaks) == (1, 0)
    assert (proof.before.graphs, proof.after.graphs) == (2, 1)


@pytest.mark.slow
def test_the_program_against_itself_is_no_faster(prove: Prove) -> None:
    proof = prove()
    assert proof.verdict in (ProofVerdict.NO_FASTER, ProofVerdict.TOO_NOISY), (proof.reasons, proof.ratio)


RETURN = "        return y\n"
DRAWN = "random numbers are drawn otherwise"
FRAUDS = {
    "other weights": (
        "torch.manual_seed(0)",
        "torch.manual_seed(1)",
        f"{DRAWN} before the first call: torch's CPU generator",
    ),
    "other order of random numbers": (
        "for step",
        "torch.rand(1)\nfor step",
        f"{DRAWN} before the first call: torch's CPU generator",
    ),
    "random numbers in the call": (
        RETURN,
        "        torch.rand(1)\n" + RETURN,
        f"eager, {DRAWN}: torch's CPU generator",
    ),
    "output changed by 1e-2": (BRANCH, WHERE + "        y = y + 1e-2\n", "eager, output differs by 0.01"),
    "one row changed by 1e-2": (
        BRANCH,
        WHERE + "        y = torch.cat([y[:-1], y[-1:] + 1e-2])\n",
        "eager, output differs by 0.01 at [7, ",
    ),
    "gradient": (BRANCH, WHERE.replace("y * 2", "y.detach() * 2"), "eager, the gradient of self.fc.weight"),
    "buffer changed": ("BatchNorm1d(16)", "BatchNorm1d(16, momentum=0.2)", "eager, self.norm.running_mean differs by"),
    "another tensor bound to an attribute": ("self.seen + 1", "self.seen + 2", "eager, self.seen differs by 1 "),
    "a tensor left behind": (RETURN, "        self.other_one = y.detach()\n" + RETURN, "eager, self.other_one"),
    "the history of a tensor left behind": (
        RETURN,
        "        self.last = self.last.detach()\n" + RETURN,
        "eager, self.last.requires_grad is unchanged after the call, not True",
    ),
    "attribute changed": (
        RETURN,
        "        self.steps += 1\n        return y + 0 * self.steps\n",
        "self.steps is 1 after the call, not unchanged",
    ),
    "a recompile a call": (
        RETURN,
        "        self.steps += torch.compiler.is_compiling()\n        return y + 0 * self.steps\n",
        "more times (",
    ),
    "unequal batch": ("randn(8, 16)", "randn(4, 16)", "args[0] has shape 4×16, not 8×16"),
    "the break is still there": ("if y.sum() > 0:", "if bool(y.sum() > 0):", f"train.py:{BREAK} is still there"),
    "an exception": ("return y\n", "raise ValueError('no')\n", "the program fails with it: ValueError: no"),
    "output changed in compiled code alone": (
        BRANCH,
        f"{WHERE}        y = y + 1e-2 * torch.compiler.is_compiling()\n",
        "compiled, output differs by 0.01",
    ),
    "no gradient in compiled code alone": (
        BRANCH,
        f"{WHERE}        y = y.detach() if torch.compiler.is_compiling() else y\n",
        "compiled, backward() fails: no part of the result requires a gradient",
    ),
    "another dtype": ("return y\n", "return y.double()\n", "output is float64, not float32"),
    "the program fails": ("torch.manual_seed(0)", "1 / 0", "ZeroDivisionError"),
}
"""What is replaced in the script, by what, and the reason for which that is rejected."""
FAST = ("output changed by 1e-2", "another tensor bound to an attribute")
"""One fraud of each kind runs always, the others in the nightly run."""


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one in FAST else pytest.mark.slow) for one in FRAUDS])
def test_a_fraud_is_rejected_by_name(prove: Prove, name: str) -> None:
    old, new, expected = FRAUDS[name]
    proof = prove(old, new)
    assert proof.verdict is ProofVerdict.REJECTED, proof.ratio
    assert any(expected in observation_words(reason) for reason in proof.reasons), proof.reasons
    assert proof.ratio is None


def test_other_weights_from_the_same_random_numbers_are_named(prove: Prove) -> None:
    """The runs start from the same weights all the same, so that their results say nothing."""
    doubled = "self.fc.weight.data *= 2\n        self.norm ="
    proof = prove("self.norm =", doubled)
    assert any(one.kind is UnseenKind.OUTSIDE and "self.fc.weight" in one.code for one in proof.unseen), proof
    assert proof.is_held_back


def test_code_that_does_not_run_was_not_tried(prove: Prove) -> None:
    proof = prove("        return x + 1\n", "        return x + 2\n")
    assert (proof.verdict, proof.reasons[0].kind) == (ProofVerdict.NOT_TRIED, ObservationKind.NOT_EXECUTED)


def test_a_rewrite_of_a_file_that_is_not_loaded_did_not_run(prove: Prove) -> None:
    proof = prove("x = 1", "x = 2", path=prove.library)  # type: ignore[attr-defined]
    assert proof.verdict is ProofVerdict.NOT_TRIED
    assert "the rewritten code did not run" in observation_words(proof.reasons[0])
    assert "unused.py was not loaded" in observation_words(proof.reasons[0])
