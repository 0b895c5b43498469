"""A process of a program, without a fork server unless one is given."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from breakscan.prove.candidate import UNCHANGED
from breakscan.prove.worker import CALLS, UserProgram, Worker, Workers


@pytest.fixture
def started(tmp_path: Path) -> Any:
    """Starts the program with this text, with its files in ``workers1``, ``workers2``, … of the folder."""
    numbers = itertools.count(1)

    def started(text: str, server: Any = None, calls: int = CALLS) -> Worker:
        script = tmp_path / "it.py"
        script.write_text(text, encoding="utf-8")
        program, none = UserProgram((str(script),), calls=calls), SimpleNamespace(start=lambda *_: None)
        return Workers(program, tmp_path / f"workers{next(numbers)}", server or none).start(UNCHANGED)

    return started
