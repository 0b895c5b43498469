"""Which results count as equal."""

from __future__ import annotations

from typing import Any

import pytest

from breakscan.prove.call_result import CallResult, leaves
from breakscan.prove.equal import Part, Strictness, differences, tensor_difference
from breakscan.report.measurements import difference_words

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def said(one: torch.Tensor, other: torch.Tensor, exact: torch.Tensor | None = None, *, strict: bool = False) -> str:
    how = Strictness.EAGER if strict else Strictness.COMPILED
    found = tensor_difference(Part.OUTPUT, "x", one, other, exact, how)
    return difference_words(found).removeprefix("x ") if found else ""


def test_equal_tensors_are_equal_nan_and_infinities_included() -> None:
    one = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    assert said(one, one.clone(), strict=True) == ""


@pytest.mark.parametrize(("was", "now"), [(1.0, float("nan")), (float("nan"), 1.0), (float("inf"), 1.0)])
def test_what_is_not_finite_on_one_side_only_differs(was: float, now: float) -> None:
    assert "differs" in said(torch.tensor([was, 0.0]), torch.tensor([now, 0.0]))


def test_the_worst_element_is_named_with_its_place() -> None:
    one = torch.zeros(2, 3)
    other = one.clone()
    other[1, 2] = 0.03
    assert said(one, other) == "differs by 0.03 at [1, 2] (0.03 for 0; allowed 0.0001)"


def test_one_wrong_element_of_a_million_is_not_lost_in_the_mean() -> None:
    one = torch.zeros(1_000_000)
    other = one.clone()
    other[77] = 0.01
    exact = torch.zeros(1_000_000, dtype=torch.float64)
    assert "differs by 0.01 at [77]" in said(one, other, exact)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_the_worst_element_of_a_large_tensor_is_named(dtype: torch.dtype) -> None:
    one = torch.zeros(3, 100_000, dtype=dtype)
    other = one.clone()
    other[2, 99_998] = 7
    assert "at [2, 99998]" in said(one, other)
    if dtype is torch.float32:
        other[0, 3] = 2
        assert "differs by 7 at [2, 99998]" in said(one, other, one.double(), strict=True)


def test_a_baseline_that_is_finite_only_in_part_is_compared_by_tolerance() -> None:
    one = torch.ones(300_000)
    one[-1] = float("inf")
    other = one.clone()
    other[0] = 1.001
    exact = torch.full((300_000,), 1.001, dtype=torch.float64)
    assert "differs by 0.001" in said(one, other, exact)
    assert "differs by 0.001" in said(one.flip(0), other.flip(0), exact)


def test_rounding_that_is_no_worse_than_the_references_own_is_equal() -> None:
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(4096, generator=generator, dtype=torch.float64) * 1000
    one = (exact + 2e-2 * torch.randn(4096, generator=generator, dtype=torch.float64)).float()
    other = (exact + 2e-2 * torch.randn(4096, generator=generator, dtype=torch.float64)).float()
    near_zero = exact.abs() < 10
    assert bool(near_zero.any())
    assert said(one, other, exact) == ""
    assert "differs" in said(one, other)


def test_eager_code_must_pass_both_rules() -> None:
    exact = torch.ones(4096, dtype=torch.float64)
    one = exact.to(torch.bfloat16)
    other = (exact + 8e-3).to(torch.bfloat16)
    assert said(one, other, exact) == ""
    assert "differs by 0.008" in said(one, other, exact, strict=True)


def test_what_is_left_where_large_terms_cancel_may_be_rounded_like_them() -> None:
    generator = torch.Generator().manual_seed(0)
    terms = torch.randn(4096, generator=generator, dtype=torch.float64) * 100
    others = torch.randn(4096, generator=generator, dtype=torch.float64) * 100
    others[:8] = 0.03 - terms[:8]
    exact = terms + others
    one = (terms.bfloat16() + others.bfloat16()).double()
    other = (one + 0.3 * torch.randn(4096, generator=generator, dtype=torch.float64)).bfloat16()
    assert said(one.bfloat16(), other, exact, strict=True) == ""
    assert "differs" in said(one.bfloat16(), other, strict=True)
    other[3] += 40
    assert "at [3]" in said(one.bfloat16(), other, exact, strict=True)


def test_dtype_and_shape_count() -> None:
    assert said(torch.zeros(2), torch.zeros(2, dtype=torch.float64)) == "is float64, not float32"
    assert said(torch.zeros(2), torch.zeros(2, 1)) == "has shape 2×1, not 2"
    assert said(torch.zeros(2), torch.tensor(0.0)) == "has shape (), not 2"


def test_whole_numbers_must_be_the_same() -> None:
    assert said(torch.tensor([1, 2]), torch.tensor([1, 3])) == "is 3 at [1], not 2"
    assert said(torch.tensor([True]), torch.tensor([False])) == "is False at [0], not True"


def test_complex_numbers() -> None:
    one = torch.tensor([1 + 1j])
    assert said(one, one.clone()) == ""
    assert "differs by 1" in said(one, one + 1)


def outcome(**given: Any) -> CallResult:
    return CallResult(**given)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({}, {}, []),
        ({"error": "ValueError"}, {}, ["it returns where the original raises ValueError"]),
        (
            {},
            {"error": "KeyError", "error_text": "'x'"},
            ["it raises KeyError ('x') where the original returns"],
        ),
        (
            {"outputs": {"output": torch.zeros(1)}, "others": {"output": ""}},
            {"others": {"output": "0.0"}},
            ["output is missing", "output is 0.0, not a tensor"],
        ),
        ({"others": {"output": "1"}}, {"others": {"output": "2"}}, ["output is 2, not 1"]),
        ({"others": {"output": "1.5"}}, {"others": {"output": "1.5000001"}}, []),
        ({"others": {"output": "1.5"}}, {"others": {"output": "1.51"}}, ["output is 1.51, not 1.5"]),
        ({"others": {"output": "100000"}}, {"others": {"output": "100001"}}, ["output is 100001, not 100000"]),
        ({"others": {"output[0]": "1"}}, {"others": {}}, ["output[0] is missing"]),
        ({"aliases": {"output": "args[0]"}}, {}, ["output shares its memory with nothing, not args[0]"]),
        ({"gradients": {"w": torch.zeros(1)}}, {}, ["the gradient of w is missing"]),
        ({}, {"changed": {"self.mean": torch.zeros(1)}}, ["self.mean is changed by the call"]),
        ({"changed": {"self.mean": torch.zeros(1)}}, {}, ["self.mean is not changed by the call"]),
        ({"changes": {"self.n": "1"}}, {}, ["self.n is unchanged after the call, not 1"]),
        ({"rng": {"random": "a"}}, {"rng": {"random": "b"}}, ["random numbers are drawn otherwise: random"]),
    ],
)
def test_all_that_a_call_comes_to_is_compared(one: Any, other: Any, expected: list[str]) -> None:
    found = differences([outcome(**one)], [outcome(**other)], None, Strictness.EAGER)
    assert [difference_words(difference) for difference in found] == expected


def test_the_call_is_named_from_the_second_on() -> None:
    good, bad = outcome(others={"output": "1"}), outcome(others={"output": "2"})
    assert [difference_words(d) for d in differences([good, good], [good, bad], None, Strictness.EAGER)] == [
        "output is 2, not 1 in call 2"
    ]


def test_a_result_is_taken_apart() -> None:
    from collections import namedtuple
    from dataclasses import dataclass

    @dataclass
    class Result:
        loss: int
        parts: list[int]

    Pair = namedtuple("Pair", "first second")
    assert dict(leaves((1, {"a": 2, "b": [3]}))) == {"output 0": 1, "output 1['a']": 2, "output 1['b'][0]": 3}
    assert dict(leaves(Result(1, [2]))) == {"output.loss": 1, "output.parts[0]": 2}
    assert dict(leaves(Pair(1, 2))) == {"output.first": 1, "output.second": 2}
    assert dict(leaves(())) == {"output": ()}


def test_a_tensor_may_replace_the_number_that_it_holds_where_types_may_differ() -> None:
    one = CallResult(others={"output 0": "2.5"}, changes={"self.steps": "3"})
    other = CallResult(
        outputs={"output 0": torch.tensor(2.5)}, others={"output 0": ""}, changed={"self.steps": torch.tensor(3)}
    )
    numbers = Strictness.EAGER.but(types=False)
    assert differences([one], [other], None, numbers) == []
    assert differences([one], [other], None, Strictness.EAGER) != []
    for wrong in (
        CallResult(**{**vars_of(other), "outputs": {"output 0": torch.tensor(2.0)}}),
        CallResult(**{**vars_of(other), "changed": {"self.steps": torch.tensor(4)}}),
        CallResult(**{**vars_of(other), "outputs": {"output 0": torch.tensor([2.5])}}),
    ):
        assert differences([one], [wrong], None, numbers) != []


def test_what_was_none_and_holds_a_tensor_is_no_number() -> None:
    """Of the attribute, the text is gone and a tensor is there, in both runs."""
    one = CallResult(changes={"self.scale": None}, changed={"self.scale": torch.tensor(6.5)})
    numbers = Strictness.EAGER.but(types=False)
    assert differences([one], [CallResult(**vars_of(one))], None, numbers) == []
    wrong = CallResult(**{**vars_of(one), "changed": {"self.scale": torch.tensor(6.0)}})
    assert differences([one], [wrong], None, numbers) != []


def vars_of(result: CallResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in CallResult.__slots__}
