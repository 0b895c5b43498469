# ruff: noqa: E501
"""Looks for programs whose meaning ``breakscan fix --write`` changes.

    python benchmarks/safe_edits.py [--programs 2000] [--seed 0] [--keep FOLDER] [--all]

Random programs put code that has a safe rewrite among what could make it unsafe: other ways to a tensor (attributes,
lists, views, NumPy), questions that a copy answers differently, autocast and modes, names that are bound again, values
that a caller may give, hooks, class bodies, side effects in what is printed.  Each program that ``fix`` changes is run
before and after, eager, on the same inputs, in a process of its own each; results, arguments, attributes, aliases,
gradients, random numbers, printed text, log records, warnings and exceptions must be the same, bit by bit.  Programs
with a guard of ``is_compiling`` are run again as if they were compiled, and the text that they print is left out.

Programs that ``fix`` leaves alone do not count to ``--programs``.  ``--all`` also applies what is not safe, to show
that the generator finds something.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

HEAD = """\
import copy
import logging
import math
import random
import sys
import warnings
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

logger = logging.getLogger("program")
LOG = []
SAID = []
"""
CLASSES = '''
class Counted:
    """Its text has a side effect."""
    count = 0
    def __repr__(self):
        self.count += 1
        LOG.append(self.count)
        return f"Counted({self.count})"
    @property
    def size(self):
        self.count += 1
        return self.count
    def __pow__(self, other):
        LOG.append("pow")
        return torch.ones(())
    __rpow__ = __pow__

COUNTED = Counted()
def noisy(value):
    LOG.append("noisy")
    return value
def draws():
    return torch.rand(())
def numbers():
    yield from range(100)
NUMBERS = numbers()
'''

# What else may be at the top of a file.
TOP = [
    "pow = lambda a, b: a + b",
    "def setup():\n    global pow\n    pow = lambda a, b: a * b\nsetup()",
    "def setup():\n    global list, range\n    list = tuple\n    range = lambda *a: [7]\nsetup()",
    "from math import pow",
    "import builtins\nbuiltins.print = lambda *a, **k: LOG.append(a)",
    "print = lambda *a, **k: LOG.append(a)",
    "def print(*a, **k):\n    LOG.append(len(a))",
    "globals()['pow'] = lambda a, b: a - b",
    "globals().update(range=lambda *a: (3,))",
    "exec('def pow(a, b): return a / b')",
    "sys.modules[__name__].__dict__['pow'] = max",
    "setattr(sys.modules[__name__], 'print', lambda *a: LOG.append(a))",
    "vars()['list'] = set",
    "for pow in [max]: pass",
    "try:\n    from operator import pow\nexcept ImportError:\n    pass",
    "if True:\n    range = lambda n: [n]",
    "with warnings.catch_warnings() as pow:\n    pass\npow = min",
    "torch.set_default_dtype(torch.float64)",
    "torch.arange = lambda *a: torch.ones(2)",
    "torch.Tensor.__pow__ = lambda a, b: a * 3",
    "old_pow = torch.Tensor.__pow__\ndef new_pow(a, b):\n    LOG.append('pow')\n    return old_pow(a, b)\n"
    "torch.Tensor.__pow__ = new_pow",
    "torch.where = lambda *a: a[1]",
    "class Torch:\n    rand = staticmethod(lambda *a: torch.tensor(-1.0))\nfake = Torch()",
    "class Handler(logging.Handler):\n    def emit(self, record):\n        SAID.append(record.getMessage())\n"
    "logger.addHandler(Handler())\nlogger.setLevel(10)",
    "class Filter(logging.Filter):\n    def filter(self, record):\n        SAID.append(1)\n        return True\n"
    "logger.addFilter(Filter())\nlogger.setLevel(10)",
    "class Out:\n    def write(self, text):\n        SAID.append(text)\n    def flush(self):\n        pass\n"
    "sys.stdout = Out()",
]

# How a local name gets a tensor.  {a} is a tensor that is known already.
MADE = [
    "{a} * 1", "{a} + y", "{a}.clone()", "{a}", "{a}.view(-1)", "{a}[...]", "{a}.chunk(1)[0]", "{a}.contiguous()",
    "{a}.detach()", "{a}.to({a}.dtype)", "torch.zeros_like({a})", "{a}.float()", "{a}.long()", "{a}.double() * 1",
    "torch.relu({a})", "{a}.expand_as({a})", "{a}.T", "{a} if flag else y", "torch.as_tensor({a})", "-{a}", "{a} > 0",
    "{a}.reshape({a}.shape)", "torch.from_numpy({a}.detach().numpy())", "[{a}][0]", "dict(k={a})['k']", "({a})",
    "max([{a}], key=len)", "nn.Parameter({a}.detach().float())", "{a}.requires_grad_()", "{a}.squeeze()",
    "torch.atleast_1d({a})", "torch.Tensor.add({a}, 1)", "{a}.masked_fill({a} > 1, 0)", "{a}.half()", "{a}.abs_()",
    "torch.add({a}, 1, out=torch.empty_like({a}))", "KEPT.setdefault('k', {a} * 1)", "{a} @ y if {a}.dim() else {a}",
    "F.dropout({a}, 0.0)", "F.relu({a} * 1, inplace=True)", "{a}.bool()", "{a}.real", "{a}.type_as(y)",
    "sum([{a}])", "torch.cat([{a}.flatten()])", "torch.stack([{a}])[0]", "torch.where({a} > 0, {a}, y)",
]  # fmt: skip
NEW = [
    "{a} * 2.5", "{a} + 1", "{a} - y", "-{a}", "{a}.sin()", "{a}.exp()", "torch.tanh({a})", "{a}.float() * 1", "{a} / 2",
    "torch.sigmoid({a} * 1)", "{a}.sqrt()", "torch.zeros_like({a})", "{a}.clone()", "{a}.long() * 1", "{a}.cumsum(-1)",
    "torch.cat([{a}.flatten(), y.flatten()])", "{a}.softmax(-1)", "torch.maximum({a}, y)", "{a} > 0", "{a} // 1", "{a} ** 2",
    "{a}.relu()", "torch.ones(4)", "torch.rand(4)", "{a}.reciprocal()", "{a}.long() + 1", "~{a}.bool()", "1 / {a}",
    "torch.zeros({a}.shape, dtype={a}.dtype)", "{a}.double() - 1", "F.gelu({a})", "F.relu({a} * 1)", "{a}.cpu() * 1",
]  # fmt: skip
# Other ways to it, and what is done by them.
ALIASES = [
    "KEPT['a'] = {t}", "box = [{t}]", "self_.kept = {t}", "other = {t}", "view = {t}.view(-1)", "part, *_ = {t}.chunk(1)",
    "array = {t}.detach().numpy()", "later = lambda: {t}", "LOG.append({t})", "pair = ({t}, y)", "row = {t}[..., :1]",
    "def inner():\n    nonlocal {t}\n    {t} = {t} * 2\ninner()", "def inner(z={t}):\n    return z", "it = iter([{t}])",
    "class Inner:\n    held = {t}", "globals()['TENSOR'] = {t}", "swapped = copy.copy({t})", "(walrus := {t})",
    "{t}.extra = 3", "other = yet = {t}", "for other in [{t}]: pass", "with torch.no_grad(): other = {t}",
    "noisy({t})", "setattr(self_, 'kept', {t})", "self_.items.append({t})", "keep = partial(torch.add, {t})",
    "if {t}.requires_grad and not {t}.is_leaf: {t}.register_hook(lambda g: LOG.append(float(g.sum())))",
    "z = {t}.sin().sum()", "z = {t} * {t}", "z = {t}.exp()", "match {t}:\n    case other: pass",
]  # fmt: skip
CHANGES = [
    "KEPT['a'].add_(1)", "box[0].mul_(2)", "self_.kept.add_(1)", "other.sub_(3)", "view.neg_()", "part += 1",
    "array += 1", "later().add_(1)", "LOG[-1].zero_()", "pair[0].add_(1)", "row.fill_(5)", "Inner.held.add_(1)",
    "F.relu({t}, inplace=True)", "{t}[..., 0] = 9", "{t} += 1", "{t}.data = {t}.data + 1", "{t} = {t}.flip(0)",
    "torch.add({t}, 1, out={t})", "{t}.copy_(y)", "{t}.resize_(0)", "x.add_(1)", "k = 0.5", "p = p + 0.5",
    "{t} *= 2", "del {t}", "{t}, other = y, {t}", "{t}.set_(y)", "{t}.t_()", "{t}.unsqueeze_(0)", "m = ~m",
]  # fmt: skip
QUESTIONS = [
    "seen.append({t}.data_ptr() == x.data_ptr())", "seen.append({t} is x)", "seen.append({t}._is_view())",
    "seen.append({t}.is_contiguous())", "seen.append({t}.stride())", "seen.append({t}.requires_grad)",
    "seen.append({t}.is_leaf)", "seen.append({t}.storage_offset())", "seen.append({t}.is_set_to(x))",
    "seen.append(type({t}))", "seen.append({t}._version)", "seen.append(hasattr({t}, 'extra'))",
    "seen.append(str({t}.grad_fn)[:12])", "seen.append({t}.dtype)", "seen.append(len(locals()))",
    "seen.append(sys.getrefcount({t}))", "seen.append(bool({t}.sum() > 0))", "seen.append(torch.is_grad_enabled())",
    "seen.append(sorted(locals()))", "seen.append(torch.rand(()))", "seen.append(random.random())",
    "seen.append(other is {t})",
]  # fmt: skip

# What may be rewritten.  {n} is a new name.
SHOWN = [
    "{t}", "{t}.sum()", "{t}.sum().item()", "f'{{{t}.shape}}'", "len({t})", "{t}.mean() if flag else 0", "k", "p", "m",
    "COUNTED", "f'{{COUNTED}}'", "COUNTED.size", "noisy(1)", "draws()", "next(NUMBERS)", "{t}.add_(1)", "[{t}, y]",
    "torch.rand(())", "({n} := {t} * 2)", "{t}.tolist()", "{t}[0]", "{t}[9]", "1 / k", "seen", "LOG", "self_", "self_.kept",
    "[LOG.append(1)]", "{t}.relu_()", "str({t})", "'a', sep=''", "*seen", "x.grad", "random.random()", "KEPT",
    "KEPT.pop('a', 0)", "seen.append(1)", "list(NUMBERS)[:1]", "any(NUMBERS)", "map(noisy, [1])", "list(map(noisy, [1]))",
    "sorted([2, 1], key=noisy)", "'{{}}'.format(COUNTED)", "torch.add({t}, 1, out={t})", "F.relu({t}, True)",
    "{t}.backward", "lambda: 1", "max({t}.tolist(), key=noisy)", "str(COUNTED)", "repr([COUNTED])", "bool(flag)",
    "'%s' % COUNTED", "getattr(self_, 'lazy', 0)", "self_.lazy", "np.random.rand()", "torch.empty(()).normal_()",
    "(lambda: LOG.append(3))()", "{t}.sum(), file=sys.stderr", "{t}, flush=True", "torch.manual_seed(3)", "{t}.T",
    "id({t}) > 0", "sum(NUMBERS)", "torch.bernoulli({t}.sigmoid())", "F.dropout({t})", "math.sqrt(k)", "int(p)",
    "{t}.requires_grad_()", "y.detach_()", "iter(seen)", "zip(NUMBERS, [1])", "isinstance({t}, Tensor)", "{t}.numpy()",
]  # fmt: skip
REPORTS = [
    "print({s})", "print('v', {s})", "logger.info('%s', {s})", "logger.warning(f'{{{s}}}')", "print(f'{{{s}}}')",
    "logging.info({s})", "sys.stdout.write(str({s}))", "logger.debug({s}, 1)", "print({s}); seen.append(1)",
    "seen.append(print({s}))", "logger.info('%s', {s}); print('x')", "print(end={s})", "warnings.warn(str({s}))",
    "(print({s}), noisy(2))", "print({s}) or noisy(2)", "logger.log(20, {s})", "logger.exception({s})",
    "logger.isEnabledFor(20)", "logger.setLevel({s})", "logger.info('a', extra={{'b': {s}}})", "logger.error({s}, stack_info=True)",
]  # fmt: skip
POWERS = [
    "pow({t}, 2)", "pow({t}, k)", "pow(2, {t})", "pow(-{t}, 2)", "-pow({t}, 2)", "pow({t}, -k)", "pow({t}, -2).sum()",
    "pow({t} if flag else y, 2)", "pow({t}, 2 if flag else k)", "pow(base={t}, exp=2)", "pow(exp=noisy(2), base=noisy({t}))",
    "pow({t}, 2) ** 2", "2 ** pow({t}, 2)", "pow(pow({t}, 2), 2)", "pow({t}, 2)[0]", "pow(*({t}, 2))", "pow({t}, 2, None)",
    "pow({n} := {t}, 2)", "pow({t}, y)", "pow({t} + 1, y * 2)", "[pow({t}, i) for i in range(3)]", "pow({t}, COUNTED)",
    "pow(COUNTED, {t})", "pow({t}, lambda: 1)", "(pow({t}, 2))", "~pow({t}, 2)", "not pow({t}, 2).any()", "pow({t}, not k)",
    "pow(noisy({t}), noisy(2))", "pow(exp=2, base={t})", "(lambda: pow({t}, 2))()", "pow({t}, 2) if flag else pow(y, 2)",
    "pow({t}, 2,)", "pow({t}, p)", "math.pow({t}.sum(), 2)", "pow({t}, 0.5)", "pow(k, {t})", "f'{{pow({t}, 2)}}'",
    "pow(\n    {t},  # base\n    2,\n)", "pow(2.5, -{t})", "pow({t} > 0, 2)", "pow({t}, [1])", "pow({t}, True)",
    "pow({t}, x=2)", "pow(1 if flag else {t}, -2)", "pow({t} and y, 2)", "pow({t}, -{t})", "pow({t}, - - 2)", "pow({t}, +2)",
    "pow({t} @ y, 2)", "pow({t}[0], 1j)", "pow({t}, 2).add_(1)", "pow(sum([{t}]), 2)", "{t}.pow(2)", "-pow(-2, {t})",
]  # fmt: skip
RANGES = [
    "torch.arange(x.shape[0]).tolist()", "torch.arange({t}.size(0)).tolist()", "torch.arange(2, 5).tolist()",
    "torch.arange(len({t})).tolist()", "torch.arange(k).tolist()", "torch.arange({t}.size(0) - 1).tolist()",
    "torch.arange(0, x.numel()).tolist()", "torch.arange(x.dim()).tolist()", "torch.arange(1, x.dim()).tolist()",
    "torch.arange(-1).tolist()", "torch.arange(3.0).tolist()", "torch.arange(True).tolist()", "torch.arange(0).tolist()",
    "torch.arange(x.shape[0] // 2).tolist()", "torch.arange({t}.stride(0)).tolist()", "torch.arange(-2, 3).tolist()",
    "torch.arange(x.shape[-1], dtype=torch.float).tolist()", "torch.arange(*x.shape).tolist()", "torch.arange(-x.shape[0], 0).tolist()",
    "torch.arange(x.shape[0]).tolist()[::-1]", "torch.arange(x.shape[0] * 2).tolist() + [1]", "torch.arange(x.shape[0] / 2).tolist()",
    "torch.arange(3, 1).tolist()", "torch.arange(-0, 2).tolist()", "torch.arange({t}.ndim + k).tolist()", "torch.arange(10 ** 19).tolist()",
    "torch.arange(x.shape[0] - 5).tolist()", "torch.arange(min(k, x.shape[0])).tolist()", "torch.arange(x.size(0), requires_grad=False).tolist()",
    "torch.arange({t}.element_size()).tolist()", "torch.arange({t}.storage_offset()).tolist()", "torch.arange(self_.number).tolist()",
]  # fmt: skip
MASKS = [
    "{t} > 0",
    "m",
    "y > 0",
    "{t} != {t}",
    "~({t} > 0)",
    "{t}.isnan()",
    "{t} == k",
    "{t}.bool()",
    "({t} > 0) & m",
    "{t}",
]
UPDATES = [
    "{t}[{m}] += 1", "{t}[{m}] -= 2", "{t}[{m}] *= k", "{t}[{m}] = 0", "{t}[{m}] = y[{m}]", "{t}[{m}] = {t}[{m}] * 2",
    "{t}[{m}] /= 2", "{t}[{m}] += y[{m}]", "{t}[torch.where({m})] = 0", "{t}[{m}] = k", "{t}[{m}] += -1",
    "{t}[({m}).nonzero(as_tuple=True)] = 1", "{n} = torch.where({m})\n{t}[{n}] = 0", "{t}[{m}] ^= 1", "{t}[{m}] |= 1",
    "{n} = {m}\n{t}[{n}] += 1", "{t}[{m}] += True", "{t}[{m}] += 10 ** 10", "{t}[{m}] -= 1\n{n} = {t}.sum()",
    "{n} = ({m}).nonzero()\n{t}[{n}] = 0", "{t}[{m}] = {t}[{m}].exp()", "{t}[{m}] = -{t}[{m}]",
]  # fmt: skip
REDUCTIONS = [
    "{t}[{m}].any()", "{t}[{m}].all()", "{t}[{m}].count_nonzero()", "({t}[{m}] > 1).any()", "({t}[{m}] > 1).all()",
    "({t}[{m}] != y[{m}]).count_nonzero()", "{t}[{m}].sum()", "{t}[{m}].mean()", "{t}[{m}].max()", "torch.any({t}[{m}])",
    "{t}[{m}].numel()", "({t}[{m}] > y[{m}]).any()", "torch.all({t}[{m}] > 0)", "{t}[{m}].bool().any()", "len({t}[{m}])",
    "({t}[{m}] > k).sum()", "torch.count_nonzero({t}[{m}])", "({t}[{m}] == 1).any() | m.any()", "F.mse_loss({t}[{m}], y[{m}])",
    "({t}[{m}] > 0).any(0)", "({t}[{m}] > 0).all(dim=-1)", "torch.nonzero({m}).numel()", "y.sum() / {t}[{m}].numel()",
    "{t}.masked_select({m}).sum()", "({t}[{m}].exp() > 1).any()", "({t}[{m}] / 0 > 1).any()", "(1 // {t}[{m}] > 0).any()",
    "torch.isnan({t}[{m}]).any()", "{t}[{m}].isfinite().all()", "({t}[{m}] % k).any()", "({m}).nonzero()[0, 0]",
]  # fmt: skip
BRANCHES = [
    "{t} * 2 if {t}.sum() > 0 else {t} * 3", "{t} if {t}.any() else y", "0 if {t}.sum() > 0 else 1", "not {t}.any()",
    "{t}.any() and m.all()", "m.any() or {t}.all()", "0 < {t}.sum() < 2", "{t}.sum().item() * y", "float({t}.sum()) + y",
    "y[{t}.sum().long()]", "y.clamp(min={t}.max().item())", "{{'loss': {t}.sum().item()}}", "x * {t}.mean().item()",
    "bool({t}.any())", "int({t}.sum())", "copy.deepcopy({t})", "torch.bincount(v, minlength=3)", "y.repeat_interleave(v)",
    "torch.full_like(y, {t}.max().item())", "[{t}.sum().item()]", "{t}.max().item() if flag else 0", "y / {t}.numel()",
    "y.repeat_interleave(torch.tensor([1, 2]))", "math.isnan({t}.sum())", "{t}.unique()", "{t}.to('cpu', non_blocking=True)",
    "torch.tensor([{t}.sum(), 1.0])", "torch.tensor({t}.shape)", "F.scaled_dot_product_attention(y, y, y, is_causal=k > 1)",
    "torch.zeros(k if isinstance(k, int) else 1)", "torch.linspace(0, 1, 3)", "sum(i for i in {t}.tolist())",
]  # fmt: skip
BLOCKS = [
    "if {t}.isnan().any():\n    raise ValueError('nan')", "assert {t}.sum() > -99, 'sum'", "if {t}.sum() > 0:\n    {n} = {t}\nelse:\n    {n} = y",
    "r = torch.rand([])\nif r < p:\n    return seen", "r = random.uniform(0, 1)\nif r < p:\n    {n} = 3",
    "r = torch.rand([])\nr.sub_(2)\nif r < p:\n    return y", "r = torch.rand([])\n{n} = flag and r < p",
    "r = torch.rand(1)\nr = r - 1\nif r < p:\n    return y", "r = torch.rand([])\nbox = [r]\nbox[0].sub_(2)\nif flag and r < p:\n    return y",
    "self_.steps += 1", "self_.steps = self_.steps + 1\n{n} = y * self_.steps", "{n} = {t} * 1\n{n}.requires_grad = False",
    "if {t}.sum() > 0:\n    print({s})", "if flag:\n    print({s})\nelse:\n    print('no')", "if noisy(flag):\n    print({s})",
    "{n} = {t}.max().item()\nlogger.info('%s', {n})", "if logger.isEnabledFor(20):\n    logger.info({s})",
    "if p:\n    pass\nelse:\n    logger.info({s})", "for i in range(2):\n    print(i, {s})", "{n} = {t}.sum().item()\nprint({n}, {s})",
    "while k == 2:\n    k = k - 1\n    print({s})", "try:\n    print({s})\nexcept Exception:\n    LOG.append('caught')",
    "if flag and {t}.sum() > 0: print({s})", "if flag: print({s})", "with torch.no_grad():\n    print({s})",
    "if {t} is not None and COUNTED.size > 0:\n    print('x')", "print('a')\nprint({s})\nnoisy(1)\nprint('b')",
    "if (g := noisy(k)) > 0:\n    logger.info('g')", "if {t}.add_(1).sum() > 0:\n    logger.info('g')", "[print(i, {s}) for i in range(2)]",
    "if next(NUMBERS) > 0:\n    print('x')", "if draws() > 0.5:\n    print('x')", "if flag:\n    # why\n    print({s})  # here\n    # after",
    "try:\n    pass\nfinally:\n    print({s})", "class Inner:\n    print({s})", "def inner():\n    print({s})\ninner()",
    "lost = 0\nfor i in [1]:\n    print({s})\nelse:\n    lost = 1", "hits = torch.where({t} > 0)\nseen.append(hits[0].shape)",
    "z = torch.zeros(3)\nz[v.sum()] = 1", "if not flag:\n    raise ValueError(f'{{{s}}}')", "scale = {t}.abs().max().item()\n{n} = y / (scale + 1)",
]  # fmt: skip
WRAPPERS = [
    "with torch.no_grad():", "with torch.autocast('cpu', dtype=torch.bfloat16):", "if flag:", "for i in range(2):", "try:",
    "with torch.inference_mode():", "if True:", "while True:", "with warnings.catch_warnings():", "with torch.enable_grad():",
    "with Mode():",
]  # fmt: skip
MODE = """
class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, fn, types, args=(), kwargs=None):
        LOG.append(getattr(fn, "__name__", "?"))
        return fn(*args, **(kwargs or {}))
"""
SIGNATURES = [
    "x: Tensor, y: Tensor, v: Tensor, m: Tensor, k=2, p: float = 0.0, flag: bool = True",
    "x: Tensor, y: Tensor, v: Tensor, m: Tensor, k: int = 2, p=0.0, flag=True",
    "x, y, v, m, k=2, p=0.0, flag=True",
    "x: Tensor, y: Tensor, v: Tensor, m: Tensor, k: float = 2.0, p: float = 0.0, flag=True, pow=pow",
    "x: Tensor, y: Tensor, v: Tensor, m: Tensor, k=None, p: float = 0.0, flag: bool = True, *, list=list",
]
DECORATORS = ["", "", "", "", "", "@torch.no_grad()", "@staticmethod", "@decorated", "@torch.jit.ignore"]


def indented(text: str, by: int = 4) -> str:
    return "\n".join(" " * by + line for line in text.split("\n"))


class Generator:
    """One program: a function or a method with some statements, and what is around it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = ["x"]

    def one(self, options: list[str]) -> str:
        rng = self.rng
        t = rng.choice(self.names[-3:]) if rng.random() < 0.85 else rng.choice(["x", "y", "v"])
        n = f"n{len(self.names)}"
        mask, shown = rng.choice(MASKS).format(t=t), rng.choice(SHOWN).format(t=t, n=n)
        return rng.choice(options).format(a=t, t=t, n=n, m=mask, s=shown)

    def target(self) -> str:
        kind = self.rng.choices(
            (REPORTS, POWERS, RANGES, UPDATES, REDUCTIONS, BRANCHES, BLOCKS), (5, 4, 3, 5, 4, 2, 4)
        )[0]
        made = self.one(kind)
        return made if kind in (REPORTS, UPDATES, BLOCKS) else f"seen.append({made})"

    def focused(self) -> list[str]:
        """A tensor that the function makes, a change or question of its elements, and something that spoils it."""
        made = self.rng.choice(NEW).format(a=self.rng.choice(["x", "y", "v"]))
        target = self.rng.choice(UPDATES[:4] if self.rng.random() < 0.7 else REDUCTIONS[:6])
        mask = self.rng.choice(["{t} > 0", "{t} > 0", "{t} != {t}", "{t} <= k", "m"]).format(t="t1")
        target = target.format(t="t1", m=mask, n="n")
        self.names.append("t1")
        before = [self.one(ALIASES)] * (self.rng.random() < 0.4)
        after = [self.one(self.rng.choice([CHANGES, QUESTIONS, ALIASES])) for _ in range(self.rng.randint(0, 2))]
        return [
            f"t1 = {made}",
            *before,
            target if target[0] == "t" and "] " in target else f"seen.append({target})",
            *after,
        ]

    def statement(self) -> str:
        kind = self.rng.choices(("target", MADE, ALIASES, CHANGES, QUESTIONS), (5, 2, 2, 2, 1))[0]
        if kind == "target":
            made = self.target()
        elif kind is MADE:
            made = f"t{len(self.names)} = {self.one(MADE)}"
            self.names.append(f"t{len(self.names)}")
        else:
            made = self.one(kind)  # type: ignore[arg-type]
        if self.rng.random() < 0.08:
            wrapper = self.rng.choice(WRAPPERS)
            made = f"{wrapper}\n{indented(made)}" + ("\n    break" if wrapper == "while True:" else "")
            made += (
                "\nexcept (IndexError, KeyError) as error:\n    seen.append(type(error))" if wrapper == "try:" else ""
            )
        return made

    def program(self) -> str:
        rng = self.rng
        top = [rng.choice(TOP) for _ in range(rng.choice([0, 0, 0, 0, 1, 1, 2]))]
        body = ["seen = []"]
        if rng.random() < 0.4:
            body += self.focused()
        else:
            body.append(f"t1 = {self.one(MADE)}")
            self.names.append("t1")
            body += [self.statement() for _ in range(rng.randint(2, 7))]
        ends = ["seen, " + self.names[-1], "seen, x", "seen", self.names[-1], f"{self.names[-1]} * 1, seen"]
        body.append(f"{'yield' if rng.random() < 0.04 else 'return'} {rng.choice(ends)}")
        uses_mode = any("Mode()" in line for line in body)
        code = indented("\n".join(body))
        decorator = rng.choice(DECORATORS)
        if rng.random() < 0.3:
            decorator = "" if decorator == "@staticmethod" else decorator
            lines = [f"def forward(self_, {rng.choice(SIGNATURES)}):", code]
            made = "class Net(nn.Module):\n    number = 3\n    def __init__(self_):\n        super().__init__()\n"
            made += "        self_.steps = 0\n        self_.items = []\n"
            made += indented("\n".join([decorator, *lines] if decorator else lines))
            made += "\nself_ = Net()\nf = self_.forward\n"
        else:
            decorator = "" if decorator == "@staticmethod" else decorator
            lines = [f"def f({rng.choice(SIGNATURES)}):", code]
            state = "class State:\n    number = 3\n    steps = 0\n    items = []\nself_ = State()\n"
            made = state + "\n".join([decorator, *lines] if decorator else lines) + "\n"
        decorated = "def decorated(g):\n    def inner(*a, **k):\n        LOG.append('called')\n        return g(*a, **k)\n    return inner\n"
        kept = "KEPT = {}\nfrom functools import partial\n"
        parts = [HEAD, CLASSES, kept, decorated, MODE if uses_mode else "", *top, made]
        text = "\n".join(part for part in parts if part) + "\n"
        return "from __future__ import annotations\n" + text if rng.random() < 0.1 else text


# -- running -----------------------------------------------------------------------------------------------------------


def inputs(torch: Any, rng: random.Random) -> dict[str, Any]:
    """Arguments as a caller may give them."""
    shape = rng.choice([(4,), (4,), (4,), (1,), (0,), (), (2, 3)])
    dtype = rng.choice([torch.float32, torch.float32, torch.float32, torch.float64, torch.float16, torch.int64,
                        torch.uint8, torch.int8, torch.bool, torch.bfloat16])  # fmt: skip

    def tensor(kind: Any) -> Any:
        values = torch.empty(shape).uniform_(-2, 3).round(decimals=1)
        if rng.random() < 0.2 and values.numel():
            values.view(-1)[0] = rng.choice([float("nan"), float("inf"), 0.0, -0.0, 1e38])
        if kind in (torch.uint8, torch.int8) and rng.random() < 0.3:
            return torch.full(shape, 255 if kind is torch.uint8 else 127, dtype=kind)
        values = (
            values.abs().to(kind)
            if kind is torch.uint8
            else values.nan_to_num(0, 3, -3).clamp(-9, 9).to(kind)
            if not kind.is_floating_point
            else values.to(kind)
        )
        if values.is_floating_point() and rng.random() < 0.3:
            values.requires_grad_()
            values = values * 1 if rng.random() < 0.5 else values
        if shape == (2, 3) and rng.random() < 0.3:
            values = values.T.contiguous().T if rng.random() < 0.5 else values[:1].expand(2, 3)
        return values

    mask = torch.rand(shape) > 0.5
    if rng.random() < 0.25:
        mask = (
            rng.choice([mask.to(torch.uint8), mask.long(), mask[:1], torch.tensor(True), mask.float()])
            if shape
            else mask
        )
    return {
        "x": tensor(dtype), "y": tensor(dtype if rng.random() < 0.8 else torch.float32),
        "v": torch.randint(0, 3, shape), "m": mask,
        "k": rng.choice([2, 2, 2.5, 0, -1, True, torch.tensor(2.0), 1e39]), "p": rng.choice([0.0, 0.0, 0.5, 1, True, -1.0]),
        "flag": rng.choice([True, True, False, 1, torch.tensor(True)]),
    }  # fmt: skip


def outcomes(text: str, seed: int, compiling: bool) -> list[Any]:
    """The outcomes of a program on some inputs, in this process, which ends afterwards."""
    import io
    import logging
    import warnings

    import numpy as np
    import torch

    records: list[str] = []

    class Records(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())

    out = sys.stdout = io.StringIO()
    sys.stderr = io.StringIO()
    logging.getLogger().addHandler(Records())
    logging.getLogger().setLevel(logging.DEBUG)
    logging.raiseExceptions = False
    if compiling:
        torch.compiler.is_compiling = lambda: True
    said: list[str] = []  # warnings of the program: those of torch are not part of its meaning
    warnings.warn = lambda message, *args, **kwargs: said.append(re.sub("0x[0-9a-f]+", "0x", str(message)))  # type: ignore[assignment]
    rng = random.Random(seed)
    from types import ModuleType

    module = ModuleType("program")
    sys.modules["program"] = module
    names = module.__dict__
    made: list[Any] = []
    torch.manual_seed(seed)
    try:
        exec(compile(text, "program.py", "exec", dont_inherit=True), names)
    except Exception as error:
        return [("at import", type(error).__name__)]
    for number in range(10):
        torch.set_default_dtype(torch.float32) if number == 5 else None
        torch.manual_seed(number)
        random.seed(number)
        np.random.seed(number)
        given = inputs(torch, rng)
        base = {name: one for name, one in given.items() if isinstance(one, torch.Tensor)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            raised, result, graded = None, None, None
            try:
                result = names["f"](**given)
                if hasattr(result, "__next__"):
                    result = list(result)
            except Exception as error:
                raised = type(error).__name__
            ends: list[Any] = []
            collect(result, ends, torch, 0)
            try:
                needy = [one for one in ends if one.requires_grad]
                if needy:
                    torch.autograd.backward([one.double().sum() if one.numel() else one.sum() for one in needy])
            except Exception as error:
                graded = type(error).__name__
        places: dict[int, int] = {}
        state = [result, base, dict(vars(names["self_"])), names["KEPT"], names["LOG"],
                 names["COUNTED"].count]  # fmt: skip
        shown = describe(state, torch, places, 0)
        made.append((raised, graded, shown, torch.rand(2).tolist(), random.random(), list(said)))
    try:
        made.append(repr(next(names["NUMBERS"], None)))
    except Exception:
        made.append("running")
    printed = masked(out.getvalue()), list(map(masked, records))
    return [made, None if compiling else (printed, describe(names["SAID"], torch, {}, 0))]


def until_it_raises(old: list[Any], new: list[Any]) -> tuple[list[Any], list[Any]]:
    """Outcomes up to the first exception of the original, which may be one of a message that compiled code skips."""
    if not isinstance(old[0], list) or not isinstance(new[0], list):
        return old, new
    end = next((at for at, one in enumerate(old[0]) if one[0] is not None), len(old[0]))
    return old[0][:end], new[0][:end]


def collect(value: Any, into: list[Any], torch: Any, depth: int) -> None:
    if isinstance(value, torch.Tensor):
        into.append(value)
    elif isinstance(value, list | tuple) and depth < 4:
        for one in value:
            collect(one, into, torch, depth + 1)


def describe(value: Any, torch: Any, places: dict[int, int], depth: int) -> Any:
    """A value in words that can be compared, with the storage that tensors share."""
    if isinstance(value, torch.Tensor):
        place = places.setdefault(value.untyped_storage().data_ptr(), len(places)) if value.numel() else -1
        data = value.detach().contiguous().reshape(-1)
        data = data.resolve_conj().resolve_neg()
        content = data.view(torch.uint8).numpy().tobytes() if data.numel() else b""
        if value.is_floating_point():
            # The sign and the payload of a NaN are not part of a program's meaning.
            content = data.masked_fill(data.isnan(), float("nan")).view(torch.uint8).numpy().tobytes()
        grad = describe(value.grad, torch, places, depth + 1) if value.is_leaf and value.grad is not None else None
        return (type(value).__name__, str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad,
                value.is_leaf, place, content, grad, sorted(value.__dict__))  # fmt: skip
    if depth > 5:
        return "..."
    if isinstance(value, list | tuple):
        return (type(value).__name__, [describe(one, torch, places, depth + 1) for one in value])
    if isinstance(value, dict):
        return [(str(key), describe(one, torch, places, depth + 1)) for key, one in value.items()]
    if isinstance(value, int | float | bool | str | bytes | complex | None):
        return (type(value).__name__, masked(repr(value)))
    return masked(type(value).__name__)


def masked(text: str) -> str:
    """A text without addresses, and without the numbers of lines of a stack that is logged."""
    return re.sub(r"0x[0-9a-f]+|, line \d+", "", text)


def in_a_process(text: str, seed: int, compiling: bool, seconds: int = 20) -> Any:
    """The outcomes of a program in a forked process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        import signal

        os.close(read)
        signal.alarm(seconds)
        try:
            made = pickle.dumps(outcomes(text, seed, compiling))
        except BaseException as error:
            made = pickle.dumps(["harness", repr(error)])
        with os.fdopen(write, "wb") as stream:
            stream.write(made)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    return pickle.loads(content) if content else ["died"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2000, help="how many that fix changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "safe_edits")
    parser.add_argument("--all", action="store_true", help="apply what is not safe, too")
    parser.add_argument("--only", type=int, help="the program of this seed alone")
    given = parser.parse_args()
    import torch

    from breakscan.fix.planner import WantedRewrites, repair_file
    from breakscan.rulebook.config import load_settings

    torch.set_num_threads(1)
    given.keep.mkdir(parents=True, exist_ok=True)
    settings = replace(load_settings(given.keep, None, target_torch="2.13", no_cache=True), regions="all")
    changed = tried = same = 0
    wrong: list[int] = []
    rewrites: Counter[str] = Counter()
    began = time.monotonic()
    seed = given.seed if given.only is None else given.only
    while changed < given.programs:
        text = Generator(seed).program()
        tried += 1
        try:
            compile(text, "program.py", "exec")
        except SyntaxError:
            seed += 1
            continue
        file = repair_file(given.keep / "program.py", (), settings, WantedRewrites(), text=text)
        after = file.text(given.all)
        if given.only is not None:
            print(text, after, file.refused, sep="\n-----\n")
        if after != file.before:
            changed += 1
            used = {one.rewrite for one in file.applied if given.all or not one.differences}
            rewrites.update(used)
            ways = (False, True) if "is_compiling()" in after else (False,)
            for compiling in ways:
                old, new = (in_a_process(one, seed, compiling) for one in (text, after))
                if given.only is not None:
                    print(compiling, old, new, sep="\n")
                same += old == new and old[:1] not in (["died"], ["harness"])
                if compiling:
                    old, new = until_it_raises(old, new)
                if old != new:
                    wrong.append(seed)
                    (given.keep / f"{seed}_before.py").write_text(text)
                    (given.keep / f"{seed}_after.py").write_text(after)
                    print(f"wrong: {seed} {'compiling' if compiling else ''} {sorted(used)}", flush=True)
                    break
                if old[:1] == ["harness"]:
                    print(f"harness: {seed} {old}")
        seed += 1
        if given.only is not None:
            break
        if tried % 500 == 0:
            print(f"{tried} tried, {changed} changed, {len(wrong)} wrong, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{tried} tried, {changed} changed, {len(wrong)} wrong: {wrong}; runs that agree: {same}")
    print(f"{dict(rewrites)}, {time.monotonic() - began:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
