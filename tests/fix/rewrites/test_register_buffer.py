"""A counter as a buffer: compiled code computes the gradients of eager code."""

from pathlib import Path
from typing import Any

import pytest

from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.rulebook.config import load_settings

MODEL = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.steps = 0

    def forward(self, x: torch.Tensor):
        self.steps += 1
        return (x * self.scale * self.steps).sin()


model = torch.compile(Model(), backend="aot_eager")
"""


def gradients(text: str, *, compiled: bool) -> list[Any]:
    """The gradients of three steps."""
    import torch

    torch._dynamo.reset()
    names: dict[str, Any] = {}
    exec(text, names)
    model = names["model"] if compiled else names["Model"]()
    found = []
    for _ in range(3):
        model.zero_grad()
        model(torch.ones(3)).sum().backward()
        (parameter,) = model.parameters()
        found.append(parameter.grad.clone())
    return found


@pytest.mark.torch
def test_compiled_gradients_are_those_of_eager_code(tmp_path: Path) -> None:
    from torch.testing import assert_close

    path = tmp_path / "model.py"
    path.write_text(MODEL, encoding="utf-8")
    settings = load_settings(tmp_path, None, target_torch="2.13", no_cache=True)
    repair = repair_file(path, (), settings, WantedRewrites(ids=frozenset({"register-buffer"})))
    assert "register_buffer" in repair.after
    assert_close(gradients(repair.after, compiled=True), gradients(MODEL, compiled=False))


CACHE = """import torch


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(16, 4))
        self.used = 0

    def forward(self, x: torch.Tensor):
        n = x.shape[0]
        self.rows[self.used : self.used + n] = x
        self.used += n
        rate = max(0.5, 1 / (1 + self.used))
        return self.rows.sum(0) * rate


cache = torch.compile(Cache(), backend="eager")
"""


@pytest.mark.torch
def test_rows_of_a_cache_are_stored_without_recompiles(tmp_path: Path) -> None:
    import torch
    from torch.testing import assert_close

    path = tmp_path / "cache.py"
    path.write_text(CACHE, encoding="utf-8")
    settings = load_settings(tmp_path, None, target_torch="2.13", no_cache=True)
    repair = repair_file(path, (), settings, WantedRewrites(ids=frozenset({"register-buffer"})))
    found, compilations = [], []
    for text in (CACHE, repair.after):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        names: dict[str, Any] = {}
        exec(text, names)
        found.append([names["cache"](torch.full((3, 4), float(step))) for step in range(5)])
        compilations.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert_close(found[1], found[0])
    assert compilations == [5, 1]
