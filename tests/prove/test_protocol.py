"""Commands and replies cross the boundary between processes with their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from breakscan.prove.call_result import failure_of
from breakscan.prove.protocol import (
    BlockTime,
    CommandFailed,
    CompileOption,
    Mismatch,
    Stage,
    StepKind,
    ValueMismatch,
    command_line,
    reply_line,
    reply_of,
)


class Served:
    """Answers commands of each kind."""

    def __init__(self) -> None:
        self.options: dict[str, CompileOption] = {}

    def block(self, calls: int, kind: StepKind) -> BlockTime:
        return BlockTime(1.0 if kind is StepKind.EAGER else 2.0, calls)

    def take(self, path: str) -> tuple[ValueMismatch, ...]:
        return (ValueMismatch(path, Mismatch.SHAPE, "2", "3"),)

    def compile(self, options: dict[str, CompileOption]) -> None:
        self.options = options

    def memory(self, kind: StepKind) -> int | None:
        if kind is StepKind.EAGER:
            raise KeyError("x")
        return "much"  # type: ignore[return-value]


def exchanged(served: Served, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    line = command_line(method, *args, **kwargs).decode()
    return reply_of(method, reply_line({"Served": served}, line, failure_of).encode())


def test_replies_come_back_as_they_were() -> None:
    served = Served()
    assert exchanged(served, Served.block, 3, StepKind.EAGER) == BlockTime(1.0, 3)
    assert exchanged(served, Served.block, 3, kind=StepKind.COMPILED) == BlockTime(2.0, 3)
    assert exchanged(served, Served.take, "x") == (ValueMismatch("x", Mismatch.SHAPE, "2", "3"),)
    assert exchanged(served, Served.compile, {"mode": "x", "dynamic": None, "level": 1.5}) is None
    assert served.options == {"mode": "x", "dynamic": None, "level": 1.5}


@pytest.mark.torch
def test_a_failure_says_what_was_raised(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandFailed, match="KeyError: 'x'") as raised:
        exchanged(Served(), Served.memory, StepKind.EAGER)
    assert raised.value.failure.stage is Stage.RUN_TIME
    assert "Traceback" in capsys.readouterr().err


def test_a_reply_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="'much' is no int"):
        exchanged(Served(), Served.memory, StepKind.COMPILED)
