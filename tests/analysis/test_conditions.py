"""A finding that does not hold on every path says under which condition it does, and none is made on no path."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from breakscan.findings import CheckResult, Confidence


@pytest.fixture
def found(check: Callable[..., CheckResult]) -> Callable[..., list[tuple[str, str, str | None]]]:
    """The rule, confidence and condition of each finding in a snippet, in order."""

    def run(source: str) -> list[tuple[str, str, str | None]]:
        return [(f.rule, f.confidence.value, f.condition) for f in check(source, regions="all").findings]

    return run


SURE = Confidence.CERTAIN.value
CONDITIONAL = Confidence.CONDITIONAL.value


def test_helpers_around_the_tests_of_torch_are_settled(found) -> None:
    assert not found(
        """
        def traces() -> bool:
            try:
                import torch

                return torch.compiler.is_compiling()
            except Exception:
                return False

        def tracing(t=None) -> bool:
            state = traces() or torch.jit.is_tracing()
            if t is not None:
                state |= t.is_cuda
            return state

        def may_stop(x):
            if torch.jit.is_scripting():
                return False
            if torch.jit.is_tracing() or traces():
                return False
            return not x.requires_grad

        def f(x):
            if not tracing(x) and x.sum() > 0:
                return x
            rounds = range(8) if may_stop(x) else ()
            for i in range(8):
                if i in rounds and bool(x.any()):
                    break
                x = x * 2
            return x
        """
    )


def test_a_helper_that_also_asks_for_something_else_is_not_settled(found) -> None:
    assert [rule for rule, _, _ in found(
        """
        def ready(x) -> bool:
            if x.is_cuda:
                return True
            return not torch.compiler.is_compiling()

        def f(x):
            if ready(x) and x.sum() > 0:
                return x
            return x * 2
        """
    )] == ["BRK101"]  # fmt: skip


def test_a_tensor_for_a_parameter_that_promises_a_number(found) -> None:
    assert found(
        """
        def rows(n: int, wide=False):
            if wide:
                n = n + 1
            return torch.arange(n)

        def f(x: torch.Tensor):
            return rows(x.max(), x.any())
        """
    ) == [("BRK101", CONDITIONAL, "`wide` is a tensor"), ("BRK310", CONDITIONAL, "`n` is a tensor")]


def test_a_guessed_tensor_does_not_override_a_promise(found) -> None:
    assert not found(
        """
        def rows(n: int):
            return torch.arange(n)

        def f(x):
            return rows(x.max())
        """
    )


def test_a_tensor_in_a_tuple_that_promises_numbers(found) -> None:
    assert found(
        """
        def pad(x: torch.Tensor, paddings: tuple[int, int]):
            left, right = paddings
            if right > 0:
                return x
            return x * 2

        def f(x: torch.Tensor):
            return pad(x, (0, x.max()))
        """
    ) == [("BRK101", CONDITIONAL, "`paddings` is a tensor")]


def test_a_condition_is_passed_on_with_an_argument(found) -> None:
    assert found(
        """
        def area(x: torch.Tensor, limit: float | None = None):
            if limit is None or x.sum() == 0:
                return x
            return x * limit

        def f(x: torch.Tensor, limit: float | None = None):
            return area(x, limit)
        """
    ) == [("BRK101", CONDITIONAL, "`limit` is given")]


def test_a_tensor_on_either_side_of_a_test_keeps_its_condition(found) -> None:
    assert found(
        """
        def crops(x: torch.Tensor, sizes: torch.Tensor | None = None):
            if sizes is None:
                sizes = [3] * len(x)
            return [row[: size // 2] for row, size in zip(x, sizes)]
        """
    ) == [("BRK211", CONDITIONAL, "`sizes` is given")]


def test_a_tensor_in_place_of_a_literal_keeps_its_condition(found) -> None:
    assert found(
        """
        def step(x: torch.Tensor, stops: list):
            hit = False
            if len(stops):
                hit = x.sum() > 0
            if hit:
                return x
            return x * 2
        """
    ) == [("BRK101", CONDITIONAL, "`len(stops)`")]


def test_what_a_test_makes_is_not_used_under_its_opposite(found) -> None:
    assert not found(
        """
        class Net(nn.Module):
            def forward(self, x: torch.Tensor, position: torch.Tensor | None = None):
                start = 0
                if position is not None:
                    start = position[0]
                if position is None:
                    x = x + torch.arange(start, start + 4)
                count = 3
                if self.training:
                    count = x.sum()
                if self.training is False and 2 >= count:
                    x = x * 2
                return x
        """
    )


def test_a_union_keeps_its_doubt_in_an_attribute(found) -> None:
    assert found(
        """
        from typing import Tuple, Union

        class Net(nn.Module):
            def __init__(self, ratio: Union[torch.Tensor, Tuple[float, float]] = (0.3, 3.3)):
                super().__init__()
                self.ratio = ratio

            def forward(self, x: torch.Tensor):
                if self.ratio[0] < 1.0:
                    x = x + 1
                return x
        """
    ) == [("BRK101", CONDITIONAL, "`self.ratio` is a tensor")]


def test_a_number_left_at_its_default_through_calls_settles_a_test(found) -> None:
    assert found(
        """
        def divide(a: torch.Tensor, b: torch.Tensor, zero: float | str = 0.0):
            if zero == "warn" and torch.any(b == 0):
                zero = 0.0
            return torch.where(b == 0, zero, a / b)

        def f(a: torch.Tensor, b: torch.Tensor, zero: float = 0):
            return divide(a, b) + divide(a, b, zero)
        """
    ) == [("BRK101", CONDITIONAL, "`zero == 'warn'`")]


def test_an_operand_before_that_holds_for_one_value_is_a_condition(found) -> None:
    assert found(
        """
        def f(x: torch.Tensor, kind):
            if kind == "long" and x.max() > 4:
                x = x + 1
            if x.numel() == 1 and x[0] == 1:
                x = x + 1
            if x.numel() > 1 and x[0] == 1:
                x = x + 1
            return x
        """
    ) == [
        ("BRK101", CONDITIONAL, "`kind == 'long'`"),
        ("BRK101", CONDITIONAL, "`x.numel() == 1`"),
        ("BRK101", SURE, None),
    ]


def test_a_function_that_may_return_a_literal_instead_of_a_tensor(found) -> None:
    assert found(
        """
        def skips(mask: torch.Tensor, fast):
            if fast:
                return mask.all()
            return False

        def f(x: torch.Tensor, fast):
            if skips(x > 0, fast):
                return x
            return x * 2
        """
    ) == [("BRK101", CONDITIONAL, "`skips` returns a tensor")]


def test_an_alias_of_an_annotation_is_read(found) -> None:
    assert found(
        """
        from typing import Optional

        OptTensor = Optional[torch.Tensor]

        def f(x: torch.Tensor, mask: torch.Tensor, attr: OptTensor = None):
            attr = attr[mask > 0] if attr is not None else None
            return x, attr
        """
    ) == [("BRK303", CONDITIONAL, "`attr` is given")]


def test_whether_a_gradient_is_asked_for_decides(found) -> None:
    assert found(
        """
        def f(x: torch.Tensor, train: bool = False):
            a = x.detach().requires_grad_(False)
            b = x.detach().requires_grad_()
            c = x.detach().requires_grad_(train)
            return a, b, c
        """
    ) == [("BRK603", SURE, None), ("BRK603", CONDITIONAL, "`train` is on")]


def test_a_name_of_sizes_speaks_against_a_tensor(found) -> None:
    assert not found(
        """
        class Net(nn.Module):
            def forward(self, window_size):
                return torch.zeros(int(window_size[0]), int(window_size[1]))
        """
    )
