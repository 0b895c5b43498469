"""Breaks that a file shows though nothing in it is annotated: what a name, a comparison or a class makes of a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked import breaks, found

CASES = {
    "a target that is compared, and what is compared indexes": """
class Loss(nn.Module):
    def forward(self, logits, target):
        keep = target != -100
        kept = target[keep]  # !
        return logits[keep]  # !


holder = hold(Loss())


def f(x):
    y = x.sin()
    return holder.held(y, y.long()).cos()
""",
    "an inverted comparison": """
class Loss(nn.Module):
    def forward(self, logits, target):
        pad = target == 0
        return target[~pad]  # !


holder = hold(Loss())


def f(x):
    y = x.sin()
    return holder.held(y, y.long()).cos()
""",
    "a field of a NamedTuple without an annotation of a tensor": """
from typing import Any, NamedTuple


class Pair(NamedTuple):
    first: Any
    count: int


def f(x: torch.Tensor):
    y = x.sin()
    pair = Pair(y, 3)
    if pair.first.sum() > 0:  # !
        y = y + 1
    return y.cos()
""",
    "the __init__ of a module made in traced code": """
class Scale(nn.Module):
    def __init__(self, like):
        super().__init__()
        self.factor = int(like.sum())  # !

    def forward(self, x):
        return x * self.factor


def f(x: torch.Tensor):
    y = x.sin()
    return Scale(y)(y).cos()
""",
    "a hook on a module that nothing is known of": """
holder = hold(nn.Linear(4, 4))


def f(x: torch.Tensor):
    y = x.sin()
    holder.held.register_forward_hook(lambda *given: None)  # !
    return y.cos()
""",
    "backward of a loss that nothing is known of": """
holder = hold(nn.Linear(4, 4))


def f(x: torch.Tensor):
    y = holder.held(x.sin())
    total = holder.held.loss(y) if hasattr(holder.held, "loss") else holder.held(y)
    total.backward(torch.ones(4, 4))  # !
    return y.detach().cos()
""",
    "an optimizer that nothing is known of": """
holder = hold(torch.optim.SGD(nn.Linear(4, 4).parameters()))


def f(x: torch.Tensor):
    y = x.sin()
    optimizer = holder.held
    optimizer.zero_grad()  # !
    return y.cos()
""",
    "the step of an optimizer of any class": """
layer = nn.Linear(4, 4)
optimizer = torch.optim.RMSprop(layer.parameters())


def f(x: torch.Tensor):
    y = x.sin()
    optimizer.zero_grad()  # !
    return y.cos()
""",
    "an element of what a type of tensors makes": """
def f(x: torch.Tensor):
    y = x.sin()
    sizes = torch.IntTensor([2, 3])
    return y[int(sizes[0])].cos()  # !
""",
    "what a type of tensors makes is no list": """
def f(x: torch.Tensor):
    y = x.sin()
    table = torch.FloatTensor([[1.0, 2.0], [3.0, 4.0]])
    return (y * table[0].sum() + table[1][0]).cos()
""",
    "an element of sums of counts": """
def f(x: torch.Tensor):
    y = x.sin()
    _, _, counts = torch.unique(y, return_inverse=True, return_counts=True)  # !
    groups = torch.cumsum(counts, dim=0) - 1
    return y.flatten()[groups[0] % 4]  # !
""",
    "an element of selected hits": """
def f(x: torch.Tensor):
    y = x.sin().flatten()
    rows = torch.where(y < 2)[0]  # !
    rows = rows[torch.tensor([0, 1])]
    return y[rows[0]]  # !
""",
    "a name for torch or NumPy": """
def f(x):
    y = x.sin()
    lib = torch if isinstance(x, torch.Tensor) else np
    if lib.any(y > 2):  # !
        y = y + 1
    return y.cos()
""",
    "what a function that is handed in returns": """
def scaled(norm, y: torch.Tensor):
    size = norm(y / 2).abs()
    if size < 1e-5:  # !
        return y
    return y / size


def f(x: torch.Tensor):
    return hold(scaled).held(torch.linalg.norm, x.sin()).cos()
""",
    "a module that a function imports": """
from importlib import import_module


def optional_import(module, version="", name=""):
    try:
        found = import_module(module)
        if name:
            found = getattr(found, name)
    except ImportError:
        return None, False
    return found, True


def import_or_none(name):
    return import_module(name)


pickle, _ = optional_import("pickle")
dumps, _ = optional_import("json", name="dumps")
zlib = import_or_none("zlib")


def f(x: torch.Tensor):
    y = x.sin()
    text = pickle.dumps(3)  # !
    text = dumps(3)  # !
    text = zlib.compress(b"3")  # !
    return y.cos()
""",
    "a decorator that another one makes": """
import functools
import pickle


def counted(method=None, name=None):
    return method


def cached(method=None, name=None, count=False):
    if count:
        return counted(method=method, name=name)
    else:
        return _cached(method=method, name=name)


def _cached(method=None, name=None):
    if method is None:
        return functools.partial(_cached, name=name)

    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        key = pickle.dumps(kwargs)  # !
        result = method(self, *args, **kwargs)
        return as_it_is(self, result)

    return wrapper


def as_it_is(owner, result):
    return result


class Net(nn.Module):
    @cached(name="scaled")
    def scaled(self, x):
        return x * 2

    def forward(self, x):
        return self.scaled(x)


net = Net()


def f(x: torch.Tensor):
    return net(x.sin()).cos()
""",
    "a decorator below a property": """
import functools
import pickle


def cached(method):
    @functools.wraps(method)
    def wrapper(self):
        key = pickle.dumps(3)  # !
        return method(self)

    return wrapper


class Scale:
    @property
    @cached
    def factor(self):
        return 2


scale = Scale()


def f(x: torch.Tensor):
    return (x.sin() * scale.factor).cos()
""",
    "a decorator that a flag chooses": """
import functools
import pickle


def plain(method=None):
    if method is None:
        return plain
    return method


def cached(method=None, off=False):
    if off:
        return plain(method)
    else:
        return _cached(method)


def _cached(method):
    @functools.wraps(method)
    def wrapper(self, x):
        key = pickle.dumps(3)
        return method(self, x)

    return wrapper


class Net(nn.Module):
    @cached(off=True)
    def doubled(self, x):
        return x * 2

    def forward(self, x):
        return self.doubled(x)


net = Net()


def f(x: torch.Tensor):
    return net(x.sin()).cos()
""",
    "the wrapper that a decorator puts around an entry": """
import functools


def reported(function):
    @functools.wraps(function)
    def wrapper(*args):
        y = function(*args)
        if y.sum() > 0:  # !
            y = y + 1
        return y.cos()

    return wrapper


@reported
def f(x: torch.Tensor):
    return x.sin()
""",
    "the __new__ of a class": """
class Signed:
    def __new__(cls, value: torch.Tensor):
        if value.sum() > 0:  # !
            return object.__new__(cls)
        return object.__new__(cls)


def f(x: torch.Tensor):
    y = x.sin()
    Signed(y)
    return y.cos()
""",
    "the forward of an autograd.Function": """
class Shown(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, value):
        print(value)  # !
        return value * 2

    @staticmethod
    def backward(ctx, grad):
        return None, grad


def f(x: torch.Tensor):
    return Shown.apply("x", x.sin()).cos()
""",
    "the forward of an autograd.Function with setup_context": """
class Chosen(torch.autograd.Function):
    @staticmethod
    def forward(value, other):
        if value.sum() > 0:  # !
            return value * other
        return other * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


def f(x: torch.Tensor):
    return Chosen.apply(x.sin(), x).cos()
""",
    "the state of an optimizer, read as it was made": """
holder = hold({})


def f(x: torch.Tensor):
    state = holder.held
    if len(state) == 0:
        state["count"] = 0
        state["total"] = torch.zeros([])
    total = state["total"]
    y = x.sin()
    if state["count"] == 0:
        y = y * 2
    if total == 0:  # !
        y = y * 2
    return y.cos()
""",
    "tuples with tensors are sorted": """
def f(x: torch.Tensor):
    y = x.sin()
    scored = [(row.sum(), i) for i, row in enumerate(y)]
    scored.sort()  # !
    return y.cos() * scored[0][0]
""",
    "items of a dictionary with tensors are sorted": """
def f(x: torch.Tensor):
    y = x.sin()
    first = sorted({"a": y, "b": x}.items())[0]  # !
    return y.cos() * first[1]
""",
    "items of a dictionary are sorted by their keys": """
def f(x: torch.Tensor):
    y = x.sin()
    first = sorted({"a": y, "b": x}.items(), key=lambda item: item[0])[0]
    return y.cos() * first[1]
""",
    "a stack enters a context manager that an attribute holds": """
import contextlib


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scope = Scope()

    def forward(self, x):
        y = x.sin()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.scope)  # !
            return y.cos()


class Scope:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


model = Model()


def f(x: torch.Tensor):
    return model(x)
""",
    "a stack enters what nothing is known of": """
import contextlib

holder = hold(contextlib.suppress)


def f(x: torch.Tensor):
    with contextlib.ExitStack() as stack:
        stack.enter_context(holder.held(ValueError))
        return x.sin()
""",
    "a stack enters a local context manager": """
import contextlib


@contextlib.contextmanager
def scope():
    yield


def f(x: torch.Tensor):
    with contextlib.ExitStack() as stack:
        entered = scope()
        stack.enter_context(entered)
        return x.sin()
""",
    "a product of a generator": """
import math


def f(x: torch.Tensor):
    y = x.sin()
    return y.cos() / math.prod(y.shape[i] for i in (0, 1))  # !
""",
    "generators of random numbers": """
def f(x: torch.Tensor):
    y = x.sin()
    seeds = np.random.SeedSequence(3)  # !
    first, second = seeds.generate_state(2)  # !
    drawn = np.random.default_rng(3)  # !
    y = y + drawn.standard_normal()  # !
    generator = torch.Generator().manual_seed(3)  # !
    return y.cos() + torch.randn(4, generator=generator)  # !
""",
    "the __init__ of an object that nothing in the file makes": """
class Weights:
    def __init__(self, values: torch.Tensor):
        self.values = values
        if values.sum() > 100:  # !
            self.values = values / values.sum()


holder = hold(Weights)


def f(x: torch.Tensor):
    return holder.held(x.sin() + 100).values.cos()
""",
    "a wrapper that hands on what it is given": """
import pickle


class Timed:
    def __init__(self, function):
        self.function = function

    def __call__(self, *given):
        pickle.dumps(3)  # !
        return self.function(*given)


timed = Timed(torch.cos)


def f(x: torch.Tensor):
    return hold(timed).held(x.sin())
""",
    "one of several optimizers": """
optimizers = hold({"a": torch.optim.SGD(nn.Linear(4, 4).parameters())})


def f(x: torch.Tensor):
    y = x.sin()
    optims = optimizers.held
    optims["a"].zero_grad()  # !
    return y.cos()
""",
    "a TypedDict with optional keys": """
from typing import Any, Generic, TypedDict, TypeVar

T = TypeVar("T")


class Part(TypedDict, Generic[T], total=False):
    hidden: T


class Whole(Part):
    size: int


def f(x: torch.Tensor):
    whole = Whole(hidden=x.sin(), size=3)  # !
    return whole["hidden"].cos()
""",
    "a TypedDict with all keys": """
from typing import Any, TypedDict


class Whole(TypedDict):
    hidden: Any


def f(x: torch.Tensor):
    whole = Whole(hidden=x.sin())
    return whole["hidden"].cos()
""",
    "a test for a type of tensors": """
def f(x, index):
    y = x.sin()
    if not isinstance(index, torch.LongTensor):
        raise TypeError(index)
    if index.min().item() < 0:  # !
        y = y + 1
    return y.cos()


given = f


def f(x):
    return given(x, hold(torch.arange(4)).held)
""",
    "a number that a generator of Python drew": """
import random


def f(x: torch.Tensor):
    y = x.sin()
    generator = random.Random(3)
    if generator.random() < 0.5:  # !
        y = y + 1
    return y.cos()
""",
    "arithmetic with a number that was drawn": """
import random


def f(x: torch.Tensor):
    y = x.sin()
    last = random.randrange(4)
    last += 1  # !
    return y.cos() * last
""",
    "a number that was drawn, divided by a tensor": """
import random


def f(x: torch.Tensor):
    y = x.sin()
    return random.randrange(4) / y.exp()  # !
""",
    "a number that was drawn, as an int": """
import random


def f(x: torch.Tensor):
    y = x.sin()
    return y.cos() * int(random.uniform(0, 4))  # !
""",
    "numbers that were drawn before, and arithmetic with a tensor": """
import random

COUNT = random.randrange(4)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = random.randrange(4)

    def forward(self, x: torch.Tensor):
        if self.count + COUNT > 2:
            x = x + 1
        return x * random.randrange(4) - random.uniform(0, 1)


layer = Layer()


def f(x: torch.Tensor):
    return layer(x.sin()).cos()
""",
    "a shape that is compared with a computed length": """
def f(x: torch.Tensor):
    y = x.sin()
    count = y.long().sum() + 5
    if torch.arange(4).shape == (count,):  # !
        y = y + 1
    return y.cos()
""",
    "lists of tensors that are ordered": """
def f(x: torch.Tensor):
    y = x.sin()
    low, high = [y.sum(), 1], [y.mean(), 1]
    if low > high:  # !
        y = y + 1
    return y.cos()
""",
    "lists and tuples that are compared without a tensor": """
def f(x: torch.Tensor):
    y = x.sin()
    total = y.sum()
    if [total] == (total,) or (total, 1) == () or (total,) == (None,) or (1, total) == (2, total):
        y = y + 1
    if (y, 1) == (y, 2) or (y.shape, y.dtype) == ((3,), torch.int64):
        y = y + 2
    return y.cos()
""",
    "a comparison that indexes nothing": """
def f(x, count=3):
    y = x.sin()
    more = count > 2
    rows = [y, y + 1]
    if more:
        y = rows[0] + count
    return y.cos()
""",
    "what an unknown call gives, used only as a tensor": """
class Objective:
    def __init__(self, function):
        self.function = function

    def value(self, x):
        out = self.function(x)
        return float(out) + out.detach()  # !


objective = hold(Objective(torch.sum))


def f(x: torch.Tensor):
    return objective.held.value(x.sin()).cos()
""",
    "what an unknown call gives, used as a number too": """
class Sized:
    def __init__(self, function):
        self.function = function

    def value(self, x):
        count = self.function(x)
        size = getattr(count, "size", 3)
        return x[: int(count)] + count + size if count else x


sized = hold(Sized(len))


def f(x: torch.Tensor):
    return sized.held.value(x.sin()).cos()
""",
    "a type that torch gives is no tensor": """
def f(x: torch.Tensor):
    y = x.sin()
    dtype = torch.promote_types(y.dtype, torch.float32)
    if dtype in (torch.float16, torch.bfloat16) or not dtype.is_floating_point:
        y = y + 1
    return y.cos()
""",
    "an inner function that is stored": """
class Operator:
    def __init__(self, product):
        self.product = product


def operator(y):
    def product(v):
        return v * y.sum().item()  # !

    return Operator(product)


def f(x: torch.Tensor):
    y = x.sin()
    return vars(operator(y))["product"](y).cos()
""",
    "the saved tensors of an autograd.Function": """
class Flip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.save_for_backward(x, torch.tensor(dim))
        return -x

    @staticmethod
    def backward(ctx, grad):
        saved, dim = ctx.saved_tensors
        if dim == -1:  # !
            grad = grad + saved
        return -grad, None


def f(x: torch.Tensor):
    y = x.sin() * torch.ones((), requires_grad=True)  # !
    return Flip.apply(y, -1).cos()
""",
    "the lengths of rows, one by one": """
def pick(y: torch.Tensor, lengths: torch.Tensor):
    return torch.stack([y[i, length] for i, length in enumerate(lengths)])  # !


def f(x: torch.Tensor):
    y = x.sin()
    return pick(y, torch.tensor([1, 3])).cos()
""",
    "a gradient that is masked": """
weight = nn.Parameter(torch.randn(4))
weight.grad = torch.randn(4)
holder = hold({"params": [weight], "mask": torch.tensor([True, False, True, True])})


def step(group, total):
    for parameter in group["params"]:
        grad = parameter.grad
        kept = grad[group["mask"]]  # !
        if (grad.abs() > 1).sum() > 2:  # !
            kept = kept * 2
        total = total + kept.sum()
    return total


def f(x: torch.Tensor):
    y = x.sin()
    return step(holder.held, y.cos())
""",
    "zero_grad of an optimizer's own class": """
class Base(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})


class Twice(Base):
    def again(self, y):
        self.zero_grad()  # !
        return y + 1


optimizer = Twice([nn.Parameter(torch.randn(4))])


def f(x: torch.Tensor):
    y = x.sin()
    return optimizer.again(y).cos()
""",
    "the names of a module and of a class": """
def f(x: torch.Tensor):
    y = x.sin()
    if "cholesky_ex" in dir(torch.linalg) and "forward" in dir(nn.Module):
        y = y + 1
    return y.cos()
""",
    "the gradients that autograd gives": """
weight = torch.randn(4, requires_grad=True)


def f(x: torch.Tensor):
    y = x.sin() * weight
    first = torch.autograd.grad(y.sum(), weight)[0]  # !
    if first.sum() > 0:  # !
        y = y + 1
    return y.cos()
""",
    "a bound that NumPy computes": """
import numpy as np


def f(x: torch.Tensor):
    y = x.sin()
    return y[: np.prod((1, 2))].cos()  # !
""",
    "a class that a function makes": """
def f(x: torch.Tensor):
    y = x.sin()
    return Halved_by(2).apply(y).cos()


def Halved_by(count):
    class Halved(torch.autograd.Function):  # !
        @staticmethod
        def forward(ctx, x):
            return x / count

        @staticmethod
        def backward(ctx, grad):
            return grad / count

    return Halved
""",
    "a divergence of distributions": """
def f(x: torch.Tensor):
    y = x.sin()
    divergence = torch.distributions.kl_divergence(
        torch.distributions.Normal(y, torch.ones_like(y)), torch.distributions.Normal(y + 1, torch.ones_like(y))
    )
    return y.cos() * float(divergence.sum())  # !
""",
    "the parameters of an unknown module are loaded": """
holder = hold((nn.Linear(4, 4), nn.Linear(4, 4)))


def f(x: torch.Tensor):
    y = x.sin()
    copied(*holder.held)
    return y.cos()


def copied(target, source):
    target.load_state_dict(source.state_dict())  # !
""",
    "a logger that is the default of a parameter": """
import logging


class Net(nn.Module):
    def __init__(self, logger=logging.getLogger(__name__)):
        super().__init__()
        self.logger = logger

    def forward(self, x):
        y = x.sin()
        self.logger.debug("seen")  # !
        return y.cos()


net = Net()


def f(x: torch.Tensor):
    return net(x)
""",
    "a slice that is made of tensors": """
def f(x: torch.Tensor):
    y = x.sin()
    first = torch.tensor(1)
    part = slice(first, first + 2)  # !
    return y[part].cos()
""",
    "a number that NumPy draws": """
def f(x):
    return hold(x).held.cos() if chosen(0.5) else hold(x).held.sin()


def chosen(rate):
    return np.random.rand() < rate  # !
""",
    "elements of a tensor of repeated numbers": """
def f(x: torch.Tensor):
    y = x.sin()
    lengths = torch.LongTensor([2] * len(x)).to(x.device)
    return torch.stack([y[i - length] for i, length in enumerate(lengths)]).cos()  # !
""",
    "views in place of what is handed in and of what is computed": """
table = torch.randn(4, 1)


def f(x: torch.Tensor):
    y = x.sin().unsqueeze_(0)
    part = x[:2]
    part.unsqueeze_(0)
    turned = table
    turned = turned.transpose_(0, 1)  # !
    return y.cos() + turned.sum() + part.sum()
""",
    "a number that NumPy computes and Dynamo does not trace": """
import numpy as np


def f(x: torch.Tensor):
    y = x.sin()
    least = np.nanargmin([2.0, 1.0])  # !
    if least == 0:  # !
        y = y + 1
    return y.cos()
""",
    "flags that are False": """
def f(x: torch.Tensor):
    y = x.sin()
    hits = (y > 0).nonzero(as_tuple=False)  # !
    kinds = hits[:, 0].unique(return_counts=False)  # !
    return y.cos(), kinds
""",
    "a number that was drawn as an index": """
import random

scales = [1.0, 2.0, 3.0, 4.0]
layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])


def f(x: torch.Tensor):
    y = x.sin() * scales[random.randint(0, 3)]  # !
    y = layers[random.randint(0, 1)](y)  # !
    y = y + y[random.randint(0, 3)]  # !
    y = y[random.randint(0, 3) :]  # !
    for _ in range(random.randint(1, 3)):  # !
        y = y.cos()
    return y, f"{random.randint(0, 3)}"
""",
    "a number that was drawn as a text or a member": """
import random


def f(x: torch.Tensor):
    y = x.sin()
    text = str(random.randint(0, 3))  # !
    y = y.cos()
    low = random.randint(0, 3) in (1, 2)  # !
    return y.cos(), text, low
""",
    "what torch is asked for": """
def f(x: torch.Tensor):
    y = x.sin()
    if torch.is_anomaly_enabled():  # !
        y = y + 1
    if torch.is_grad_enabled() and not torch.jit.is_scripting():
        y = y.cos()
    if torch.backends.mps.is_available():  # !
        y = y + 2
    return y.cos()
""",
    "% with an object by itself": """
from enum import Enum


class Plain:
    pass


class Mode(Enum):
    FAST = 1


plain = Plain()
layer = nn.Linear(4, 4)


def f(x: torch.Tensor):
    y = x.sin()
    text = "%s" % (plain,) + "%s" % Mode.FAST + "%s" % (layer,)
    y = y.cos()
    return y, text, "%s" % plain  # !
""",
    "methods of object through super()": """
class Plain:
    def __hash__(self):
        return super().__hash__()  # !

    def __repr__(self):
        return super().__repr__()  # !


class Listed(list):
    def __eq__(self, other):
        return super().__eq__(other)


plain, listed = Plain(), Listed([1])


def f(x: torch.Tensor):
    y = x.sin()
    number = hash(plain)
    y = y.cos()
    text = repr(plain)
    return y.cos(), listed == listed, text, number
""",
    "attributes whose names are computed": """
class Pair(nn.Module):
    def forward(self, x):
        return x.cos(), x.sum()


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(2):
            setattr(self, f"linear{i}", nn.Linear(4, 4))
            self.add_module("pair%d" % i, Pair())
            self.register_buffer("mask" + str(i), torch.ones(4, dtype=torch.bool))

    def forward(self, x):
        for i in range(2):
            x = getattr(self, f"linear{i}")(x)
            x, total = getattr(self, "pair%d" % i)(x)
        if total > 0:  # !
            x = x.cos()
        return x[getattr(self, f"mask{i}")]  # !


stack = Stack()


def f(x: torch.Tensor):
    name = "nonzero"
    hits = getattr(stack(x).sin(), name)()  # !
    return getattr(torch, f"{'uni'}que")(hits)  # !
""",
    "a cached property": """
import functools


class Solver:
    @functools.cached_property
    def weights(self):
        return torch.ones(4)

    def step(self, y):
        return y * self.weights  # !


def f(x: torch.Tensor):
    y = x.sin()
    return Solver().step(y).cos()
""",
    "a cache that traced code makes": """
import functools


@functools.lru_cache(maxsize=1)
def kept(size):
    return size


def f(x: torch.Tensor):
    y = x.sin()

    @functools.lru_cache(maxsize=1)  # !
    def made(size):
        return size

    return y.cos() * made(3) * kept(2)
""",
    "a copy by a method of the object": """
import copy


class State:
    def __init__(self):
        self.parts = {1: 2}

    def __copy__(self):
        made = self.__class__.__new__(self.__class__)
        made.parts = copy.copy(self.parts)  # !
        return made


class Plain:
    pass


state, plain = State(), Plain()


def f(x: torch.Tensor):
    y = x.sin()
    copy.copy(plain)
    copied = copy.copy(state)
    return y.cos() * copied.parts[1]
""",
    "another object of one's own class": """
class Total:
    def __init__(self, held=None):
        self.held = held

    def read(self):
        return float(self.held)  # !

    def doubled(self, held):
        return type(self)(held * 2).read()


def f(x: torch.Tensor):
    y = x.sin().sum()
    return Total().doubled(y) + y.cos()
""",
    "dimensions that NumPy computes": """
def f(x: torch.Tensor):
    y = x.sin()
    order = np.argsort((1, 0))
    y = y.permute(list(order))  # !
    counts = (y[0] > 0).long()
    return y[0].repeat_interleave(counts, output_size=counts.sum()).sum()  # !
""",
    "an index that only arrays take": """
class Loss(nn.Module):
    def forward(self, logits, boxes):
        width = boxes[:, 1] - boxes[:, 0]
        if width.min() < 0:  # !
            width = width.abs()
        return logits * width[..., None]


holder = hold(Loss())


def f(x):
    y = x.sin()
    return holder.held(y, y * 2).cos()
""",
    "masks of which nothing is known but that they are combined": """
class Loss(nn.Module):
    def forward(self, hidden, mask):
        valid = mask[:, :-1] & mask[:, 1:]
        return hidden[:, 1:][valid]  # !


holder = hold(Loss())


def f(x):
    y = x.sin()
    return holder.held(y, y > 0).cos()
""",
    "arrays of Python's objects": """
def f(x: torch.Tensor):
    y = x.sin()
    rows = np.empty(3, dtype=object)  # !
    y = y.cos()
    names = np.array(["a", "b"])  # !
    return y.cos() + torch.from_numpy(np.zeros(4, dtype=float))
""",
}


def marked(source: str) -> set[int]:
    return {number for number, line in enumerate(source.splitlines(), 1) if line.endswith("# !")}


@pytest.mark.parametrize("case", CASES)
def test_found(case: str, tmp_path: Path) -> None:
    assert {line for line, _ in found(CASES[case], tmp_path)} == marked(CASES[case])


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES)
def test_the_compiler_agrees(case: str, tmp_path: Path) -> None:
    assert breaks(CASES[case], tmp_path) is bool(marked(CASES[case]))


@pytest.mark.torch
@pytest.mark.parametrize(("index", "broken"), [("at", False), ("at + 1", True)])
def test_the_compiler_knows_an_index_that_is_handed_in(index: str, broken: bool, tmp_path: Path) -> None:
    source = f"at = torch.tensor(2)\n\n\ndef f(x):\n    y = x.sin()\n    return y[{index}].cos()\n"
    assert breaks(source, tmp_path) is broken
