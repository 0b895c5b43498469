"""Commands and replies cross the boundary between processes with their types."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from breakscan.prove import protocol
from breakscan.prove.capture import Capture
from breakscan.prove.codec import CommandFailed, CommandTable, command_line, reply_of
from breakscan.prove.commands import CommandHandler
from breakscan.prove.overlay import OutcomeRecorder
from breakscan.prove.protocol import (
    BlockTime,
    Command,
    Compile,
    MeasureMemory,
    Mismatch,
    ProgramRun,
    RunBlock,
    Stage,
    StepKind,
    TakeValues,
    ValueMismatch,
)

COMMANDS = [
    kind
    for kind in vars(protocol).values()
    if inspect.isclass(kind) and issubclass(kind, Command) and kind is not Command
]


def test_every_command_is_answered() -> None:
    run = ProgramRun(None, None, (), {}, (), (), None)
    handler = CommandHandler(Capture(1, 0.0, lambda: None), run, lambda: None, Path(), OutcomeRecorder())
    assert handler.table().names == {kind.__name__ for kind in COMMANDS}


def exchanged(table: CommandTable, command: Command[object]) -> object:
    return reply_of(command, table.reply_line(command_line(command).decode()).encode())


def test_replies_come_back_as_they_were() -> None:
    table = CommandTable()
    table.add(RunBlock, lambda calls, kind: BlockTime(1.0 if kind is StepKind.EAGER else 2.0, calls))
    table.add(TakeValues, lambda path: (ValueMismatch(path, Mismatch.SHAPE, "2", "3"),))
    table.add(MeasureMemory, lambda kind: None)
    got: list[dict[str, object]] = []
    table.add(Compile, lambda options: got.append(options))
    assert exchanged(table, RunBlock(3, StepKind.EAGER)) == BlockTime(1.0, 3)
    assert exchanged(table, TakeValues("x")) == (ValueMismatch("x", Mismatch.SHAPE, "2", "3"),)
    assert exchanged(table, MeasureMemory(StepKind.EAGER)) is None
    assert exchanged(table, Compile({"mode": "x", "dynamic": None, "level": 1.5})) is None
    assert got == [{"mode": "x", "dynamic": None, "level": 1.5}]


def test_a_failure_says_what_was_raised(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(kind: StepKind) -> int | None:
        raise KeyError("x")

    pytest.importorskip("torch")
    table = CommandTable()
    table.add(MeasureMemory, fails)
    with pytest.raises(CommandFailed, match="KeyError: 'x'") as raised:
        exchanged(table, MeasureMemory(StepKind.COMPILED))
    assert raised.value.failure.stage is Stage.RUN_TIME
    assert "Traceback" in capsys.readouterr().err


def test_a_reply_of_another_type_is_refused() -> None:
    table = CommandTable()
    table.add(MeasureMemory, lambda kind: "much")  # type: ignore[arg-type,return-value]
    with pytest.raises(ValueError, match="'much' is no int"):
        exchanged(table, MeasureMemory(StepKind.COMPILED))
