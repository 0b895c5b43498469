"""Facts in a method when another method of its object calls it."""

from collections.abc import Callable

import pytest

from breakscan.model.findings import CheckResult, Confidence

Check = Callable[..., CheckResult]

ADAPTER = """


class Adapter(nn.Module):
    def __init__(self, disabled):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.disabled = disabled
        self.kept = []
        self.flag = torch.ones(())

    @property
    def merged(self):
        return bool(self.kept)

    def unmerge(self):
        if not self.merged:
            print("nothing to do")
            return
        self.kept.pop()

    def forward(self, x):
{body}
        return self.layer(x)
"""


def in_forward(body: str) -> str:
    return ADAPTER.format(body="\n".join(f"        {line}" for line in body.splitlines()))


@pytest.mark.parametrize(
    "body",
    [
        "if self.merged:\n    self.unmerge()",
        "if self.disabled and self.merged:\n    self.unmerge()",
        "if not self.merged:\n    x = x + 1\nelse:\n    self.unmerge()",
        "if self.merged:\n    x = torch.sin(x)\n    self.unmerge()",
        "if not self.merged:\n    return x\nself.unmerge()",
        "if self.disabled:\n    if self.merged:\n        self.unmerge()\nelif self.merged:\n    self.unmerge()",
        "if self.merged:\n    if not self.merged:\n        print(x)",
    ],
)
def test_a_path_that_contradicts_itself_gives_no_finding(check: Check, body: str) -> None:
    assert check(in_forward(body)).findings == ()


@pytest.mark.parametrize(
    "body",
    [
        "self.unmerge()",
        "if self.merged:\n    self.unmerge()\nself.unmerge()",
        "if self.merged:\n    self.kept = []\n    self.unmerge()",
        "if self.merged:\n    self.kept.clear()\n    self.unmerge()",
        "if self.merged:\n    self.kept[0] = 1\n    self.unmerge()",
        "if self.merged:\n    del self.kept\n    self.unmerge()",
        "if self.merged or self.disabled:\n    self.unmerge()",
        "if self.disabled:\n    self.unmerge()",
        "if self.merged:\n    for _ in range(2):\n        self.unmerge()",
        "if self.merged:\n    x = x + 1\nself.unmerge()",
        "if self.merged:\n    try:\n        self.layer(x)\n    except ValueError:\n        self.unmerge()",
        "if self.merged:\n    match x.ndim:\n        case 1:\n            self.unmerge()",
    ],
)
def test_what_may_have_changed_since_the_test_is_not_known(check: Check, body: str) -> None:
    assert "BRK401" in {finding.rule for finding in check(in_forward(body)).findings}


def test_a_tensor_is_tested_again(check: Check) -> None:
    found = check(in_forward("if self.flag:\n    if self.flag:\n        x = x + 1")).findings
    assert [finding.rule for finding in found] == ["BRK101", "BRK101"]


CALLED_IN_TRAINING = """
class Codebook(nn.Module):
    def update(self, x):
        if x.sum() > 0:
            x = x + 1
        return x

    def show(self, x):
        print("codes", x)

    def forward(self, x):
        if self.training:
            x = self.update(x)
        if self.verbose:
            self.show(x)
{more}
        return x
"""


@pytest.mark.parametrize(("more", "conditional"), [("", True), ("        self.update(x)\n        self.show(x)", False)])
def test_a_condition_of_all_calls_reaches_the_findings(check: Check, more: str, conditional: bool) -> None:
    found = check(CALLED_IN_TRAINING.format(more=more)).findings
    assert {f.rule: f.confidence is Confidence.CONDITIONAL for f in found} == {
        "BRK101": conditional,
        "BRK401": conditional,
    }
