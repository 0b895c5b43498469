"""What is captured can be put back."""

import argparse
import dataclasses
import functools
import importlib
import io
import itertools
import logging
import queue
import random
import threading
import types
import weakref
from pathlib import Path
from typing import Any

import pytest

from breakscan.prove.call_result import CallResult, projections, result_of
from breakscan.prove.equal import FORMER, Expected
from breakscan.prove.state import CACHE_INFO, StateSnapshot, digests
from breakscan.prove.torch_state import rng_state, set_rng_state

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.torch


class Counter(torch.nn.Module):
    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.register_buffer("seen", torch.zeros(1))
        self.calls = 0
        self.history: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.history.append(self.calls)
        self.seen = self.seen + 1
        x.add_(1)
        return self.fc(x) if self.training else x


class Registry(dict[str, list[int]]):
    def get(self, key: str) -> list[int]:  # type: ignore[override]
        raise KeyError(key)


def test_parameters_are_frozen_for_a_block() -> None:
    module = Counter()
    module.fc.bias.requires_grad_(False)
    snapshot = StateSnapshot({"self": module})
    with snapshot.turned(["self.fc.weight", "self.fc.bias"]):
        assert [*snapshot.leaves()] == ["self.fc.bias"]
        module.fc(torch.ones(2)).sum().backward()
        assert (module.fc.weight.grad, module.fc.bias.grad is None) == (None, False)
    assert [*snapshot.leaves()] == ["self.fc.weight"]
    assert module.fc.bias.grad is None
    assert not module.fc.bias.requires_grad


def test_all_that_a_call_changes_is_put_back() -> None:
    module, x, box = Counter(), torch.zeros(3, 2), Registry(x=[1])
    snapshot = StateSnapshot({"self": module, "args": (x, box)})
    seen = module.seen
    before = digests(snapshot.now().values)
    module(x).sum().backward()
    module.eval()
    box["x"].append(2)
    box["y"] = []
    with torch.no_grad():
        module.fc.weight.add_(1)
    snapshot.restore()
    assert digests(snapshot.now().values) == before
    assert (module.calls, module.history, module.training, box) == (0, [], True, {"x": [1]})
    assert module.seen is seen
    assert module.fc.weight.grad is None


def test_what_names_are_bound_to_since_is_seen() -> None:
    """Tensors, arrays, sets, dtypes: the snapshot's own objects stay as they are."""
    tensor, array = torch.zeros(2), numpy.zeros(2)
    held: dict[str, Any] = {"tensor": tensor, "array": array, "set": {1}, "dtype": torch.float32, "list": [tensor + 5]}
    snapshot = StateSnapshot({"held": held})
    held |= {"tensor": tensor + 1, "array": array + 2, "new": tensor + 3, "set": {2, "a"}, "dtype": torch.float16}
    held["list"].clear()
    now = snapshot.now()
    assert {path: value.tolist() for path, value in now.values.items()} == {
        "held['tensor']": [1.0, 1.0],
        "held['array']": [2.0, 2.0],
        "held['new']": [3.0, 3.0],
    }
    assert now.plains == {"held['set']": ("'a'", "2"), "held['dtype']": torch.float16}
    assert now.gone == {"held['list'][0]"}
    snapshot.restore()
    assert (held["tensor"] is tensor, held["set"], snapshot.now().gone) == (True, {1}, set())


def test_closures_globals_and_random_numbers_are_reached() -> None:
    weight, count = torch.ones(2), 0

    def f(x: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        return x * weight

    snapshot = StateSnapshot({"": f})
    assert ":weight" in snapshot.tensors
    assert snapshot.plains[":count"] == 0
    f(weight)
    assert snapshot.plains_now()[":count"] == 1
    snapshot.restore()
    assert count == 0

    state = rng_state()
    first = torch.rand(2)
    set_rng_state(state)
    assert torch.equal(first, torch.rand(2))


def test_values_of_another_process_are_taken_over_or_named() -> None:
    module = torch.nn.Linear(2, 2)
    snapshot = StateSnapshot({"self": module})
    values = {"self.weight": torch.full((2, 2), 7.0), "self.bias": torch.zeros(3), "self.scale": torch.zeros(1)}
    assert snapshot.take_over({**values, "args[0]": torch.zeros(1)}) == [
        "self.bias has shape 2, not 3",
        "args[0] is not there",
    ]
    snapshot.restore()
    assert torch.equal(module.weight, values["self.weight"])


def test_a_device_that_the_program_sets_for_all_tensors_is_not_ours() -> None:
    result: Any = torch.ones(2, requires_grad=True) * 2
    before = digests(rng_state())
    with torch.device("meta"):
        assert digests(rng_state()) == before
        assert projections(result)[1][0].device.type == "cpu"


def test_what_classes_and_modules_hold_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings_of_a_test.py").write_text("import model_of_a_test\n\nlimits = {'n': 1}\n", encoding="utf-8")
    (tmp_path / "model_of_a_test.py").write_text(
        "import settings_of_a_test\n\n\nclass Cache:\n    held = {}\n    hits = 0\n\n\n"
        "class Model:\n    made = 0\n\n    def forward(self, x):\n        return self.step(x)\n\n"
        "    def step(self, x):\n        Cache.hits += 1\n        Cache.held['x'] = x\n        Cache.last = x\n"
        "        type(self).made += 1\n"
        "        settings_of_a_test.model_of_a_test.settings_of_a_test.limits['n'] += 1\n        return x\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = importlib.import_module("model_of_a_test")
    limits = importlib.import_module("settings_of_a_test").limits
    model = found.Model()
    snapshot = StateSnapshot({"self": model})
    model.forward(torch.ones(1))
    assert (found.Cache.hits, found.Model.made, limits) == (1, 1, {"n": 2})
    assert snapshot.plains_now() != snapshot.plains
    snapshot.restore()
    assert (found.Cache.hits, found.Model.made, limits, found.Cache.held) == (0, 0, {"n": 1}, {})
    assert not hasattr(found.Cache, "last")


def test_iterators_without_a_position_are_named_as_they_cannot_be_put_back(tmp_path: Path) -> None:
    batches, numbers = iter([1, 2]), (n for n in range(3))
    with (tmp_path / "log.txt").open("w") as log:
        snapshot = StateSnapshot({"self": {"batches": batches, "numbers": numbers, "log": log}})
    assert snapshot.walk.iterators == ["self['numbers']"]
    assert [next(batches), next(numbers)] == [1, 0]
    snapshot.restore()
    assert [next(batches), next(numbers)] == [1, 1]


def test_how_far_a_count_moves_is_seen_although_it_cannot_be_put_back() -> None:
    count = itertools.count()
    snapshot = StateSnapshot({"self": {"count": count}})
    for number in range(3):
        snapshot.restore()
        assert snapshot.plains == {"self['count']": number}
        next(count)


@dataclasses.dataclass(slots=True)
class Meter:
    n: int = 0


class Hooked(torch.nn.Module):
    def __init__(self, seen: list[int]) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.fc.register_forward_hook(lambda *_: seen.append(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.names.n += 1
        self.meter.n += 1
        type(self).forward.calls = 1  # type: ignore[attr-defined]
        self.register_forward_hook(lambda *_: None)
        return self.fc(x) * cached(2)


@functools.lru_cache
def cached(n: int) -> int:
    return n


def test_slots_namespaces_functions_hooks_and_caches_are_put_back() -> None:
    seen: list[int] = []
    module = Hooked(seen)
    module.meter, module.names = Meter(), types.SimpleNamespace(n=0)
    snapshot = StateSnapshot({"self": module})
    module(torch.ones(2))
    assert (len(module._forward_hooks), cached.cache_info().currsize) == (1, 1)
    assert (module.meter.n, module.names.n, seen, vars(Hooked.forward)) == (1, 1, [1], {"calls": 1})
    changed = {path for path, value in snapshot.plains_now().items() if snapshot.plains.get(path) != value}
    assert {path.rpartition(".")[2] for path in changed if path.endswith((".n", ".calls"))} == {"n", "calls"}
    snapshot.restore()
    assert (module.meter.n, module.names.n, seen, vars(Hooked.forward)) == (0, 0, [], {})
    assert (len(module._forward_hooks), cached.cache_info().currsize) == (0, 0)


def test_how_much_a_cache_holds_is_state_where_the_program_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> list[str]:
        return [path for path in StateSnapshot({"f": cached}).plains if path.endswith(CACHE_INFO)]

    assert asked() == ["f.cache_info()"]
    monkeypatch.setattr("linecache.getlines", lambda _: ["cached(2)"])
    assert asked() == []


GENERATORS: dict[str, tuple[object, str]] = {
    "torch": (torch.Generator(), "torch.rand(3, generator=draw).tolist()"),
    "python": (random.Random(3), "draw.gauss(0, 1)"),
    "numpy": (numpy.random.default_rng(3), "draw.normal()"),
    "numpy, another algorithm": (numpy.random.Generator(numpy.random.Philox(3)), "draw.normal()"),
    "numpy, the source alone": (numpy.random.MT19937(3), "draw.random_raw()"),
    "numpy, as it was before 1.17": (numpy.random.RandomState(3), "draw.normal()"),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_that_the_program_holds_are_put_back(name: str) -> None:
    generator, code = GENERATORS[name]
    snapshot = StateSnapshot({"self": [generator]})
    drawn = [eval(code, {"draw": generator, "torch": torch}) for _ in range(3)]
    assert snapshot.now().values.keys() == {"self[0]"}
    assert snapshot.now().values["self[0]"].shape == snapshot.values["self[0]"].shape
    snapshot.restore()
    assert [eval(code, {"draw": generator, "torch": torch}) for _ in range(3)] == drawn
    assert StateSnapshot({"self": [random.SystemRandom()]}).values == {}


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Log:
    def __init__(self) -> None:
        self.text = io.StringIO()
        self.flags = argparse.Namespace(steps=1)
        self.results: queue.Queue[float] = queue.Queue()
        self.local = threading.local()
        self.local.steps = 1
        self.weak: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary({self: 1})
        self.logger = logging.Logger("kept")
        self.logger.addHandler(Kept())

    def __call__(self, seen: list[int] = []) -> None:  # noqa: B006
        seen.append(1)
        self.text.write("more")
        self.flags.steps = 2
        self.results.put(0.5)
        self.local.steps = 2
        self.weak[self] = 2
        self.logger.warning("it")


def test_defaults_and_objects_of_the_standard_library_are_put_back() -> None:
    log = Log()
    snapshot = StateSnapshot({"self": log})
    before = snapshot.plains_now()
    log()
    changed = {path for path, value in snapshot.plains_now().items() if before.get(path) != value}
    assert changed >= {"self.text.getvalue()", "self.flags.steps", "self.results.queue[0]", "self.local.steps"}
    assert changed >= {"self.logger.handlers[0].texts[0]", "self.weak.data[key 0]"}
    assert any("__defaults__" in path for path in changed)
    snapshot.restore()
    assert snapshot.plains_now() == before


@pytest.mark.parametrize("kind", ["tensor", "list"])
def test_what_is_replaced_differs_from_what_is_changed_in_place(kind: str) -> None:
    def result(in_place: bool) -> CallResult:
        state = types.SimpleNamespace(last=torch.zeros(2) if kind == "tensor" else [1])

        def step() -> None:
            added = torch.ones(2) if kind == "tensor" else [2]
            if in_place:
                state.last += added
            else:
                state.last = state.last + added

        return result_of(step, False, [StateSnapshot({"state": state})])

    (one,) = Expected([result(in_place=False)]).differences([result(in_place=True)], eager=True)
    assert (one.path, one.was, one.now) == ("state.last", None, FORMER)
    assert not Expected([result(in_place=True)]).differences([result(in_place=True)], eager=True)


def test_values_move_by_a_unit_of_rounding() -> None:
    values = {"a": torch.full((1000,), 3.0), "b": torch.full((3,), 2), "c": torch.ones(1).expand(4)}
    snapshot = StateSnapshot(values)
    snapshot.nudge(1)
    moved = values["a"] / 3 - 1
    assert 0 < moved.abs().max() < 2e-7
    assert 300 < int((moved > 0).sum()) < 700
    assert values["b"].tolist() == [2, 2, 2]
    snapshot.restore()
    assert values["a"].eq(3).all()
    assert values["c"].eq(1).all()


def test_a_buffer_that_is_no_longer_saved_is_seen() -> None:
    module = Counter()
    snapshot = StateSnapshot({"self": module})
    assert snapshot.plains["self.state_dict()"] == ("seen",)
    module.register_buffer("seen", module.seen, persistent=False)
    assert snapshot.plains_now()["self.state_dict()"] == ()


def test_memory_that_the_state_shares_with_an_input_is_seen() -> None:
    def kept(copied: bool) -> dict[str, str]:
        state, x = types.SimpleNamespace(last=None), torch.ones(2)
        snapshots = [StateSnapshot({"state": state}), StateSnapshot({"args": (x,)})]
        return result_of(lambda: setattr(state, "last", x.clone() if copied else x), False, snapshots).aliases

    assert (kept(copied=True), kept(copied=False)) == ({}, {"state.last": "args[0]"})


def test_the_defaults_of_an_optimizer_are_no_state_of_their_own() -> None:
    import torch

    rate = torch.tensor(0.1)
    snapshot = StateSnapshot({"opt": torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=rate)})
    assert [path for path, tensor in snapshot.tensors.items() if tensor is rate] == ["opt.param_groups[0]['lr']"]
    assert not [path for path in snapshot.plains if "defaults" in path]
