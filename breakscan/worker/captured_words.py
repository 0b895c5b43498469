"""What an arm says of the calls that it captured, in words."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from breakscan import __version__


class NothingToMeasure(Exception):
    """The program itself cannot be measured.  Says why."""


def require_calls(about: Mapping[str, Any]) -> None:
    """Raises NothingToMeasure where there is no call, or where it fails by itself."""
    error = about["error"]
    if about["failed_in"]:
        raise NothingToMeasure(f"the program fails without torch.compile, too, in {about['failed_in']}: {error}")
    if about["callables"]:
        return
    if error:
        raise NothingToMeasure(f"the program failed before it called anything compiled: {error}")
    if about["not_called"]:
        names = ", ".join(about["not_called"])
        raise NothingToMeasure(f"the program called nothing that it had compiled ({names} was never called)")
    raise NothingToMeasure("the program compiles nothing: torch.compile was not called (--compile module:name asks)")


def notes_of(about: Mapping[str, Any]) -> Sequence[str]:
    """What the reader must know of them."""
    found = []
    if about["error"]:
        found.append(f"the program failed behind the captured calls: {about['error']}")
    for key, words in (
        ("left_out", "too many compiled callables: not captured were"),
        ("not_called", "compiled and not called until the program was stopped:"),
    ):
        if about[key]:
            found.append(f"{words} {', '.join(about[key])}")
    if not about["complete"]:
        found.append("the calls reach more objects than were looked at: not all state is the same in all runs")
    return found


def environment_of(about: Mapping[str, Any], device: str | None) -> dict[str, str]:
    """What the figures were measured with; ``device`` is that of the compiled graphs, where one is known."""
    return {
        "breakscan": __version__,
        "torch": str(about.get("torch")),
        "python": platform.python_version(),
        "device": device or ", ".join(about.get("devices", ())) or "cpu",
        "machine": platform.machine(),
    }


def other_calls(about: Mapping[str, Any], reference: Mapping[str, Any]) -> str | None:
    """In what the calls of an arm are others than those of the reference: ``other calls: 2 × f, not 3 × f``."""
    for key, words in (("callables", "other calls"), ("modes", "other modes"), ("backward", "another backward")):
        if about[key] != reference[key]:
            return f"{words}: {_shown(about[key])}, not {_shown(reference[key])}"
    return None


def _shown(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict) and "calls" in value[0]:
        return ", ".join(f"{one['calls']} × {one['name']}" for one in value)
    return str(value)
