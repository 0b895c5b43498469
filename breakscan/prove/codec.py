"""Commands and replies as lines of JSON, and the table of functions that answer commands."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from dataclasses import fields, replace
from typing import ParamSpec, TypeVar, get_args

from breakscan.model.dataclass_json import Decoder, decoder, encode
from breakscan.prove.call_result import failure_of
from breakscan.prove.protocol import Command, Failure, ProcessSettings

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_ERROR = 2000
"""Characters of an error that a worker reports."""


class CommandFailed(Exception):
    """The worker could not carry out a command."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def settings_text(settings: ProcessSettings) -> str:
    """The settings of a process as JSON."""
    return json.dumps(encode(settings))


def read_settings(text: str) -> ProcessSettings:
    """Raises ValueError for anything but the text of settings."""
    settings: ProcessSettings = decoder(ProcessSettings)(json.loads(text))
    return settings


def command_line(command: Command[object]) -> bytes:
    """A command as a line."""
    return (json.dumps([type(command).__name__, encode(command)]) + "\n").encode()


def reply_of(command: Command[R], line: bytes) -> R:
    """The reply to a command.  Raises CommandFailed where the worker reports a failure."""
    kind, content = json.loads(line)
    if kind == Failure.__name__:
        raise CommandFailed(decoder(Failure)(content))
    reply: R = _reply_decoder(type(command))(content)
    return reply


class CommandTable:
    """The functions that answer commands, by the type of the command."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[Decoder, Callable[..., object]]] = {}

    def add(self, command: Callable[P, Command[R]], answer: Callable[P, R]) -> None:
        """``answer`` takes the fields of the command as its arguments, and returns the reply."""
        self._answers[command.__name__] = decoder(command), answer

    @property
    def names(self) -> frozenset[str]:
        """The names of the commands that are answered."""
        return frozenset(self._answers)

    def reply_line(self, line: str) -> str:
        """Carries out the command of a line.  Returns the line of the reply, which may be a failure."""
        name, content = json.loads(line)
        decode, answer = self._answers[name]
        command = decode(content)
        try:
            arguments = {field.name: getattr(command, field.name) for field in fields(command)}
            reply = ["reply", encode(answer(**arguments))]
        except BaseException as error:
            traceback.print_exc()
            text = f"{type(error).__qualname__}: {error}"[:LONGEST_ERROR]
            reply = [Failure.__name__, encode(replace(failure_of(error), text=text))]
        return json.dumps(reply) + "\n"


def _reply_decoder(command: type[Command[object]]) -> Decoder:
    (base,) = command.__orig_bases__  # type: ignore[attr-defined]
    (reply,) = get_args(base)
    return decoder(reply)
