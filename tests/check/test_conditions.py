"""A finding that does not hold on every path says under which condition it does, and none is made on no path."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from breakscan.model.findings import CheckResult, Confidence
from breakscan.report.findings import conditions_in_words


@pytest.fixture
def found(check: Callable[..., CheckResult]) -> Callable[..., list[tuple[str, str, str | None]]]:
    """The rule, confidence and condition of each finding in a snippet, in order."""

    def run(source: str) -> list[tuple[str, str, str | None]]:
        return [
            (f.rule, f.confidence.value, conditions_in_words(f.conditions))
            for f in check(source, regions="all").findings
        ]

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
            if torch._C._is_tracing():
                return t.sum().item()
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


def test_a_condition_is_passed_on_with_an_argument(check) -> None:
    result = check(
        """
        def area(x: torch.Tensor, limit):
            if limit is None or x.sum() == 0:
                return x
            return x * limit

        class Net(nn.Module):
            def forward(self, x: torch.Tensor, limit: float | None = None):
                return area(x, limit)
        """
    )
    assert [(f.rule, conditions_in_words(f.conditions)) for f in result.findings] == [("BRK101", "`limit` is given")]


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
        def divide(a: torch.Tensor, b: torch.Tensor, zero: float = 0.0):
            if zero > 1 and torch.any(b == 0):
                zero = 0.0
            return torch.where(b == 0, zero, a / b)

        def f(a: torch.Tensor, b: torch.Tensor, zero: float = 0):
            return divide(a, b) + divide(a, b, zero)
        """
    ) == [("BRK101", CONDITIONAL, "`zero > 1`")]


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


def test_a_condition_is_kept_by_a_container_that_is_passed_on(found) -> None:
    assert found(
        """
        def pad(x: torch.Tensor, paddings: tuple[int, int]):
            return F.pad(x, paddings)

        def f(x: torch.Tensor):
            return pad(x, (0, x.max()))
        """
    ) == [("BRK310", CONDITIONAL, "`paddings` is a tensor")]


def test_an_argument_that_set_up_code_may_leave_out(check) -> None:
    result = check(
        """
        def area(x: torch.Tensor, limit):
            if limit is None or x.sum() == 0:
                return x
            return x * limit

        class Net(nn.Module):
            def __init__(self, limit: float | None = None):
                super().__init__()
                self.limit = limit

            def forward(self, x: torch.Tensor):
                return area(x, self.limit)
        """
    )
    assert [(f.rule, conditions_in_words(f.conditions)) for f in result.findings] == [("BRK101", "`limit` is given")]


def test_a_guessed_tensor_for_an_argument_that_may_be_left_out(found) -> None:
    assert found(
        """
        def weigh(x: torch.Tensor, mask, weight: torch.Tensor | None = None):
            return weight[x > 0] if weight is not None else None

        def f(x: torch.Tensor, weight, mask):
            return weigh(x, mask, weight.abs())
        """
    ) == [("BRK303", CONDITIONAL, "`weight` is given")]


def test_a_class_is_a_condition_of_a_union_too(found) -> None:
    assert found(
        """
        import os
        from typing import Union

        Source = Union[str, torch.Tensor]

        def f(x: torch.Tensor, source: Source):
            if isinstance(source, str) and os.path.exists(source):
                x = x + 1
            return x
        """
    ) == [("BRK410", CONDITIONAL, "`source` is a str")]


def test_a_list_of_unknown_things_is_indexed_by_a_number_of_a_tensor(found) -> None:
    assert found(
        """
        def f(x: torch.Tensor, order: torch.Tensor, parts):
            parts = list(parts)
            for i in order:
                x = x + parts[i]
            return x
        """
    ) == [("BRK210", SURE, None)]


def test_a_stack_of_context_managers_that_the_program_makes(found) -> None:
    assert [rule for rule, _, _ in found(
        """
        import contextlib

        class Timer:
            def __enter__(self):
                return self

            def __exit__(self, *error):
                return None

        @contextlib.contextmanager
        def quiet():
            with torch.no_grad():
                yield

        def own(x: torch.Tensor):
            with contextlib.ExitStack() as stack:
                stack.enter_context(Timer())
                stack.enter_context(quiet())
                return x + 1

        def torchs(x: torch.Tensor):
            with contextlib.ExitStack() as stack:
                stack.enter_context(torch.no_grad())
                return x + 1

        def held(x: torch.Tensor, timer: Timer):
            with contextlib.ExitStack() as stack:
                stack.enter_context(timer)
                return x + 1
        """
    )] == ["BRK502", "BRK502"]  # fmt: skip


def test_a_number_that_is_zero_by_default(found) -> None:
    assert found(
        """
        def f(x: torch.Tensor, start=0):
            if start and x.max() > 1:
                raise ValueError(start)
            return x
        """
    ) == [("BRK108", CONDITIONAL, "`start`")]


def test_a_lambda_that_is_one_of_several(found) -> None:
    assert found(
        """
        def f(x: torch.Tensor):
            y = x.sin()
            for asked, then in ((lambda: x > 0, lambda m: x[m]), (lambda: x < 0, lambda m: -x)):
                y = then(asked())
            return y
        """
    ) == [("BRK303", CONDITIONAL, "`then` is this function")]


def test_a_lambda_that_another_call_gives_alone(found) -> None:
    assert found(
        """
        def f(x: torch.Tensor, flag):
            y = x.sin()
            picked = lambda m: y[m]
            other = lambda m: -y
            then = picked if flag else other
            return then(y > 0) + picked(y < 0)
        """
    ) == [("BRK303", SURE, None)]


def test_what_is_a_tensor_in_one_call_alone(found) -> None:
    assert found(
        """
        def f(x: torch.Tensor):
            picked = lambda m: x[m]
            return picked(x > 0) + picked(...)
        """
    ) == [("BRK303", CONDITIONAL, "`m` is a tensor")]


def test_distributions_do_not_validate_unless_they_are_asked_to(found) -> None:
    assert found(
        """
        class Bounded(torch.distributions.Normal):
            def log_prob(self, value: torch.Tensor):
                if self._validate_args and (value > 3).any():
                    raise ValueError("too large")
                return super().log_prob(value)
        """
    ) == [("BRK108", CONDITIONAL, "`self._validate_args`")]


def test_what_an_assert_demands_is_no_condition(found) -> None:
    assert found(
        """
        def f(x: torch.Tensor, y: torch.Tensor):
            assert x.device == y.device
            return x[x > 0]
        """
    ) == [("BRK303", SURE, None)]


def test_a_scripted_function_is_traced(found) -> None:
    assert [rule for rule, _, _ in found(
        """
        def double(x: torch.Tensor):
            return x * 2

        scripted = torch.jit.script(double)
        layer = torch.jit.script(nn.Linear(4, 4))

        def f(x: torch.Tensor):
            return layer(scripted(x))
        """
    )] == ["BRK509"]  # fmt: skip


def test_the_fields_of_a_named_tuple(found) -> None:
    assert found(
        """
        import collections

        State = collections.namedtuple("State", "time, value")

        def f(x: torch.Tensor, step: int):
            state = State(time=step, value=x.sum())
            if state.time > 0:
                x = x + 1
            if state.value > 0:
                x = x + 1
            time, value = state
            return x if time > value else x + 1
        """
    ) == [("BRK101", SURE, None), ("BRK103", SURE, None)]


def test_a_starred_tuple_gives_its_elements(found) -> None:
    assert found(
        """
        def larger(a, b, c):
            return a if b > 0 else c

        def f(x: torch.Tensor):
            pair = (3, x.sum())
            return larger(*pair, x)
        """
    ) == [("BRK103", Confidence.LIKELY.value, None)]


def test_a_decorator_that_hands_on_to_another(found) -> None:
    assert [rule for rule, _, _ in found(
        """
        import functools

        def watched(fn):
            @functools.wraps(fn)
            def wrapper(*args):
                print("called")
                return fn(*args)
            return wrapper

        def named(name):
            def outer(fn):
                return watched(fn)
            return outer

        @named("double")
        def double(x: torch.Tensor):
            return x * 2

        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                return double(x)
        """
    )] == ["BRK401"]  # fmt: skip


def test_a_function_that_a_call_gives_is_called(found) -> None:
    assert [rule for rule, _, _ in found(
        """
        def apply(fn, x: torch.Tensor):
            return fn(x.sum())

        def f(x: torch.Tensor):
            def positive(v):
                return v if v > 0 else -v

            return apply(positive, x)
        """
    )] == ["BRK103"]  # fmt: skip


def test_an_inherited_method_that_calls_what_a_class_defines_anew(found) -> None:
    assert [rule for rule, _, _ in found(
        """
        class Base:
            def run(self, x: torch.Tensor):
                return self.finish(x.sum())

            def finish(self, total):
                return total

        class Careful(Base):
            def finish(self, total):
                return total if total > 1 else -total
        """
    )] == ["BRK103"]  # fmt: skip


def test_the_tensor_that_a_rule_asks_for_says_how_sure_it_is(found) -> None:
    assert found(
        """
        def f(flags: torch.Tensor, error, size):
            torch._check_tensor_all_with(error, flags)
            return torch.arange(0, size.sum())
        """
    ) == [("BRK201", SURE, None), ("BRK310", Confidence.LIKELY.value, None)]


def test_a_tensor_in_the_body_of_a_class(found) -> None:
    assert found(
        """
        import collections

        Table = collections.namedtuple("Table", "steps, order")
        TABLE = Table(steps=torch.tensor([1.0, 2.0]), order=2)

        class Solver:
            table = TABLE

            def run(self, x: torch.Tensor):
                for step in self.table.steps:
                    if step > 1:
                        x = x + 1
                return x if self.table.order > 1 else x + 1
        """
    ) == [("BRK101", SURE, None)]


def test_a_container_of_unknown_things_does_not_override_an_annotation(found) -> None:
    assert found(
        """
        from typing import Any

        def order(params: dict[str, torch.Tensor]):
            return params["order"].tolist()

        def f(x: torch.Tensor, params: dict[str, Any]):
            return x, order(params)
        """
    ) == [("BRK205", SURE, None)]


def test_a_test_that_the_tests_beside_it_settle_narrows_what_is_left(found) -> None:
    assert not found(
        """
        def may_skip(mask, q: int, known: bool):
            if known or (mask is not None and torch.compiler.is_compiling()):
                return False
            return mask is None or mask.all()

        def f(x, q: int, known: bool, mask=None):
            return x + 1 if may_skip(mask, q, known) else x
        """
    )
    assert found(
        """
        def f(x, q: int, known: bool, mask=None):
            if known or (mask is not None and q):
                return x
            if mask is None or mask.all():
                return x + 1
            return x
        """
    ) == [("BRK101", CONDITIONAL, "`mask` is given")]  # fmt: skip


REPORTS = """
    import logging
    import warnings

    logger = logging.getLogger(__name__)
"""


def test_reports_of_exceptions_are_asked_for(check) -> None:
    source = (
        REPORTS
        + """
    def f(x):
        try:
            x = x.reshape(2, -1)
        except RuntimeError:
            logger.info(f"cannot reshape {x.sum().item()}")
            x = x.sum().item()
        return x
    """
    )
    shown = [(f.rule, f.site.line, f.confidence) for f in check(source, regions="all").findings]
    assert [(rule, confidence) for rule, _, confidence in shown] == [("BRK201", Confidence.CONDITIONAL)]
    asked = check(source, regions="all", confidence=Confidence.POSSIBLE).findings
    assert [(f.rule, f.confidence) for f in asked if f.site.line < shown[0][1]] == [
        ("BRK402", Confidence.POSSIBLE),
        ("BRK201", Confidence.POSSIBLE),
    ]


def test_the_arguments_of_a_report_are_as_rare_as_the_report(found) -> None:
    source = (
        REPORTS
        + """
    def f(x: torch.Tensor, low: float):
        y = x.sum().item()
        if y < low:
            warnings.warn(f"too low: {x.min().item()}")
        if low > 3:
            print("high")
        return x
    """
    )
    assert found(source) == [
        ("BRK201", SURE, None),
        ("BRK403", CONDITIONAL, "`y < low`"),
        ("BRK201", CONDITIONAL, "`y < low`"),
        ("BRK401", CONDITIONAL, "`low > 3`"),
    ]


def test_a_number_named_as_the_elements_of_a_tensor(found) -> None:
    source = """
        class Schedule:
            def __init__(self):
                self.steps = torch.arange(10)
                self.names = ["a"]

            def scale(self, x: torch.Tensor, step: int, count: int, name: str):
                before = step - 1
                if count > 3 or name == "b":
                    return x
                return x * 2 if before >= 0 else x

            def next(self, x: torch.Tensor, step: int | None = None):
                return x if step is None else self.scale(x, step, 3, "a")
    """
    assert found(source) == [("BRK103", CONDITIONAL, "`step` is a tensor")]


def test_an_index_that_is_handed_in_is_known_on_the_cpu(found) -> None:
    source = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("at", torch.arange(2).max())
                self.rows = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

            def forward(self, x):
                x[self.at + 1] = 0.0
                x = self.rows[self.at](x)
                return x[self.at]
    """
    assert found(source) == [
        ("BRK210", "likely", None),
        ("BRK210", SURE, None),
        ("BRK210", CONDITIONAL, "not `self.at.is_cpu`"),
    ]


def test_an_argument_that_no_call_gives_is_not_true(check) -> None:
    source = """
        class Scale:
            def __init__(self, x, validate=None):
                if validate:
                    assert torch.allclose(x, x)
                self.x = x

        class Net(nn.Module):
            def forward(self, x):
                return Scale(x).x * 2
    """
    assert not check(source).findings
    given = source.replace("Scale(x)", "Scale(x, validate=True)")
    assert [f.rule for f in check(given).findings] == ["BRK110"]


def test_whether_a_tensor_requires_a_gradient_depends_on_the_caller(found) -> None:
    source = """
        def f(xs: list[torch.Tensor], y: torch.Tensor):
            z = y if y.requires_grad else y.detach().requires_grad_(True)
            if y.requires_grad:
                print(z)
            return [x if x.requires_grad else x.detach().requires_grad_(True) for x in xs], z
    """
    assert found(source) == [
        ("BRK603", CONDITIONAL, "not `y.requires_grad`"),
        ("BRK401", CONDITIONAL, "`y.requires_grad`"),
        ("BRK603", CONDITIONAL, "not `x.requires_grad`"),
    ]


def test_a_ternary_with_a_tensor_on_one_arm(found) -> None:
    source = """
        def f(x: torch.Tensor, firsts: list[bool] | None = None, scale: float = 1.0):
            if firsts[0] if firsts is not None else x.sum() == 1:
                x = x * 2
            largest = x.max() if scale > 2 else scale
            return x * float(largest)
    """
    assert found(source) == [
        ("BRK101", CONDITIONAL, "`firsts is None`"),
        ("BRK202", CONDITIONAL, "`scale > 2`"),
    ]


def test_what_a_mapping_holds_is_known_until_its_name_is_bound_again(found) -> None:
    source = """
        def f(x: torch.Tensor, states):
            state = states[0]
            state["low"] = x.min()
            state["rate"] = x.max() if len(state) else 0.5
            if state["rate"] > 1:
                x = x * 2
            state["low"] = 3
            if state["low"] > 1:
                x = x * 2
            state["low"] = x.min()
            state = states[1]
            if state["low"] > 1:
                x = x * 2
            return x
    """
    assert not found(source)


def test_one_of_two_functions_of_one_name_is_returned(found) -> None:
    source = """
        def make(weights: torch.Tensor, count: int):
            low = weights < 0
            if count == 0:
                def scale(y: torch.Tensor):
                    return -y
                return scale

            def scale(y: torch.Tensor):
                return y[..., low] - 1
            return scale
    """
    assert [rule for rule, _, _ in found(source)] == ["BRK303"]


def test_an_annotation_that_a_call_contradicts_promises_no_tensor(found) -> None:
    assert not found(
        """
        import torch

        def pooled(value: torch.Tensor, shapes: torch.Tensor):
            parts = value.split([height * width for height, width in shapes], dim=-1)
            return [part.sum() for part in parts]

        class Layer(torch.nn.Module):
            def forward(self, value, shapes=None):
                return pooled(value, shapes)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = Layer()

            def forward(self, images):
                shapes = []
                for image in images:
                    height, width = image.shape[-2:]
                    shapes.append((height, width))
                return self.layer(images[0], shapes=shapes)
        """
    )


def test_whether_a_union_is_a_tensor_depends_on_the_call(found) -> None:
    assert found(
        """
        from typing import Union

        import torch

        def score(total: torch.Tensor, count: Union[int, torch.Tensor]):
            if count < 2:
                raise ValueError("too few")
            return total / count

        def of_batch(x: torch.Tensor):
            return score(x.sum(), x.shape[0])

        def of_mask(x: torch.Tensor, mask: torch.Tensor):
            return score(x.sum(), mask.sum())
        """
    ) == [("BRK108", CONDITIONAL, "`count` is a tensor")]


def test_what_only_some_calls_give_depends_on_the_call(check) -> None:
    result = check(
        """
        import torch

        def energy(x: torch.Tensor, mask=None):
            if mask is not None:
                x = x[mask]
            return x.sum()

        @torch.compile
        def whole(x: torch.Tensor):
            return energy(x)

        @torch.compile
        def part(x: torch.Tensor):
            return energy(x, x > 0)
        """
    )
    assert [(f.rule, conditions_in_words(f.conditions)) for f in result.findings] == [("BRK303", "`mask` is given")]


def test_a_container_is_no_surer_than_the_tensors_in_it(found) -> None:
    assert found(
        """
        import torch

        def pairs(sizes):
            if isinstance(sizes, torch.Tensor):
                sizes = sizes.abs()
            return (sizes, sizes)

        def padded(x: torch.Tensor, size):
            wanted = pairs(size)
            missing = []
            for i in range(2):
                missing.append(wanted[i] - x.shape[i])
            if any(missing):
                x = x + 1
            return x.cos()
        """
    ) == [("BRK111", CONDITIONAL, "`sizes` is a tensor")]


def test_a_tensor_that_is_a_single_number_is_rare(found) -> None:
    assert found(
        """
        import torch

        def normalized(index: torch.Tensor, size: int):
            if isinstance(index, int) or (isinstance(index, torch.Tensor) and index.dim() == 0):
                if index < 0:
                    index = index + size
            return index * 2
        """
    ) == [("BRK101", CONDITIONAL, "`index.dim() == 0`")]
