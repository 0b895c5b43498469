"""Draws programs: a function ``f(x, y)`` around one place that breaks the graph, in many surroundings."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

TESTS = (
    *("x.sum() > 0", "a.sum() > 0", "x.any()", "not x.all()", "~x.any()", "~(x > 0).any()", "(a > 0).any()"),
    *("(x > 0).any() and x.max() > 1", "x.sum() > 0 or y.max() > 0", "torch.isnan(a).any()", "torch.isinf(x).any()"),
    *("x.argmax() == 0", "x.mean() > y.mean()", "x.add_(1).sum() > 0", "a.numel() > 2 and a.sum() > 0", "x[0] > 0"),
    *("not torch.isfinite(a).all()", "0 < a.sum() < 3", "a.abs().max() > 1", "x.sum().item() > 0", "torch.equal(x, y)"),
)
VALUES = (
    *("a * 2", "1 - a", "a - 1", "a + y", "a.roll(1, 0)", "torch.nn.functional.gelu(a)", "a.square()", "a", "y", "x"),
    *("a.clone()", "a[0]", "a.T", "-a", "a / 2", "a.float()", "torch.zeros_like(a)", "a.to(y.dtype)", "a.sqrt()"),
    *("a.max()", "a @ a", "torch.nan_to_num(a)", "a.clamp(0, 1)", "a.softmax(-1)", "a.sum(0)", "a.view(-1)", "a ** 2"),
    *(
        "a.abs()",
        "torch.where(a > 0, a, y)",
        "a.add_(1)",
        "a.detach()",
        "a.contiguous()",
        "torch.rand_like(a)",
        "a % 2",
    ),
    *("a.exp()", "a.log()", "a * y", "a.clamp(max=3)", "torch.full_like(a, 300)", "a.unsqueeze(0)", "a.bool()"),
)
NEW_A = (
    *("a = x", "a = x * 2", "a = x.sin()", "a = x.clone()", "a = x + y", "a = y", "a = x[:1]", "a = x.detach()"),
    *("a = torch.relu(x)", "a = x.to(torch.float32)", "a = x.half()", "a = x > 0", "a = x.long()", "a = x.T * 1"),
)
SITES = (
    "if {test}:\n    a = {value}",
    "if {test}:\n    b = {value}\nelse:\n    b = {other}",
    "b = {value} if {test} else {other}",
    "if {test}:\n    a = {value}\nelif {test2}:\n    a = {other}",
    "if {test}:\n    return {value}\nc = {other}\nreturn c",
    "if {test}:\n    return {value}\nreturn {other}",
    "if {test}:\n    b = {value}\n    c = {value2}\nelse:\n    b = {other}\n    c = a\nb = b if c is a else c",
    "b = {test}",
    "b = not ({test})",
    "assert {test}, 'no'",
    "if not ({test}):\n    raise ValueError(f'bad {{a.shape}}')",
    "m = a > 0\na[m] = {number}",
    "a[a.sum() > 0] = {number}",
    "b = a[a > 0].sum()",
    "b = a[a > 0].mean()",
    "b = (a > 0).nonzero()\nb = b.shape[0]",
    "b = len(a[a > 0])",
    "i = int(y.argmax())\nb = a[i]",
    "i = a.argmax().item()\nb = a[i]",
    "n = a.sum().item()\nb = a * n",
    "n = float(y.max())\nb = a.clamp(max=n)",
    "b = math.sqrt(a.sum())\nb = b * a",
    "class C:\n    n = 0\n\n    def __init__(self, v):\n        self.v = v\nb = C(a).v * 2 + C.n",
    "class C:\n    n = 0\nC.n += 1\nb = a * C.n",
    "c = torch.unique(y, return_counts=True)[1]\n{between}\nb = a.repeat_interleave(c)",
    "_, c = torch.unique(y, return_counts=True)\n{between}\nb = c.repeat_interleave(c)",
    "for i in range(2):\n    if {test}:\n        a = {value}",
    "a = a.cos()\nif {test}:\n    a = {value}\nreturn a.sin()",
    "a = a.float()\nb = a * 2 if {test} else a * 3",
    "a = a.float()\nif {test}:\n    b = a.relu()\nelse:\n    b = {value}\nb = b * 1",
    "a = x.float()\nc = a.exp()\nif {test}:\n    c = c + {value}\nreturn c * 2",
    "print(a.sum())\nb = a * 2",
    "import copy\nb = copy.deepcopy(a) * 2",
    "b = any(v > 0 for v in a)",
    "b = torch.tensor([1.0, 2.0]).tolist()\nb = a * b[0]",
    "for v in a.tolist():\n    y = y + v",
    "b = a\nb += {value}\nif {test}:\n    b = b * 2",
    "if {test}:\n    self.kept = {value}\nelse:\n    self.kept = {other}\nb = self.kept",
)
BETWEEN = ("pass", "c.add_(1)", "c = c * 1", "y.add_(1)")
AFTER = ("pass", "pass", "a.add_(1)", "x.mul_(2)", "y[0] = 1", "a = a * 1", "self.log.append(a)")
RETURNS = ("return a", "return b", "return a, b", "return a * 1, b", "return b, x", "return (a + 0, y)", "return None")
NUMBERS = ("0.0", "1", "-1", "300", "0.5", "1e9", "2")
AROUND = (
    *(
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "with torch.no_grad():",
        "with torch.inference_mode():",
        "for _ in range(2):",
        "if True:",
    ),
    "try:\n{body}\nexcept (RuntimeError, IndexError, TypeError):\n    b = a = x",
)
DECORATORS = ("", "", "", "@torch.no_grad()", "@torch.inference_mode()", "@decorated")
ANNOTATIONS = (
    "x, y",
    "x: torch.Tensor, y: torch.Tensor",
    "x: torch.Tensor, y: torch.Tensor",
    "x: torch.FloatTensor, y",
)

HEAD = """import math

import torch


def decorated(function):
    def called(*given):
        return function(*given)

    return called


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.kept = None
        self.log = []
        self.reads = []

    @property
    def scale(self) -> torch.Tensor:
        self.reads.append(1)
        return self.weight * 2

"""
CALLER = """

model = Model()


def f(x, y):
    {call}
"""
CALLS = (
    "return model(x, y)",
    "return model(x, y)",
    "made = model(x, y)\n    if torch.is_tensor(made) and not made.requires_grad:\n        made *= 0\n    return made",
    "with torch.no_grad():\n        return model(x, y)",
)


@dataclass(frozen=True)
class Program:
    number: int
    text: str


def indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else line for line in text.split("\n"))


def draw(number: int, seed: int) -> Program:
    """The program of a number; the same for the same seed."""
    random = Random(f"{seed} {number}")
    values = (*VALUES, "self.weight * a", "self.scale * a")
    site = random.choice(SITES).format(
        test=random.choice(TESTS),
        test2=random.choice(TESTS),
        value=random.choice(values),
        value2=random.choice(values),
        other=random.choice(values),
        number=random.choice(NUMBERS),
        between=random.choice(BETWEEN),
    )
    around = random.choice(AROUND)
    body = f"{site}\n{random.choice(AFTER)}"
    if "{body}" in around:
        body = around.format(body=indented(body, 4))
    elif around:
        body = f"{around}\n{indented(body, 4)}"
    lines = ["b = x", random.choice(NEW_A), *([random.choice(NEW_A)] if random.random() < 0.2 else []), body]
    lines.append(random.choice(RETURNS))
    method = f"{random.choice(DECORATORS)}\ndef forward(self, {random.choice(ANNOTATIONS)}):\n"
    method = method.lstrip("\n") + indented("\n".join(lines), 4)
    return Program(number, HEAD + indented(method, 4) + CALLER.format(call=random.choice(CALLS)))
