"""Random programs with branches on tensors compute the same with ``where``; if it is safe, gradients are equal, too."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.result import FileRepair
from breakscan.rulebook.config import load_settings

SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
UNARY = ("{}.sin()", "-{}", "{}.abs()", "torch.tanh({})", "{}.clamp(min=0)", "{} * 0.5", "{} / 2", "{} ** 2", "2 - {}")
STEEP = ("{}.sqrt()", "{}.log()", "1 / {}", "{}.exp()", "{} ** 0.5")
BINARY = ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.where({} > 0, {}, 0.5)")
TESTS = (
    *(
        "{}.sum() > 0",
        "not {}.any()",
        "{}.sum()",
        "torch.isnan({}).any()",
        "torch.isfinite({}).all()",
        "0 < {}.sum() < 2",
    ),
    *("not ({} > 0).all()", "x.dim() == 1 and {}.mean() > 0", "{}.max() > 1"),
)
NAMES = ("a", "b", "n")


@st.composite
def values(draw: st.DrawFn, names: tuple[str, ...] = NAMES) -> str:
    """An elementwise expression of some tensors."""
    name = draw(st.sampled_from(names))
    made = draw(st.sampled_from((*UNARY, *UNARY, *STEEP))).format(name)
    if draw(st.booleans()):
        form = draw(st.sampled_from(BINARY))
        made = form.format(*[f"({made})", *[draw(st.sampled_from(names)) for _ in range(form.count("{}") - 1)]])
    return made


@st.composite
def conditions(draw: st.DrawFn) -> str:
    one = draw(st.sampled_from(TESTS)).format(draw(st.sampled_from(NAMES)))
    if draw(st.integers(0, 2)):
        return one
    other = draw(st.sampled_from(TESTS)).format(draw(st.sampled_from(NAMES)))
    return f"({one}) {draw(st.sampled_from(('and', 'or')))} ({other})"


@st.composite
def sides(draw: st.DrawFn) -> list[str]:
    """The assignments of one side."""
    targets = draw(st.lists(st.sampled_from(NAMES[:2]), min_size=1, max_size=2, unique=True))
    helper = draw(st.booleans())
    read = ("a", "b", "h") if helper else NAMES
    return [*([f"h = {draw(values())}"] if helper else []), *(f"{one} = {draw(values(read))}" for one in targets)]


def block(head: str, lines: list[str]) -> list[str]:
    return [f"    {head}:", *(f"        {line}" for line in lines)]


@st.composite
def programs(draw: st.DrawFn) -> str:
    body = [f"    a = {draw(values(('x',)))}", f"    b = {draw(values(('x', 'a')))}", "    n = x.cos()"]
    kind = draw(st.sampled_from(("one", "two", "chain", "early", "returns", "ternary", "augmented", "rows")))
    test = draw(conditions())
    if kind in ("one", "two", "chain"):
        body += block(f"if {test}", draw(sides()))
        if kind == "chain":
            body += block(f"elif {draw(conditions())}", draw(sides()))
        if kind != "one":
            body += block("else", draw(sides()))
        return "\n".join([*body, "    return a.cos() + b"])
    if kind == "augmented":
        body += block(f"if {test}", [f"a {draw(st.sampled_from(('+=', '*=', '-=')))} {draw(values(('b', 'n')))}"])
        return "\n".join([*body, "    return a.cos() + b"])
    if kind == "ternary":
        return "\n".join([*body, f"    return ({draw(values())} if {test} else {draw(values())}) + a"])
    body += block(f"if {test}", [f"return {draw(values())}"])
    if kind == "rows":
        body += block(f"if {draw(conditions())}", [f"return {draw(values())}"])
    if kind == "returns":
        return "\n".join([*body, *block("else", [f"return {draw(values())}"])])
    if draw(st.booleans()):
        body.append(f"    c = {draw(values())}")
        return "\n".join([*body, "    return c * 2"])
    return "\n".join([*body, f"    return {draw(values())}"])


def repaired(text: str, *, unsafe: bool) -> FileRepair:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.py"
        path.write_text(text, encoding="utf-8")
        config = replace(load_settings(Path(folder), None, target_torch="2.13", no_cache=True), regions="all")
        return repair_file(path, (), config, WantedRewrites(unsafe=unsafe, ids=frozenset({"where"})))


def ran(text: str, given: Any) -> tuple[Any, Any]:
    """What a program returns, and the gradient of its sum."""
    names: dict[str, Any] = {}
    exec(compile(text, "case", "exec"), names)
    x = given.clone().requires_grad_(given.is_floating_point())
    result = names["f"](x)
    if not result.requires_grad:
        return result, None
    result.sum().backward()
    return result.detach(), x.grad


def inputs(torch: Any) -> list[Any]:
    vectors = [[-2.0, -0.5, 0.5, 2.0], [1.0] * 4, [-1.0] * 4, [0.0] * 4, [3.0, 0.1, 0.2, 1.5]]
    return [torch.tensor(one) for one in vectors]


@pytest.mark.torch
@SETTINGS
@given(programs())
def test_what_is_safe_keeps_values_and_gradients(body: str) -> None:
    torch = pytest.importorskip("torch")
    from torch.testing import assert_close

    before = f"import torch\n\n\ndef f(x: torch.Tensor):\n{body}\n"
    found = repaired(before, unsafe=False)
    assert not any("a bug in" in reason.text for one in found.refused for reason in one.reasons), found.refused
    assume(found.changed)
    whole = [torch.tensor([-2, 0, 1, 3]), torch.tensor([1, 1, 1, 1])]
    odd = [torch.tensor([float("nan"), 1.0, 2.0, 3.0]), torch.tensor([float("inf"), 1.0, -2.0, 3.0])]
    for one in (*inputs(torch), torch.tensor([0.5, 1.0], dtype=torch.float64), *whole, *odd):
        try:
            old = ran(before, one)
        except RuntimeError:
            continue  # such as an in-place change of a tensor that autograd still needs
        new = ran(found.after, one)
        assert_close(new[0], old[0], equal_nan=True)
        # A gradient is promised for finite values: that of NaN itself is no guide to anything.
        if old[1] is not None and not (one.isnan() | one.isinf()).any():
            assert_close(new[1], old[1], equal_nan=True)


@pytest.mark.torch
@SETTINGS
@given(programs())
def test_what_is_unsafe_keeps_values(body: str) -> None:
    torch = pytest.importorskip("torch")
    from torch.testing import assert_close

    before = f"import torch\n\n\ndef f(x: torch.Tensor):\n{body}\n"
    found = repaired(before, unsafe=True)
    assert not any("a bug in" in reason.text for one in found.refused for reason in one.reasons), found.refused
    assume(found.changed)
    for one in inputs(torch):
        with torch.no_grad():
            assert_close(ran(found.after, one)[0], ran(before, one)[0], equal_nan=True)
