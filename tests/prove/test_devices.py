"""Which GPUs ``--devices`` takes, and what each process sees of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakscan.prove.devices import Device, DeviceError, Placement, placed, placements, wanted_numbers
from breakscan.prove.observation import NothingToMeasure, require_one_device
from breakscan.prove.protocol import Description, ProgramRun

GIB = 1 << 30
H100, H200 = Device("NVIDIA H100", 79 * GIB), Device("NVIDIA H200", 139 * GIB)


def visible(numbers: list[int], devices: list[Device], environment: Mapping[str, str]) -> list[str]:
    return [one.visible for one in placed(numbers, devices, environment)]


def test_without_the_option_a_program_runs_where_it_runs_by_itself() -> None:
    assert placements(None) == (None,)


@pytest.mark.parametrize(("wanted", "numbers"), [("all", [0, 1, 2]), ("0,1", [0, 1]), ("2, 0", [2, 0]), ("1", [1])])
def test_devices_are_named_by_their_numbers(wanted: str, numbers: list[int]) -> None:
    assert wanted_numbers(wanted, 3) == numbers


@pytest.mark.parametrize(
    ("wanted", "count", "says"),
    [
        ("0", 0, "no such device: 0; torch finds no CUDA device here"),
        ("all", 0, "torch finds no CUDA device here"),
        ("0,1", 1, "no such device: 1; torch finds cuda:0 alone here"),
        ("1,4,5", 4, "no such device: 4, 5; torch finds cuda:0 to cuda:3 here"),
        ("1,1", 2, "'1,1' names a device twice"),
        ("cuda:0", 2, "'cuda:0' is neither 'all' nor a list of numbers, such as 0,1"),
        ("", 2, "'' is neither"),
        ("-1", 2, "'-1' is neither"),
    ],
)
def test_other_words_are_refused(wanted: str, count: int, says: str) -> None:
    with pytest.raises(DeviceError, match=f"^{says}"):
        wanted_numbers(wanted, count)


def test_each_process_sees_all_of_them_its_own_first() -> None:
    assert visible([0, 1], [H100] * 2, {}) == ["0,1", "1,0"]
    assert visible([3, 1, 0], [H100] * 4, {}) == ["3,1,0", "1,0,3", "0,3,1"]


def test_numbers_count_what_the_user_makes_visible() -> None:
    assert visible([0, 2], [H100] * 3, {"CUDA_VISIBLE_DEVICES": "5, GPU-8932, 7"}) == ["5,7", "7,5"]


def test_devices_of_other_kinds_are_named() -> None:
    with pytest.raises(DeviceError) as error:
        placed([0, 1, 2], [H100, H200, replace(H100, memory_bytes=40 * GIB)], {})
    assert str(error.value) == (
        "only devices of one kind: cuda:0 is NVIDIA H100 with 79.0 GiB, cuda:1 is NVIDIA H200 with 139.0 GiB, "
        "cuda:2 is NVIDIA H100 with 40.0 GiB"
    )
    reserved = replace(H100, memory_bytes=H100.memory_bytes - (200 << 20))
    assert len(placed([0, 1], [H100, reserved], {})) == 2


def about(*devices: int, visible: str | None) -> Description:
    run = ProgramRun(None, None, (), {}, (), (), None)
    empty: Any = ()
    return Description(run, *[empty] * 6, True, (), 0, devices, visible)


def test_a_program_has_to_run_on_its_device_alone() -> None:
    here = Placement(1, "1,0")
    require_one_device(about(0, visible="1,0"), here)
    require_one_device(about(0, 1, visible=None), None)
    for description, says in (
        (about(0, 1, visible="1,0"), r"uses several devices \(cuda:0, cuda:1\)"),
        (about(visible="1,0"), "uses no CUDA device"),
        (about(0, visible="0"), "sets CUDA_VISIBLE_DEVICES itself"),
        (about(0, visible=None), "sets CUDA_VISIBLE_DEVICES itself"),
    ):
        with pytest.raises(NothingToMeasure, match=says):
            require_one_device(description, here)


@pytest.mark.torch
@pytest.mark.process
@pytest.mark.parametrize("command", ["bench", "verify"])
def test_without_a_gpu_the_option_says_so(tmp_path: Path, command: str) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (tmp_path / "it.py").write_text("import torch\nf = torch.compile(torch.sin)\nf(torch.ones(3))\n")
    words = [sys.executable, "-m", "breakscan", command, "--devices", "0,1", "it.py"]
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert found.returncode == 2
    assert "no such device: 0, 1; torch finds no CUDA device here" in found.stderr
    assert "Traceback" not in found.stderr
