"""The values of functions, as recorded: what they were, from which compiles, and at no cost to the program."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breakscan.model.observations import ValueSeen
from breakscan.recording.hooks.values import MOST_VALUES
from breakscan.recording.recording import read_recording
from breakscan.recording.records import FileSeen, HookFailed, ValuesMet, ValuesSeen

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
dynamo = pytest.importorskip("torch._dynamo")


class Settings:
    def __init__(self) -> None:
        self.on = True
        self.unread = 1

    @property
    def computed(self) -> int:
        raise AssertionError("a property ran")


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.settings = Settings()

    def forward(self, x: Any, mode: str = "a", mask: Any = None) -> Any:
        return self.inner(x * self.weight, [x, {"k": 2}], mode)

    def inner(self, y: Any, parts: Any, mode: str) -> Any:
        if self.settings.on and mode == "a":
            return y.sin() + parts[0]
        return y


def recorded(folder: Path, program: Callable[[], None]) -> list[Any]:
    from breakscan.recording.recorder import Recorder

    dynamo.reset()
    with Recorder(folder):
        program()
    dynamo.reset()
    (records,) = read_recording(folder)
    assert [record for record in records if isinstance(record, HookFailed)] == []
    return list(records)


def values(records: list[Any]) -> dict[str, dict[str, ValueSeen]]:
    return {one.code.name: one.names for one in records if isinstance(one, ValuesSeen)}


def test_what_the_names_of_functions_were(tmp_path: Path) -> None:
    net = torch.compile(Net(), backend="eager")
    seen = values(recorded(tmp_path, lambda: net(torch.ones(3, 4))))
    x, inner = seen["forward"]["x"], seen["inner"]
    assert x.types == ("torch.Tensor",)
    assert x.tensor is not None
    assert (x.tensor.dtypes, x.tensor.ranks, x.tensor.sizes) == (("float32",), (2,), ((3, 3), (4, 4)))
    assert (x.tensor.devices, x.tensor.requires_grad, x.tensor.contiguous) == (("cpu",), (False,), (True,))
    assert seen["forward"]["mask"].types == ("NoneType",)
    assert seen["forward"]["mode"] == ValueSeen(("str",), ("'a'",))
    weight = seen["forward"]["self"].entries["weight"]
    assert weight.types == ("torch.nn.parameter.Parameter",)
    # A function that Dynamo inlines, and what it reads of its object.
    assert inner["y"].tensor is not None
    assert inner["y"].tensor.requires_grad == (True,)
    settings = inner["self"].entries["settings"]
    assert settings.types == (f"{__name__}.Settings",)
    assert settings.entries == {"on": ValueSeen(("bool",), ("True",))}
    assert inner["parts"].items is not None
    assert [item.types for item in inner["parts"].items] == [("torch.Tensor",), ("dict",)]
    assert inner["parts"].items[1].entries == {"k": ValueSeen(("int",), ("2",))}


def test_several_compiles_are_joined(tmp_path: Path) -> None:
    def program() -> None:
        net = torch.compile(Net(), backend="eager", dynamic=False)
        for size, mode in ((3, "a"), (5, "b")):
            net(torch.ones(size, 4, dtype=torch.float64 if size == 5 else None), mode)

    records = recorded(tmp_path, program)
    seen = values(records)
    x = seen["forward"]["x"].tensor
    assert x is not None
    assert (x.dtypes, x.sizes) == (("float32", "float64"), ((3, 5), (4, 4)))
    assert seen["inner"]["mode"].texts == ("'a'", "'b'")
    met = [one for one in records if isinstance(one, ValuesMet)]
    assert [one.compile_id for one in met] == ["0/0", "0/1"]
    assert [one.path for one in records if isinstance(one, FileSeen)] == [__file__]


def test_what_is_recorded_has_a_bound(tmp_path: Path) -> None:
    def helper(x: Any, many: Any) -> Any:
        return x * many["0"]["1"]["2"]

    def f(x: Any, many: Any, other: Any) -> Any:
        return helper(x, many) + helper(x, {"0": {"1": many["0"]["1"], "2": many}})

    inner = {str(number): number for number in range(20)}
    many = {str(number): {str(other): inner for other in range(20)} for number in range(20)}
    other = dict.fromkeys(range(100_000))
    compiled = torch.compile(f, backend="eager")
    lines = recorded(tmp_path, lambda: compiled(torch.ones(4), many, other))
    assert set(values(lines)) == {"f", "helper"}
    assert sum(map(count, values(lines)["f"].values())) <= MOST_VALUES + 1
    assert sum(map(count, values(lines)["helper"].values())) <= MOST_VALUES + 1


def count(value: ValueSeen) -> int:
    return 1 + sum(map(count, [*(value.items or ()), *value.entries.values()]))


def test_no_guard_is_added_and_nothing_of_the_program_runs(tmp_path: Path) -> None:
    class Tensor(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    calls: list[Any] = []
    guards: list[int] = []

    def f(x: Any, unused: Any, t: Any) -> Any:
        return helper(x, unused), t

    def helper(x: Any, unused: Any) -> Any:
        return x.sin()

    def program() -> None:
        def kept(entries: list[Any]) -> list[bool]:
            guards.append(len(entries))
            return [True] * len(entries)

        calls.clear()
        compiled = torch.compile(f, backend="eager", options={"guard_filter_fn": kept})
        compiled(torch.ones(4), [1, 2, 3], torch.ones(1).as_subclass(Tensor))

    dynamo.reset()
    program()
    alone = list(calls)
    recorded(tmp_path, program)
    assert guards[0] == guards[1]
    assert calls == alone
