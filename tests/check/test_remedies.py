"""The remedies of findings: those that the code at the place decides on."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from breakscan.model.findings import CheckResult, Verdict
from breakscan.rulebook.library import load_library
from breakscan.rulebook.remedies import NESTED, finding_remedies

SPLIT = """
@torch.compile
def step(x, lengths: torch.Tensor):
    first, second = torch.split(x, lengths.tolist())
    return first.sum() - second.sum()
"""
TESTED = """
@torch.compile
def step(x: torch.Tensor):
    n = x.sum().item()
    return x if n > 3 else -x
"""
STOPS = """
@torch.compile
def generate(x: torch.Tensor):
    for _ in range(4):
        x = x.sin()
        if x.max() > 0.9:
            break
    return x
"""
COUNTS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x: torch.Tensor):
        self.steps += 1
        return x * self.steps

net = torch.compile(Net())
"""
CALLED = """
def scaled(x: torch.Tensor):
    return x if x.sum() > 0 else -x

@torch.compile
def step(x: torch.Tensor):
    return scaled(x.sin())
"""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (SPLIT, ["tensor-tolist", "capture_scalar_outputs"]),
        (TESTED, ["decide-outside"]),
        (STOPS, ["leave-loop"]),
        (COUNTS, ["counter-attribute", "allow_unspec_int_on_nn_module"]),
        (CALLED, ["ternary-on-tensor", "nested_graph_breaks"]),
        (CALLED.replace("x.sum() > 0", "globals()"), ["untraced-builtin"]),
        (f"torch._dynamo.config.nested_graph_breaks = True\n{CALLED}", ["ternary-on-tensor"]),
    ],
)
def test_the_code_decides(check: Callable[..., CheckResult], source: str, names: list[str]) -> None:
    (finding,) = check(source).findings
    remedies = finding_remedies(finding, load_library().get(finding.rule))
    assert [remedy.name for remedy in remedies] == names


def test_nested_graph_breaks_have_verdicts_of_their_own(check: Callable[..., CheckResult]) -> None:
    hooked = CALLED.replace("return x if x.sum() > 0 else -x", "torch.nn.ReLU().register_forward_hook(print)")
    setting = "torch._dynamo.config.nested_graph_breaks = True"
    results = [check(hooked), check(hooked, target_torch="2.13+nested"), check(f"{setting}\n{hooked}")]
    verdicts = [finding.verdict for result in results for finding in result.findings]
    assert verdicts == [Verdict.SPLITS, Verdict.RAISES, Verdict.RAISES]
    (finding,) = check(CALLED, target_torch="2.13+nested").findings
    assert NESTED not in finding.remedies
    patched = "with torch._dynamo.config.patch(nested_graph_breaks={}):\n    pass\n"
    (finding,) = check(patched.format(True) + hooked).findings
    assert finding.verdict is Verdict.RAISES
    (finding,) = check(patched.format(False) + hooked, target_torch="2.13+nested").findings
    assert finding.verdict is Verdict.SPLITS


def test_an_exit_that_only_saves_work_has_an_edit(check: Callable[..., CheckResult]) -> None:
    (finding,) = check(STOPS).findings
    (one,) = finding_remedies(finding, load_library().get(finding.rule))
    assert one.rewrites == ("early-exit",)


def test_with_fullgraph_numbers_are_captured_anyhow(check: Callable[..., CheckResult]) -> None:
    (finding,) = check(SPLIT).findings
    raising = finding_remedies(replace(finding, verdict=Verdict.RAISES), load_library().get(finding.rule))
    assert [remedy.name for remedy in raising] == ["tensor-tolist"]
