"""Draws programs: a function ``f(x, y)`` around one place that breaks the graph, in many surroundings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from benchmarks.rewrite_fuzzer.sites import BETWEEN, BRANCHES_AND_READS, CHANGES, OTHERS

TESTS = (
    *("x.sum() > 0", "a.sum() > 0", "x.any()", "not x.all()", "~x.any()", "~(x > 0).any()", "(a > 0).any()"),
    *("(x > 0).any() and x.max() > 1", "x.sum() > 0 or y.max() > 0", "torch.isnan(a).any()", "torch.isinf(x).any()"),
    *("x.argmax() == 0", "x.mean() > y.mean()", "x.add_(1).sum() > 0", "a.numel() > 2 and a.sum() > 0", "x[0] > 0"),
    *("not torch.isfinite(a).all()", "0 < a.sum() < 3", "a.abs().max() > 1", "x.sum().item() > 0", "torch.equal(x, y)"),
    *("self.keep(a).sum() > 0", "y.max() > 1", "a.std() > 0", "(a > 0).any() or y[0] > 0", "not x.all()"),
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
    *("torch.ones_like(a, requires_grad=True)", "torch.nn.functional.relu(a, True)", "torch.pixel_shuffle(a, 1)"),
    *("torch.nn.functional.batch_norm(a, y, y, training=True)", "torch.add(a, 1, out=y)", "torch.mul(a, 2, **OPTIONS)"),
    *("self.tick(a)", "a * self.weight", "a.expand(3)", "a.flip(0)", "torch.linalg.norm(a)", "a * 1j", "a.real"),
)
NEW_A = (
    *("a = x", "a = x * 2", "a = x.sin()", "a = x.clone()", "a = x + y", "a = y", "a = x[:1]", "a = x.detach()"),
    *("a = torch.relu(x)", "a = x.to(torch.float32)", "a = x.half()", "a = x > 0", "a = x.long()", "a = x.T * 1"),
)
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
        "with torch.enable_grad():",
        "with torch.inference_mode():",
        "with torch.inference_mode(False):",
        "with torch.set_grad_enabled(False):",
        "with torch.autograd.detect_anomaly():",
        "with suspended():",
        "with torch.autocast('cpu'):",
        "for _ in range(2):",
        "if True:",
    ),
    "try:\n{body}\nexcept (RuntimeError, IndexError, TypeError):\n    b = a = x",
    "try:\n{body}\nexcept ValueError:\n    b = y\nelse:\n    self.log.append(a)",
    "try:\n{body}\nfinally:\n    self.log.append(a)",
    "with torch.no_grad():\n    with torch.enable_grad():\n        pass\n{body}",
    "with torch.enable_grad(), torch.no_grad():\n{body}",
    "torch.set_default_dtype(torch.float64)\ntry:\n{body}\nfinally:\n    torch.set_default_dtype(torch.float32)",
    "torch.use_deterministic_algorithms(True)\ntry:\n{body}\nfinally:\n    torch.use_deterministic_algorithms(False)",
    "for step in range(2):\n{body}\nelse:\n    b = (b, step)",
    "match len(a.shape):\n    case 1:\n        pass\n    case _:\n        a = a * 1\nif True:\n{body}",
    "def inner(a, b):\n{body}\n    return a, b\na, b = inner(a, b)",
    "def inner():\n    nonlocal a, b\n{body}\ninner()",
    "def parts(a, b):\n{body}\n    yield a\n    yield b\na, b = parts(a, b)",
    "def parts(a, b):\n    yield a\n{body}\n    yield b\nmade = parts(a, b)\na = next(made)\n"
    "with torch.no_grad():\n    a.mul_(2)\nb = next(made)",
    "async def go(a, b):\n{body}\n    return a, b\na, b = asyncio.run(go(a, b))",
    "match a:\n    case torch.Tensor() as a:\n        pass\nif True:\n{body}",
    "with contextlib.suppress(RuntimeError):\n{body}",
    "with contextlib.redirect_stdout(io.StringIO()) as shown:\n{body}\nb = (b, shown.getvalue())",
    "with torch.random.fork_rng():\n{body}",
    "kept = weakref.ref(a)\nif True:\n{body}\nb = (b, kept() is a)",
)
DECORATORS = (
    "",
    "",
    "",
    "@torch.no_grad()",
    "@torch.inference_mode()",
    "@torch.enable_grad()",
    "@decorated",
    "@logged",
    "@torch.inference_mode(mode=False)",
    "@torch.set_grad_enabled(False)",
    "@no_grad",
)
ANNOTATIONS = (
    "x, y",
    "x: torch.Tensor, y: torch.Tensor",
    "x: torch.Tensor, y: torch.Tensor",
    "x: torch.FloatTensor, y",
)

HEAD = """import asyncio
import collections
import contextlib
import copy
import dataclasses
import enum
import io
import logging
import math
import random
import sys
import time
import types
import warnings
import weakref

import numpy as np
import torch

LOG = logging.getLogger("program")
RATE = 0.0
COUNT = 0
OPTIONS = {}
TABLE = collections.defaultdict(lambda: 2)
FIRST = torch.nn.Linear(3, 3)
SECOND = torch.nn.Linear(3, 3)
"""
HELPERS = {
    "decorated": """
def decorated(function):
    def called(*given, **named):
        return function(*given, **named)

    return called
""",
    "logged": """
def logged(function):
    def called(self, *given, **named):
        result = function(self, *given, **named)
        self.log.append(result)
        return result

    return called
""",
    "compiled": """
def layer(x: torch.Tensor, rate: float):
    return x.sin() * rate


compiled = torch.compile(layer)
""",
    "no_grad": """
def no_grad(function):
    return function
""",
    "suspended": """
@contextlib.contextmanager
def suspended():
    with torch.no_grad():
        yield
""",
    "bump": """
def bump(t):
    t.add_(1)
    return True
""",
    "TWO": """
class Two:
    def __rmul__(self, other):
        TABLE["two"] += 1
        return other * 2


TWO = Two()
""",
    "note": """
def note(v):
    warnings.warn("noted", stacklevel=2)
    return v
""",
    "caller": """
def caller():
    return sys._getframe(1).f_code.co_name
""",
    "first": """
def take(x, n):
    return (x[0], n) if isinstance(x, list) else (x, n)


first = torch.compile(take)
""",
    "plain": """
def plain(v):
    return v * 2


STEPS = [plain]
torch.compile(plain)
""",
    "total": """
def scripted(function):
    return torch.jit.script(function)


@scripted
def total(v: torch.Tensor):
    found = 0.0
    for i in range(2):
        found += float(v.float().sum())
    return v * found
""",
    "integrate": """
def integrate(function, v):
    found = []
    for i in range(2):
        v = function(v) * v.sum().item()
        found.append(v.mean().item())
    return v, found
""",
    "pick": """
def pick(steps: torch.Tensor, t: torch.Tensor):
    hits = (steps == t).nonzero()
    return hits[0].item()
""",
    "grids": """
def grids(shapes):
    points = []
    for height, width in shapes:
        ys = torch.linspace(0.5, height - 0.5, height)
        xs = torch.linspace(0.5, width - 0.5, width)
        points.append((ys[:, None] / height + xs / width).flatten())
    return torch.cat(points)
""",
}
"""What a site or a decorator calls, by name: in the program only if it does."""
MODEL = """

class Model(torch.nn.Module):
    count = 0

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("freq", torch.ones(3), persistent=False)
        self.short = torch.ones(3)
        self.long = torch.ones(3) * 2
        self.steps = 0
        self.rate = 0.0
        self.kept = None
        self.log = []
        self.reads = []

    def keep(self, t):
        self.log.append(t)
        return t

    def hold(self, one):
        self.kept = self.kept or one
        return self.kept

    def tick(self, n):
        self.reads.append(1)
        return n

    @property
    def chance(self):
        self.reads.append(1)
        return 0.0

    def make(self, n):
        return torch.ones(3) * n

    @property
    def scale(self) -> torch.Tensor:
        self.reads.append(1)
        return self.weight * 2

"""
CALLER = """

model = Model()
{compiled}

def f(x, y):
    {call}
"""
CALLS = (
    "return model(x, y)",
    "return model(x, y)",
    "made = model(x, y)\n    if torch.is_tensor(made) and not made.requires_grad:\n        made *= 0\n    return made",
    "with torch.no_grad():\n        return model(x, y)",
    "return model.eval()(x, y)",
    "return model(y=y, x=x)",
)


LOOP = """
def layer(x):
    return x.sin() * 0.5


BASE = torch.ones(3)
for _ in range(2):
    BASE = torch.compile(layer)(BASE)
COUNT = BASE.tolist()
"""
OWN = """
class Other(Model):
    def compile(self, optimizer):
        COUNT.append(optimizer)


model = Other()
torch.compile(model)
"""
DEFAULTS = """
def scaled(x, n=2):
    return x * n


torch.compile(scaled)
COUNT = (scaled(torch.ones(3)).tolist(), scaled.__defaults__)
"""
COMPILED = (*[""] * 16, "torch.compile(model)\n", LOOP, OWN, DEFAULTS)
"""What is compiled at the top of the file: nothing, a module whose wrapper is thrown away, a function in a loop, a
module with a method of that name, a function whose defaults are read."""


@dataclass(frozen=True)
class Program:
    number: int
    text: str
    only: str | None = None
    """The rewrite that is tried alone: another one comes first otherwise."""


def indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else line for line in text.split("\n"))


def draw(number: int, seed: int) -> Program:
    """The program of a number; the same for the same seed."""
    random = Random(f"{seed} {number}")
    values = (*VALUES, "self.weight * a", "self.scale * a")
    # The rewrites of branches have the most obligations: one program in three is for them.
    sites = BRANCHES_AND_READS if random.random() < 1 / 3 else OTHERS
    site = random.choice(sites).format(
        test=random.choice(TESTS),
        test2=random.choice(TESTS),
        value=random.choice(values),
        value2=random.choice(values),
        other=random.choice(values),
        number=random.choice(NUMBERS),
        between=random.choice(BETWEEN),
        change=random.choice(CHANGES),
    )
    around = random.choice(AROUND)
    after = random.choice(AFTER)
    # Behind the last return, nothing runs, and rewrites of returns decline.
    returns = site.rpartition("\n")[2].startswith("return ")
    body = site if returns else f"{site}\n{after}"
    if "{body}" in around:
        body = around.format(body=indented(body, 4))
    elif around:
        body = f"{around}\n{indented(body, 4)}"
    lines = ["b = x", random.choice(NEW_A), *([random.choice(NEW_A)] if random.random() < 0.2 else []), body]
    returned = random.choice(RETURNS)
    if around or not returns:
        lines.append(returned)
    method = f"{random.choice(DECORATORS)}\ndef forward(self, {random.choice(ANNOTATIONS)}):\n"
    method = method.lstrip("\n") + indented("\n".join(lines), 4)
    helpers = "\n".join(text for name, text in HELPERS.items() if re.search(rf"(?<![.'\"]){name}\b", method))
    text = HEAD + ("\n" + helpers if helpers else "") + MODEL + indented(method, 4)
    only = "compiled-print" if "print(" in site and random.random() < 0.5 else None
    text += CALLER.format(call=random.choice(CALLS), compiled=random.choice(COMPILED))
    return Program(number, text, only)
