"""Whether Python needs what the code at a site reads from a tensor."""

import ast
from pathlib import Path

import pytest

from breakscan.model.findings import Site
from breakscan.rulebook.remedies import leaves_loop, line_of_record, line_of_test, needed_at
from breakscan.source.module import parse_module
from breakscan.source.spans import span

READ = "t.item()"
MASKED = "x[m]"


def at(body: str, wanted: str) -> tuple[object, Site]:
    text = "def f(self, x, m, t):\n    " + body.replace("\n", "\n    ") + "\n"
    module = parse_module(text, Path("m.py"), "m.py")
    node = next(one for one in ast.walk(module.tree) if isinstance(one, ast.expr) and ast.unparse(one) == wanted)
    return module, Site("m.py", *span(module, node))


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ("return x * t.item()", False),
        ("n = int(t.item()) + 1\nreturn torch.zeros(n)", False),
        ("return x[: t.item()]", False),
        ("for n in [t.item()]:\n    x = x.narrow(0, 0, n)", False),
        ("n = t.item()\nif n > 3:\n    x = x + 1", True),
        ("n = t.item()\nm = n + 1\nreturn x if m else -x", True),
        ("for _ in range(t.item()):\n    x = x + 1", True),
        ("return self.layers[t.item()](x)", True),
        ("return self.step(x, t.item())", True),
        ("self.size = t.item()", True),
        ("return f'{t.item()}'", True),
        ("import numpy as np\nn = t.item()\nreturn x + np.random.choice(np.arange(n))", True),
        ("import numpy as np\nn = t.item()\nreturn x + torch.from_numpy(np.arange(n))", False),
    ],
)
def test_a_number(body: str, needed: bool) -> None:
    assert (needed_at(*at(body, READ), returns=True, sized=False) is not None) is needed


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("print('norm', t.item())", 2),
        ("self.log.append(t.item())", 2),
        ("self.log.append(t.item())\nreturn self.log", None),
        ("keep(t.item())", None),
        ("torch.save(t.item(), x)", None),
    ],
)
def test_a_record(body: str, line: int | None) -> None:
    assert line_of_record(*at(body, READ)) == line


CALLED = """
def read(t):
    return t.sum(), t.item()

def use(x, n):
    return {}

def f(x, t):
    _, n = read(t)
    return use(x, n=n + 1)
"""


@pytest.mark.parametrize(
    ("use", "kind", "line"),
    [
        ("torch.zeros(n)", type(None), None),
        ("x if n > 3 else -x", ast.IfExp, 6),
        ("x.view(n) if x else n", ast.Module, None),
    ],
)
def test_a_number_is_followed_through_functions_of_the_file(use: str, kind: type, line: int | None) -> None:
    module = parse_module(CALLED.format(use), Path("m.py"), "m.py")
    node = next(one for one in ast.walk(module.tree) if isinstance(one, ast.expr) and ast.unparse(one) == READ)
    need = needed_at(module, Site("m.py", *span(module, node)), returns=False, sized=False)
    assert (type(need), need and line_of_test(module, need)) == (kind, line)


def test_a_number_that_another_compiled_function_gets() -> None:
    assert needed_at(*at("return t.item()", READ), returns=False, sized=False)


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ("return x[m].mean()", False),
        ("y = x[m]\nreturn y * y.cos()", False),
        ("y = x[m].sum()\nif y > 0:\n    return y", False),
        ("y = F.smooth_l1_loss(x[m], t[m])\nif y > 0:\n    return y", False),
        ("for row in x[m].sum(0):\n    t = t + row", True),
        ("for row in torch.sum(x[m], dim=0):\n    t = t + row", True),
        ("y = x[m]\nif y.numel() == 0:\n    return x", True),
        ("y = x[m] * 2\nif len(y) == 0:\n    return x", True),
        ("for row in x[m]:\n    t = t + row", True),
        ("a, b = x[m]\nreturn a", True),
        ("y = x[m].cumsum(0)\nreturn self.net(y)", True),
    ],
)
def test_a_tensor_of_unknown_size(body: str, needed: bool) -> None:
    assert (needed_at(*at(body, MASKED), returns=True, sized=True) is not None) is needed


@pytest.mark.parametrize(
    ("body", "leaves"),
    [
        ("for _ in x:\n    if t.item():\n        break", True),
        ("while True:\n    if t.item() or m:\n        return x", True),
        ("for _ in x:\n    if t.item():\n        x = x + 1", False),
        ("for _ in x:\n    if m:\n        t.item()\n        break", False),
        ("if t.item():\n    return x", False),
    ],
)
def test_a_test_that_leaves_a_loop(body: str, leaves: bool) -> None:
    assert leaves_loop(*at(body, READ)) is leaves
