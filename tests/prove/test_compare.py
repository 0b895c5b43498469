"""Which results count as equal."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from breakscan.prove.call_result import CallResult, leaves, result_of
from breakscan.prove.equal import Change, Expected, Part, places_of
from breakscan.report.measurements import difference_words

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def of(tensor: torch.Tensor) -> list[CallResult]:
    return [CallResult(outputs={"x": tensor}, others={"x": ""})]


def said(one: torch.Tensor, other: torch.Tensor, exact: torch.Tensor | None = None, *, strict: bool = False) -> str:
    expected = Expected(of(one), None if exact is None else of(exact))
    return ", ".join(
        difference_words(found).removeprefix("x ") for found in expected.differences(of(other), eager=strict)
    )


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
    one[-1] = inf
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


def test_errors_within_rounding_show_in_higher_precision() -> None:
    exact = torch.linspace(1, 2, 4096, dtype=torch.float64)
    expected = Expected(of(exact.to(torch.bfloat16)), of(exact))
    assert expected.differences(of((exact * 1.001).to(torch.bfloat16)), eager=True) == []
    assert [one.change for one in expected.differences_when_exact(of(exact * 1.001))] == [Change.ERROR]
    assert expected.differences_when_exact(of((exact.float() * 1.0000001).double())) == []
    expected.differences_when_exact(of(exact * 1.002))
    expected.know(expected.distances(exact=True))
    assert expected.differences_when_exact(of(exact * 1.001)) == []
    assert expected.differences_when_exact(of(exact * 1.01)) != []


def test_parts_are_found_at_other_places() -> None:
    one = CallResult(outputs={"output": torch.ones(2)}, others={"output": ""})
    outputs = {"output 0": torch.zeros(2), "output 1": torch.ones(2)}
    pair = CallResult(outputs=outputs, others={"output": "tuple", "output 0": "", "output 1": ""})
    assert places_of(one, pair) == {"output": "output 1"}
    assert places_of(pair, one) == {}
    expected = Expected([one])
    assert expected.differences([pair], eager=True) != []
    expected.moves = True
    assert expected.differences([pair], eager=True) == []


def test_what_further_runs_of_the_unchanged_program_differ_by_is_noise() -> None:
    generator = torch.Generator().manual_seed(0)
    true = torch.randn(4096, generator=generator)
    one, again, other = (true + 1e-3 * torch.randn(4096, generator=generator) for _ in range(3))
    expected = Expected(of(one))
    assert expected.differences(of(other), eager=True)
    expected.differences(of(again), eager=True)
    assert not expected.drowns(Part.OUTPUT, "x")
    expected.know(expected.distances())
    assert expected.differences(of(other), eager=True) == []
    assert expected.differences(of(one * 1.01), eager=True)
    expected.differences(of(torch.randn(4096, generator=generator)), eager=True)
    assert expected.drowns(Part.OUTPUT, "x")


def test_other_calls_are_as_inexact_for_their_size() -> None:
    one = torch.linspace(1, 2, 4096)
    exact = one.double() + 1e-3 * torch.randn(4096, generator=torch.Generator().manual_seed(0))
    (large,), (other,), (wrong,) = (of(100 * tensor) for tensor in (one, exact.float(), one * 1.01))
    expected = Expected(of(one), of(exact)).of_other_call(large)
    assert expected.differences([other], eager=True) == []
    assert expected.differences([wrong], eager=True)
    assert Expected([large]).differences([other], eager=True)


def test_what_is_nothing_but_rounding_is_no_noise_and_no_error() -> None:
    """As the gradient of a bias to which softmax makes no difference."""
    generator = torch.Generator().manual_seed(0)
    one, again, other = (1e-9 * torch.randn(64, generator=generator) for _ in range(3))
    expected = Expected(of(one), of(1e-17 * torch.randn(64, generator=generator, dtype=torch.float64)))
    assert expected.differences(of(other), eager=True) == []
    expected.differences(of(again), eager=True)
    assert not expected.drowns(Part.OUTPUT, "x")
    expected.know(expected.distances())
    assert expected.differences(of(other * 1e3), eager=True)


def test_of_large_tensors_samples_and_figures_of_the_whole_are_compared() -> None:
    def result(value: torch.Tensor) -> list[CallResult]:
        return [result_of(lambda: value, backward=False, snapshots=(), sampled=True)]

    one = torch.linspace(1, 2, 600 * 1024).view(600, 1024)
    kept = result(one)
    assert kept[0].outputs["output"].numel() < one.numel() / 4
    assert Expected(kept).differences(result(one.clone()), eager=True) == []
    (scaled,) = Expected(kept).differences(result(one * 1.01), eager=True)
    assert (scaled.change, len(scaled.at)) == (Change.ERROR, 2)
    assert scaled.was == f"{float(one[scaled.at]):.6g}"
    other = one.clone()
    other[-1, -1] = 3.0
    assert Expected(kept).differences(result(other), eager=True) != []
    shaped, *_ = Expected(kept).differences(result(one.view(1024, 600)), eager=True)
    assert (shaped.change, shaped.was) == (Change.SHAPE, "600×1024")


def test_other_random_numbers_in_higher_precision_allow_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    one, exact = (torch.randn(4096, generator=generator) for _ in range(2))
    assert Expected(of(one), of(exact.double())).differences(of(one * 1.01), eager=True)


def test_integers_that_rounding_decides_are_near_ties() -> None:
    exact = torch.arange(1000)
    one, other, wrong = exact.clone(), exact.clone(), exact + 1
    one[3], other[[3, 5]] = 0, 0
    expected = Expected(of(one), of(exact))
    assert [(found.change, found.at) for found in expected.differences(of(other), eager=True)] == [(Change.TIE, (5,))]
    assert [found.change for found in expected.differences(of(wrong), eager=True)] == [Change.ELEMENT]
    assert [found.change for found in Expected(of(one)).differences(of(other), eager=True)] == [Change.ELEMENT]
    few = Expected(of(one[:5]), of(exact[:5]))
    assert [found.change for found in few.differences(of(wrong[:5]), eager=True)] == [Change.ELEMENT]


def test_small_numbers_are_compared_relative_to_their_tensor() -> None:
    exact = torch.full((64,), 1e-9, dtype=torch.float64)
    assert "differs by 1e-12" in said(exact, exact * 1.001, exact, strict=True)
    gradients, others = ([CallResult(gradients={"w": torch.full((8,), size)})] for size in (1e-6, 1.1e-6))
    assert Expected(gradients).differences(others, eager=True)
    one, other = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 3e-6])
    assert said(one, other, one.double(), strict=True) == ""
    assert said(one, other * 10, one.double(), strict=True)


def test_what_is_left_where_large_terms_cancel_may_be_rounded_like_them() -> None:
    generator = torch.Generator().manual_seed(0)
    terms = torch.randn(4096, generator=generator, dtype=torch.float64) * 100
    others = torch.randn(4096, generator=generator, dtype=torch.float64) * 100
    others[:8] = 0.03 - terms[:8]
    exact = terms + others
    one = (terms.bfloat16() + others.bfloat16()).double()
    other = (one + 0.3 * torch.randn(4096, generator=generator, dtype=torch.float64)).bfloat16()
    assert said(one.bfloat16(), other, exact, strict=True) == ""
    other[3] += 40
    assert "at [3]" in said(one.bfloat16(), other, exact, strict=True)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), "is float64, not float32"),
        (torch.zeros(2), torch.zeros(2, 1), "has shape 2×1, not 2"),
        (torch.zeros(2), torch.tensor(0.0), "has shape (), not 2"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "is 3 at [1], not 2"),
        (torch.tensor([True]), torch.tensor([False]), "is False at [0], not True"),
        (torch.tensor([1 + 1j]), torch.tensor([1 + 1j]), ""),
        (torch.tensor([nan, inf, -inf]), torch.tensor([nan, inf, -inf]), ""),
        (torch.tensor([1.0, 0.0]), torch.tensor([nan, 0.0]), "differs by inf at [0] (nan for 1; allowed 0.0001)"),
        (torch.tensor([nan, 0.0]), torch.tensor([1.0, 0.0]), "differs by inf at [0] (1 for nan; allowed 0.0001)"),
        (torch.tensor([inf, 0.0]), torch.tensor([1.0, 0.0]), "differs by inf at [0] (1 for inf; allowed 0.0001)"),
        (torch.zeros(2, 3), torch.eye(3)[1:] * 0.03, "differs by 0.03 at [0, 1] (0.03 for 0; allowed 0.0001)"),
        (torch.tensor([1 + 1j]), torch.tensor([2 + 1j]), "differs by 1 at [0] ((2+1j) for (1+1j); allowed 0.0001)"),
    ],
)
def test_dtypes_shapes_and_elements_count(one: torch.Tensor, other: torch.Tensor, words: str) -> None:
    assert said(one, other) == words


def number(value: float) -> dict[str, Any]:
    dtype = torch.float64 if isinstance(value, float) else None
    return {"outputs": {"output": torch.tensor(value, dtype=dtype)}, "others": {"output": type(value).__name__}}


ONE = {"output": torch.zeros(1)}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({}, {}, ""),
        ({"error": "ValueError"}, {}, "it returns where the original raises ValueError"),
        ({}, {"error": "KeyError", "error_text": "'x'"}, "it raises KeyError ('x') where the original returns"),
        ({"outputs": ONE, "others": {"output": ""}}, {"others": {"output": "None"}}, "output is None, not a tensor"),
        ({"others": {"output": "'a'"}}, {"others": {"output": "'b'"}}, "output is 'b', not 'a'"),
        (
            {"others": {"output": "dict of 'a', 'b'"}},
            {"others": {"output": "dict of 'b', 'a'"}},
            "output is dict of 'b', 'a', not dict of 'a', 'b'",
        ),
        (number(1), number(2), "output is 2, not 1"),
        (number(1.5), number(1.5000001), ""),
        (number(1.5), number(1.51), "output differs by 0.01 (1.51 for 1.5; allowed 1e-05)"),
        (number(100000), number(100001), "output is 100001, not 100000"),
        (number(1), number(True), "output is bool, not int"),
        ({"others": {"output[0]": "1"}}, {"others": {}}, "output[0] is missing"),
        (
            {"outputs": ONE, "aliases": {"output": "args[0]"}},
            {"outputs": ONE},
            "output shares its memory with nothing, not args[0]",
        ),
        (
            {"outputs": ONE, "strides": {"output": "[2, 1]"}},
            {"outputs": ONE, "strides": {"output": "[1, 2]"}},
            "output has strides [1, 2], not [2, 1]",
        ),
        ({"gradients": {"w": torch.zeros(1)}}, {}, "the gradient of w is missing"),
        ({}, {"changed": {"self.mean": torch.zeros(1)}}, "self.mean is changed by the call"),
        ({"changed": {"self.mean": torch.zeros(1)}}, {}, "self.mean is not changed by the call"),
        ({"changes": {"self.n": "'a'"}}, {}, "self.n is unchanged after the call, not 'a'"),
        ({}, {"changed": {"self.n": torch.tensor(1)}}, "self.n is 1 after the call, not unchanged"),
        ({"rng": {"random": "a"}}, {"rng": {"random": "b"}}, "random numbers are drawn otherwise: random"),
    ],
)
def test_all_that_a_call_comes_to_is_compared(one: Any, other: Any, expected: str) -> None:
    found = Expected([CallResult(**one)]).differences([CallResult(**other)], eager=True)
    assert ", ".join(map(difference_words, found)) == expected


def test_the_call_is_named_from_the_second_on() -> None:
    good, bad = CallResult(**number(1)), CallResult(**number(2))
    (found,) = Expected([good, good]).differences([good, bad], eager=True)
    assert difference_words(found) == "output is 2, not 1 in call 2"


def test_a_result_is_taken_apart() -> None:
    from collections import deque, namedtuple
    from dataclasses import dataclass

    @dataclass
    class Result:
        loss: int
        parts: list[int]

    class Slots:
        __slots__ = ("first", "second")

        def __init__(self, first: int) -> None:
            self.first = first

    Pair = namedtuple("Pair", "first second")
    pair = Pair(3, 4)

    def numbers(result: object) -> dict[str, object]:
        return {path: leaf for path, leaf in leaves(result) if isinstance(leaf, int)}

    assert numbers((1, {"a": 2, "b": [3]})) == {"output 0": 1, "output 1['a']": 2, "output 1['b'][0]": 3}
    assert numbers(Result(1, [2])) == {"output.loss": 1, "output.parts[0]": 2}
    assert numbers(Pair(1, 2)) == {"output.first": 1, "output.second": 2}
    assert numbers(deque([1, 2])) == {"output 0": 1, "output 1": 2}
    assert numbers(Slots(1)) == {"output.first": 1}
    assert numbers(lambda: pair) == {"output:pair.first": 3, "output:pair.second": 4}
    assert dict(leaves([()])) == {"output": [()], "output 0": ()}


def test_a_tensor_that_replaces_a_number_is_named_and_its_value_compared() -> None:
    one = CallResult(
        outputs={"output 0": torch.tensor(2.5, dtype=torch.float64)},
        others={"output 0": "float"},
        changed={"self.steps": torch.tensor(3)},
        changes={"self.steps": "int"},
    )
    given: dict[str, Any] = {"others": {"output 0": ""}, "changes": {"self.steps": "gone"}}

    def found(output: torch.Tensor, steps: torch.Tensor) -> list[tuple[str, Change]]:
        other = CallResult(outputs={"output 0": output}, changed={"self.steps": steps}, **given)
        return [(each.path, each.change) for each in Expected([one]).differences([other], eager=True)]

    both = [("output 0", Change.NUMBER), ("self.steps", Change.NUMBER)]
    assert found(torch.tensor(2.5), torch.tensor(3)) == both
    assert ("output 0", Change.ERROR) in found(torch.tensor(2.0), torch.tensor(3))
    assert ("self.steps", Change.ELEMENT) in found(torch.tensor(2.5), torch.tensor(4))
    assert ("output 0", Change.NUMBER) not in found(torch.tensor([2.5]), torch.tensor(3))


def test_what_was_none_and_holds_a_tensor_is_no_number() -> None:
    """Of the attribute, the text is gone and a tensor is there, in both runs."""
    gone = {"self.scale": "gone"}
    one, wrong = (CallResult(changes=gone, changed={"self.scale": torch.tensor(size)}) for size in (6.5, 6.0))
    assert Expected([one]).differences([one], eager=True) == []
    assert Expected([one]).differences([wrong], eager=True) != []
