"""Random branches whose sides may have different dtypes: a safe ``where`` keeps dtype and values for all inputs."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.support.dtypes import compare
from breakscan.model.facts import Dtype, DtypeOf, Exactly, Input, ResultOf, Symbol
from breakscan.rulebook.config import load_settings
from breakscan.rulebook.torch_facts.operators import names, operator
from breakscan.rulebook.torch_facts.promotion import DTYPES

VERSION = "2.13"
DTYPES_TRIED = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")
PARAMETERS = ("torch.Tensor", "torch.BoolTensor", "torch.LongTensor", "torch.FloatTensor")


def _methods() -> list[str]:
    """Every method that needs no arguments and computes element by element, and whose dtype is measured."""
    torch = pytest.importorskip("torch")
    found = []
    for name in sorted(names(VERSION)):
        known = operator(VERSION, name)
        if known is None or name.endswith("_") or not (known.result == "tensor" and known.elementwise is True):
            continue
        try:
            for dtype in (torch.float32, torch.int64, torch.bool):
                with contextlib.suppress(RuntimeError, NotImplementedError):
                    getattr(torch.ones(2, dtype=dtype), name)()
                    found.append(name)
                    break
        except (TypeError, AttributeError):
            continue
    return found


FORMS = (*(f"{{}}.{name}()" for name in _methods()), "{} + 1", "{} * 0.5", "{} / 2", "-{}", "~{}", "{} - 1", "2 * {}")


@st.composite
def sides(draw: st.DrawFn) -> str:
    made = "a"
    for _ in range(draw(st.integers(0, 2))):
        made = draw(st.sampled_from(FORMS)).format(f"({made})" if made != "a" else made)
    return made


@st.composite
def programs(draw: st.DrawFn) -> str:
    annotation = draw(st.sampled_from(PARAMETERS))
    lines = ["import torch", "", "", f"def f(x: torch.FloatTensor, a: {annotation}):"]
    yes, no = draw(sides()), draw(sides())
    if draw(st.booleans()):
        lines.append(f"    return {yes} if x.sum() > 0 else {no}")
    else:
        lines += ["    if x.sum() > 0:", f"        a = {yes}", "    else:", f"        a = {no}", "    return a"]
    return "\n".join([*lines, ""])


def safely_repaired(text: str) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.py"
        path.write_text(text, encoding="utf-8")
        config = replace(load_settings(Path(folder), None, target_torch=VERSION, no_cache=True), regions="all")
        found = repair_file(path, (), config, WantedRewrites(unsafe=False, ids=frozenset({"where"})))
    assert not any("a bug in" in reason.text for one in found.refused for reason in one.reasons), found.refused
    return found.after if found.changed else None


def outcome(text: str, x: Any, a: Any) -> tuple[Any, ...]:
    scope: dict[str, Any] = {}
    exec(compile(text, "case", "exec"), scope)
    try:
        result = scope["f"](x, a.clone())
    except (RuntimeError, TypeError, NotImplementedError, AttributeError) as error:
        return "raises", type(error)
    return result.dtype, result


@pytest.mark.torch
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_a_safe_choice_keeps_the_dtype(text: str) -> None:
    torch = pytest.importorskip("torch")
    after = safely_repaired(text)
    if after is None:
        return
    allowed = {"BoolTensor": ("bool",), "LongTensor": ("int64",), "FloatTensor": ("float16", "float32", "float64")}
    annotation = next((kind for kind in allowed if f"a: torch.{kind}" in text), None)
    for name in allowed[annotation] if annotation is not None else DTYPES_TRIED:
        a = torch.tensor([0, 1, 3]).to(getattr(torch, name))
        for x in (torch.ones(2), -torch.ones(2)):
            old, new = outcome(text, x, a), outcome(after, x, a)
            assert old[0] == new[0], (after, name, old, new)
            if old[0] != "raises":
                torch.testing.assert_close(new[1], old[1], equal_nan=True)


X = Symbol("x", (1,))


def _of(operator_name: str, dtype: Dtype) -> ResultOf:
    return ResultOf(operator_name, (Input(dtype, frozenset({X})),))


def test_the_square_of_a_bool_is_no_bool() -> None:
    flag = DtypeOf(X, "bool")
    found = compare(VERSION, _of("square", flag), flag)
    assert not found.same
    assert found.when == "`x` is bool"
    assert compare(VERSION, _of("square", DtypeOf(X, "float")), DtypeOf(X, "float")).same


def test_what_is_not_measured_is_not_the_same() -> None:
    x = DtypeOf(X, "float")
    assert not compare(VERSION, _of("no_such_operator", x), x).same


def test_a_side_that_raises_is_reported() -> None:
    found = compare(VERSION, _of("neg", DtypeOf(X)), DtypeOf(X))
    assert not found.same
    assert found.raises
    assert found.when == "`x` is bool"


@pytest.mark.parametrize("dtype", [one for one in DTYPES if not one.startswith("complex")])
def test_an_exact_dtype_is_compared_with_a_conversion(dtype: str) -> None:
    converted = _of("double", Exactly(dtype))
    assert compare(VERSION, converted, Exactly("float64")).same
    assert compare(VERSION, converted, Exactly(dtype)).same is (dtype == "float64")
