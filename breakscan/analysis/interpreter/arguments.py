"""The evaluated arguments of a call, and the event of calling."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from breakscan.analysis.interpreter.values import (
    UNKNOWN,
    Sure,
    Value,
)
from breakscan.rulebook.events import Argument, EventKind

if TYPE_CHECKING:
    from breakscan.analysis.interpreter.frame import Frame


@dataclass(slots=True)
class Arguments:
    """Evaluated arguments.  ``spread`` tells that ``*`` or ``**`` may have brought more."""

    positional: list[Value]
    named: dict[str, Value]
    spread: bool = False

    def get(self, index: int, name: str | None = None) -> Value | None:
        if name is not None and name in self.named:
            return self.named[name]
        return self.positional[index] if index < len(self.positional) else None

    def values(self) -> list[Value]:
        return [*self.positional, *self.named.values()]

    def patterns(self) -> tuple[Argument, ...]:
        listed = [Argument(i, None, value.words()) for i, value in enumerate(self.positional)]
        return (*listed, *(Argument(None, name, value.words()) for name, value in self.named.items()))

    def behind(self, receiver: Value) -> Arguments:
        return Arguments([receiver, *self.positional], self.named, self.spread)


def emit_call(frame: Frame, node: ast.Call, callee: str, arguments: Arguments, sure: Sure) -> None:
    """Emits a call, with its argument 0 as the operand."""
    operand = arguments.get(0) or UNKNOWN
    tensors = [v.sure for v in arguments.values() if v.is_tensor]
    if operand.is_tensor and len(tensors) > 1:
        # Rules may demand any argument to be a tensor: the least sure of them speaks for all.
        operand = replace(operand, sure=min(tensors))
    frame.emit(
        EventKind.CALL,
        node,
        callee=callee,
        operand=operand,
        arguments=arguments.patterns(),
        sure=Sure.LIKELY if arguments.spread else sure,
    )
