"""The statement around a break decides between a split graph and a frame that runs eager."""

import textwrap

import pytest

from breakscan.model.findings import Place, Severity, Verdict

ITEM = "y = x.sum().item()"


def forward(body: str) -> str:
    return (
        "class Net(nn.Module):\n    def forward(self, x):\n" + textwrap.indent(body, " " * 8) + "\n        return x\n"
    )


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (ITEM, Place.PLAIN),
        (f"for i in range(2):\n    {ITEM}", Place.LOOP),
        (f"while x.shape[0] > 2:\n    {ITEM}", Place.LOOP),
        (f"try:\n    {ITEM}\nexcept ValueError:\n    pass", Place.TRY),
        (f"try:\n    pass\nexcept ValueError:\n    {ITEM}", Place.TRY),
        (f"try:\n    x = x + 1\nexcept ValueError:\n    pass\nelse:\n    {ITEM}", Place.PLAIN),
        (f"try:\n    x = x + 1\nfinally:\n    {ITEM}", Place.PLAIN),
        (f"with torch.no_grad():\n    {ITEM}", Place.PLAIN),
        (f"with torch.autocast('cpu'):\n    {ITEM}", Place.PLAIN),
        (f"with manager():\n    {ITEM}", Place.WITH),
        ("for i in range(2):\n    if i:\n        return x.sum().item()", Place.PLAIN),
        ("for i in range(int(x.sum())):\n    x = x + 1", Place.PLAIN),
        ("ys = [t.item() for t in x]", Place.PLAIN),
        ("ys = [t.item() for i, t in enumerate(x)]", Place.LOOP),
        ("ys = [x.sum().item() for key in self.names.keys()]", Place.LOOP),
        ("ys = [t.item() for t in reversed(x)]", Place.PLAIN),
        ("ys = sum(t.item() for t in x)", Place.LOOP),
        ("ys = {i: t.item() for i, t in enumerate(x)}", Place.LOOP),
    ],
)
def test_place(check, body: str, place: Place) -> None:
    findings = [f for f in check(forward(body)).findings if f.rule.startswith("BRK2")]
    assert [f.place for f in findings] == [place]
    eager = place is not Place.PLAIN
    assert findings[0].verdict is (Verdict.EAGER if eager else Verdict.SPLITS)
    assert findings[0].severity is (Severity.ERROR if eager else Severity.WARNING)


def test_a_method_that_calls_itself_in_a_loop_is_first_called_elsewhere(check) -> None:
    body = "if one_by_one:\n    for part in x.split(1):\n        self.forward(part)\nx = x * x.sum().item()"
    [finding] = check(forward(body).replace("(self, x)", "(self, x, one_by_one=False)")).findings
    assert (finding.verdict, finding.place) == (Verdict.SPLITS, Place.PLAIN)


def test_a_call_in_a_loop_gives_the_callers_frame_up(check) -> None:
    [finding] = check("""
        class Block(nn.Module):
            def forward(self, x):
                return x * x.sum().item()

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block() for _ in range(3)])

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return x
    """).findings
    assert (finding.function, finding.place, finding.via) == ("Block.forward", Place.LOOP, "Net.forward")
    assert finding.severity is Severity.ERROR


def test_a_decorator_that_calls_in_a_try_does_not_give_the_function_up(check) -> None:
    """Dynamo runs the wrapper eager and compiles the function by itself: torch 2.13 makes two graphs of it."""
    [finding] = check("""
        def tidied(function):
            @functools.wraps(function)
            def wrapper(self, *args, **kwargs):
                try:
                    return function(self, *args, **kwargs)
                finally:
                    self.calls = 1
            return wrapper

        class Net(nn.Module):
            @tidied
            def forward(self, x):
                y = x.sin()
                print("half")
                return y.cos()
    """).findings
    assert (finding.place, finding.verdict, finding.via) == (Place.PLAIN, Verdict.SPLITS, None)
