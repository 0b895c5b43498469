"""Whether a program has used CUDA: the compiler begins it for any program, where there is a GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from breakscan.prove.torch_state import ALLOCATIONS, cuda_in_use

pytestmark = pytest.mark.torch


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, int]], None]:
    """Makes torch report two devices that are initialized, the second with these statistics."""
    import torch

    def report(statistics: dict[str, int]) -> None:
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setattr(torch.cuda, "memory_stats", lambda number: statistics if number else {ALLOCATIONS: 0})

    return report


def test_a_device_on_which_there_was_a_tensor_is_in_use(device: Callable[[dict[str, int]], None]) -> None:
    # It is freed by now.
    device({ALLOCATIONS: 3, "allocation.all.current": 0})
    assert cuda_in_use()


@pytest.mark.parametrize("statistics", [{}, {ALLOCATIONS: 0}])
def test_a_device_that_the_compiler_alone_has_begun_is_not_in_use(
    device: Callable[[dict[str, int]], None], statistics: dict[str, int]
) -> None:
    device(statistics)
    assert not cuda_in_use()


def test_an_allocator_that_does_not_count_may_have_been_used(
    device: Callable[[dict[str, int]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def uncounted(_: int) -> dict[str, int]:
        raise RuntimeError("it has no statistics")

    device({})
    monkeypatch.setattr(torch.cuda, "memory_stats", uncounted)
    assert cuda_in_use()


def test_nothing_is_in_use_without_a_device() -> None:
    assert not cuda_in_use()
