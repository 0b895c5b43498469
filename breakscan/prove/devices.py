"""On which GPUs the processes of a program run: ``--devices``.

A process sees all GPUs that were asked for, its own first. So the program finds as many as there are, its first one is
another one in each process, and it has the same name in all of them (``cuda:0``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.record.launch import interpreter_options

VISIBLE = "CUDA_VISIBLE_DEVICES"
ALL = "all"
_LIST = Path(__file__).with_name("device_list.py")
_SAME_MEMORY = 0.01
"""The part by which the memory of two devices of a kind may differ: some of it may be reserved."""


class DeviceError(Exception):
    """The devices cannot be used. The message says why."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU: its name and its memory."""

    name: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The device of a process. ``index`` is its number without breakscan, ``visible`` the variable with it first."""

    index: int
    visible: str

    @property
    def label(self) -> str:
        """The name that the device has without breakscan."""
        return f"cuda:{self.index}"


def placements(wanted: str | None) -> tuple[Placement | None, ...]:
    """Where processes can run: on each of the devices that are ``wanted`` (``0,1`` or ``all``), or where the program
    runs by itself. Raises DeviceError.
    """
    if wanted is None:
        return (None,)
    devices = _listed()
    return placed(wanted_numbers(wanted, len(devices)), devices, os.environ)


def wanted_numbers(wanted: str, count: int) -> list[int]:
    """The numbers of the devices that are ``wanted``, of ``count`` devices. Raises DeviceError."""
    if wanted == ALL:
        if not count:
            raise DeviceError("torch finds no CUDA device here")
        return list(range(count))
    words = [word.strip() for word in wanted.split(",")]
    if not all(word.isdecimal() for word in words):
        raise DeviceError(f"{wanted!r} is neither 'all' nor a list of numbers, such as 0,1")
    numbers = [int(word) for word in words]
    if len(set(numbers)) < len(numbers):
        raise DeviceError(f"{wanted!r} names a device twice")
    if missing := [number for number in numbers if number >= count]:
        there = f"cuda:0 to cuda:{count - 1}" if count > 1 else "cuda:0 alone" if count else "no CUDA device"
        raise DeviceError(f"no such device: {', '.join(map(str, missing))}; torch finds {there} here")
    return numbers


def placed(numbers: Sequence[int], devices: Sequence[Device], environment: Mapping[str, str]) -> tuple[Placement, ...]:
    """Where processes run on these devices. Raises DeviceError if they are not of one kind."""
    first = devices[numbers[0]]
    if other := [number for number in numbers if not _is_same_kind(devices[number], first)]:
        words = ", ".join(f"cuda:{number} is {_words(devices[number])}" for number in other)
        raise DeviceError(f"only devices of one kind: cuda:{numbers[0]} is {_words(first)}, {words}")
    names = environment.get(VISIBLE, "").split(",") if environment.get(VISIBLE) else list(map(str, range(len(devices))))
    order = [names[number].strip() for number in numbers]
    return tuple(Placement(number, ",".join(order[at:] + order[:at])) for at, number in enumerate(numbers))


def _is_same_kind(one: Device, other: Device) -> bool:
    near = abs(one.memory_bytes - other.memory_bytes) <= _SAME_MEMORY * other.memory_bytes
    return one.name == other.name and near


def _words(device: Device) -> str:
    return f"{device.name} with {device.memory_bytes / (1 << 30):.1f} GiB"


def _listed() -> list[Device]:
    command = [sys.executable, *interpreter_options(sys.orig_argv), str(_LIST)]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode:
        last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "")
        raise DeviceError(f"torch could not list its devices: {last.strip()}")
    return [Device(**one) for one in json.loads(result.stdout.splitlines()[-1])]
