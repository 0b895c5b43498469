"""Programs that nest deeply, or that are flat to parse and deep or wide to analyse."""

from __future__ import annotations

from collections.abc import Callable, Iterator

HEAD = "import torch\nfrom torch import nn\n\n"

EXPRESSIONS: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "x" + ")" * n,
    "calls": lambda n: "f(" * n + "x" + ")" * n,
    "torch_calls": lambda n: "torch.relu(" * n + "x" + ")" * n,
    "compile_calls": lambda n: "torch.compile(" * n + "f" + ")" * n,
    "method_chain": lambda n: "x" + ".relu()" * n,
    "item_chain": lambda n: "x" + ".item()" * n,
    "attribute_chain": lambda n: "x" + ".T" * n,
    "module_chain": lambda n: "torch" + ".nn" * n,
    "call_chain": lambda n: "f" + "()" * n,
    "subscript_chain": lambda n: "x" + "[0]" * n,
    "subscripts": lambda n: "x[" * n + "0" + "]" * n,
    "sum": lambda n: "x" + " + x" * n,
    "power": lambda n: "x" + " ** x" * n,
    "nested_sum": lambda n: "(x + " * n + "x" + ")" * n,
    "minus": lambda n: "-" * n + "x",
    "not": lambda n: "not " * n + "x",
    "and": lambda n: "x" + " and x.any()" * n,
    "nested_and": lambda n: "(x and " * n + "x" + ")" * n,
    "comparison": lambda n: "x" + " < x" * n,
    "ternary": lambda n: "x if x.any() else " * n + "x",
    "ternary_in_test": lambda n: "(1 if " * n + "x" + " else 0)" * n,
    "lambda": lambda n: "lambda: " * n + "x",
    "lambda_called": lambda n: "(lambda y: " * n + "x" + ")(x)" * n,
    "lambda_default": lambda n: "lambda y=" * n + "x" + ": x" * n,
    "list": lambda n: "[" * n + "x" + "]" * n,
    "tuple": lambda n: "(" * n + "x" + ",)" * n,
    "dict": lambda n: "{0: " * n + "x" + "}" * n,
    "set": lambda n: "{" * n + "x" + "}" * n,
    "comprehension": lambda n: "[" * n + "x" + " for i in x]" * n,
    "comprehension_in_source": lambda n: "[i for i in " * n + "x" + "]" * n,
    "comprehension_clauses": lambda n: "[x" + " for i in x if i" * n + "]",
    "generator": lambda n: "(" * n + "x" + " for i in x)" * n,
    "fstring_parts": lambda n: "f'" + "{x}" * n + "'",
    "fstring": lambda n: "f'{" * n + "x" + "}'" * n,
    "fstring_format": lambda n: "f'{x:" + "{x:" * n + "}" * n + "}'",
    "joined_strings": lambda n: " ".join(["f'{x}'"] * n),
    "walrus": lambda n: "(y := " * n + "x" + ")" * n,
    "await": lambda n: "await " * n + "x",
    "yield": lambda n: "(yield " * n + "x" + ")" * n,
    "star": lambda n: "f(*" * n + "x" + ")" * n,
    "keyword": lambda n: "f(a=" * n + "x" + ")" * n,
    "arguments": lambda n: "f(" + "x, " * n + ")",
    "keywords": lambda n: "f(" + ", ".join(f"a{i}=x" for i in range(n)) + ")",
    "slice": lambda n: "x[" + "x[" * n + ":" + "]" * n + "]",
    "percent": lambda n: "'%s' % " * n + "x",
}
"""Expressions over a tensor ``x``, so and so deep."""


def blocks(opener: str, n: int, tail: str = "") -> str:
    """A function of so many blocks, each inside the one before."""
    rows = [row.replace("%", str(i)) for i in range(n) for row in opener.split("\n")]
    text = "".join(f"{' ' * (depth + 1)}{row}\n" for depth, row in enumerate([*rows, "x = x + 1"]))
    if tail:
        text += "".join(f"{' ' * (depth + 1)}{tail}\n" for depth in reversed(range(n)))
    return f"{HEAD}def f(x: torch.Tensor, *a):\n{text} return x\n"


BLOCKS: dict[str, tuple[str, str]] = {
    "ifs": ("if x.any():", ""),
    "fors": ("for i% in x:", ""),
    "whiles": ("while x.any():", ""),
    "withs": ("with torch.no_grad() as c%:", ""),
    "tries": ("try:", "finally: x.item()"),
    "functions": ("def f%(x, y=x):", ""),
    "classes": ("class C%(nn.Module):", ""),
    "matches": ("match x:\ncase C(x):", ""),
}


def chains() -> Iterator[tuple[str, str]]:
    """Programs that are flat to parse and deep, or wide, to analyse."""
    for n in (20, 200, 5_000):
        yield (
            f"elif_{n}",
            "def f(x):\n    if x.any(): pass\n" + "".join(f"    elif x.sum() > {i}: y = {i}\n" for i in range(n)),
        )
        yield (
            f"ifs_in_a_row_{n}",
            "def f(x):\n    y = None\n"
            + "".join(f"    if x.sum() > {i}:\n        y = x if y is None else ({i}, y)\n" for i in range(n))
            + "    return y\n",
        )
        yield (
            f"calls_forward_{n}",
            "".join(f"def f{i}(x):\n    return f{i + 1}(x)\n\n" for i in range(n))
            + f"def f{n}(x):\n    return x.item()\n",
        )
        yield (
            f"calls_back_{n}",
            "def f0(x):\n    return x.item()\n\n"
            + "".join(f"def f{i}(x):\n    return f{i - 1}(x)\n\n" for i in range(1, n)),
        )
        yield (
            f"calls_twice_{n}",
            "".join(
                f"def f{i}(x, y):\n    return f{i + 1}(x, y) + f{i + 1}(x.T, ({i}, y)) + f{i + 1}(None, [x])\n\n"
                for i in range(n)
            ),
        )
        yield (
            f"constants_{n}",
            "".join(f"def f{i}(x, k):\n    return f{i + 1}(x, k + 1) + f{i + 1}(x, {i})\n\n" for i in range(n)),
        )
        yield (
            f"subclasses_{n}",
            "class C0(nn.Module):\n    def forward(self, x):\n        return x.item()\n\n"
            + "".join(
                f"class C{i}(C{i - 1}):\n    def forward(self, x):\n        return super().forward(x)\n\n"
                for i in range(1, n)
            ),
        )
        yield (
            f"submodules_{n}",
            "class C0(nn.Module):\n    def forward(self, x):\n        return x.item()\n\n"
            + "".join(
                f"class C{i}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                f"        self.a = C{i - 1}()\n"
                f"        self.b = nn.ModuleList([C{i - 1}() for _ in range(2)])\n\n"
                f"    def forward(self, x):\n        return self.a(x) + self.b[0](x.T)\n\n"
                for i in range(1, n)
            ),
        )
        yield f"growing_tuple_{n}", "def f(x):\n" + "    x = (x, x)\n" * n + "    return x.item()\n"
        yield (
            f"growing_names_{n}",
            "def f(x):\n    y0 = x, x\n"
            + "".join(f"    y{i} = [y{i - 1}, y{i - 1}, {{'a': y{i - 1}}}]\n" for i in range(1, n))
            + "    return y1\n",
        )
        yield f"decorators_{n}", "@torch.compile\n" * n + "def f(x):\n    return x.item()\n"
        yield f"compiled_again_{n}", "def f(x):\n    return x.item()\n\n" + "f = torch.compile(f)\n" * n
        yield (
            f"with_items_{n}",
            "def f(x):\n    with " + ", ".join(["torch.no_grad()"] * n) + ":\n        return x.item()\n",
        )
        yield f"parameters_{n}", "def f(" + ", ".join(f"x{i}=None" for i in range(n)) + "):\n    return x0.item()\n"
        yield f"targets_{n}", "def f(x):\n    " + " = ".join(f"y{i}" for i in range(n)) + " = x\n    return y0.item()\n"
        yield (
            f"aliases_{n}",
            "a0 = torch.compile\n"
            + "".join(f"a{i} = a{i - 1}\n" for i in range(1, n))
            + f"@a{n - 1}\ndef f(x): return x.item()\n",
        )
        yield (
            f"rotation_{n}",
            "def f("
            + ", ".join(f"y{i}" for i in range(n))
            + "):\n    while y0.any():\n        "
            + ", ".join(f"y{i}" for i in range(n))
            + " = "
            + ", ".join(f"y{(i + 1) % n}" for i in range(n))
            + "\n    return y0\n",
        )
        yield (
            f"rotation_of_attributes_{n}",
            "class M(nn.Module):\n    def forward(self, x):\n        for _ in x:\n"
            + "".join(f"            self.y{i} = self.y{(i + 1) % n}\n" for i in range(n))
            + "        return self.y0.item()\n",
        )
        yield (
            f"narrowing_{n}",
            "def f(x, *a):\n"
            + "".join(
                f"    if x is None and isinstance(a[{i}], torch.Tensor) or x.dtype == torch.float16: return {i}\n"
                for i in range(n)
            ),
        )
        yield (
            f"returns_{n}",
            "def f(x):\n"
            + "".join(f"    if x.shape[0] == {i}: return (x, {i})\n" for i in range(n))
            + "\ndef g(x):\n    return f(f(f(x)))\n",
        )
        yield (
            f"one_class_{n}",
            "class M(nn.Module):\n"
            + "".join(
                f"    def m{i}(self, x):\n        self.a{i} = x\n"
                f"        return self.m{(i * 7 + 1) % n}(self.a{(i * 3) % n})\n\n"
                for i in range(n)
            )
            + "    forward = m0\n",
        )
    yield (
        "everyone_calls_everyone",
        "".join(
            f"def f{i}(x, y=None):\n    return " + " + ".join(f"f{j}(x, y)" for j in range(100)) + "\n\n"
            for i in range(100)
        ),
    )
    yield (
        "everyone_calls_everyone_with_more",
        "".join(
            f"def f{i}(x, y=None):\n    return [" + ", ".join(f"f{j}((x, {j}), y)" for j in range(40)) + "]\n\n"
            for i in range(40)
        ),
    )
    yield (
        "closures",
        "".join(f"{' ' * i}def f{i}(x):\n{' ' * i} y{i} = x, {f'y{i - 1}' if i else 'x'}\n" for i in range(90))
        + "".join(f"{' ' * i} return f{i + 1 if i < 89 else 0}(y0)\n" for i in reversed(range(90))),
    )
    yield (
        "cycles",
        """
class A(A): pass
class B(C): pass
class C(B): pass
class D(D.E): pass
a = b
b = a
a.b = b.a = a
f = f
x = x.x
@g
def g(x): return g(g)(x)
def h(x=h): return h(h)
class M(nn.Module):
    def __init__(self):
        self.m = self
        self.n = M()
        self.ms = nn.ModuleList([self, M(), self.ms])
    def forward(self, x):
        self.x = self.x.x
        node = self
        while node:
            node = node.m.n[0]
        x = [x, x]
        for _ in x:
            x = [x, self.forward(x), self(x), self.m(x)]
        return self.m.m.m.n.n.ms[0](super().forward(super(M, self)(x)))
    @property
    def p(self): return self.p.p
    def __getattr__(self, name): return self.name
    def __call__(self, *a): return self(*a)
M = torch.compile(M)
M = M()
M = M(M)
torch = torch.torch
""",
    )
    yield (
        "bombs",
        """
def f(x: torch.Tensor):
    a = 10 ** 10 ** 10
    b = "a" * 10 ** 12
    c = [0] * 10 ** 12
    d = 1 << 10 ** 12
    e = 1 / 0, 1 % 0, 1 // 0, 0 ** -1, 2.0 ** 10000, "%d" % "a", "%s %s" % (1,), (1).bit_length.x
    g = [1, 2, 3][::0], (1, 2)[5], {}[1], "abc"[10], b"a"[-7], [1][1e400], "".join(x), [][x], ()[()]
    h = int("x"), int("9" * 100000), float("nan"), range(10 ** 30), range(0, 1, 0), complex("j"), bool(), chr(-1)
    i = {[]: 1, {}: 2, ...: 3}, {*[]}, {**{}}, [*x], {**x}, {[x]}, {1: {}}[[]], 1e999 - 1e999, -1e999j
    for i in range(10 ** 18):
        for j in range(10 ** 18):
            a = a * a
            b = b + b
            c = c + [c]
    x[10 ** 100, ..., None, :: -1, -5:5:0, True, "a", x, (), [], {}] = a
    x.view(10 ** 100).reshape(*[1] * 10 ** 10).expand(-1, 1 / 0).to(torch.float8)
    assert (x, "always true"), 10 ** 10 ** 10
    return f"{10 ** 10 ** 10:{10 ** 10}}" + "{}".format() + "{x.y[z]!r:>{w}}".format(**x) + "%(a)s" % {} + f"{x!r:{x}}"
""",
    )
    yield (
        "odd_calls",
        """
torch.compile()
torch.compile(1)
torch.compile(*a, **b)
torch.compile(model=torch.compile)(torch.compile)
torch.compile(lambda: torch.compile)()
@torch.compile()
@torch.compile(1)
@torch.compile(mode=)
def f(): pass
""".replace("mode=", "mode=x"),
    )
    yield (
        "odd_calls_inside",
        """
@torch.compile
def f(x: torch.Tensor, /, *, y: 'torch.Tensor' = ..., **k: "Optional[") -> "((":
    x.item(1, 2, *x, **x); x.tolist(x); x.nonzero(as_tuple=x); torch.where(); torch.where(*x); torch.where(x, y)
    x[x](x)[x].x = x; del x[x], x.x, x; print(*x, **x); float(); int(x, x); bool(x=x); range(); range(*x); sorted(key=x)
    max(); min(*x, key=None); any(); all(*x); len(); isinstance(); isinstance(x); isinstance(x, ()); hasattr()
    getattr(x); super(); super(x); super(x, x, x); type(); type(x)(x); zip(*x); enumerate(); map(); map(x); filter(None)
    dict(*x, **x)
    torch.nn(); nn.Module(); nn.Module.forward(x); nn.ModuleList(); nn.Sequential(*x); torch.Tensor(); torch.tensor()
    setattr(x, "y", x); setattr(); vars(x)[x] = x; globals()["f"] = f; locals().clear(); exec("x"); eval(x)
    __import__(x)
    with x, x as x, x as (x, [x, *x]), x as x.x, x as x[x]: pass
    for x.x in x: pass
    for x[0], (*x, x) in x: break
    else: x
    try: pass
    except* x as x: pass
    return (yield x)
""".replace("except*", "except"),
    )
    yield (
        "global_and_nonlocal",
        "def f(x):\n    global y, f\n    y = f\n    def g():\n        nonlocal x\n        x = g\n"
        "        return x.item()\n    return g()\n",
    )
    yield (
        "wide_literals",
        "TABLE = {"
        + ", ".join(f"'{i}': ({i}, [{i}])" for i in range(100_000))
        + "}\ndef f(x):\n    return TABLE['1'](x)\n",
    )
    yield (
        "wide_registry",
        "".join(f"class C{i}(nn.Module):\n    def forward(self, x): return x.item()\n" for i in range(2_000))
        + (
            "R = {" + ", ".join(f"'{i}': C{i}" for i in range(2_000)) + "}\n"
            "class M(nn.Module):\n    def __init__(self, k):\n        self.m = R[k]()\n"
            "    def forward(self, x): return self.m(x)\n"
        ),
    )
    yield (
        "wide_union",
        "def f(x, c):\n"
        + "".join(f"    if c == {i}: y = [x, {i}]\n    elif c: y = ({i}, x)\n" for i in range(1_000))
        + "    return y.item()\n",
    )
