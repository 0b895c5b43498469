"""The evaluated arguments of a call."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.check.interpreter.values import Value
from breakscan.rulebook.events import Argument


@dataclass(slots=True)
class Arguments:
    """Evaluated arguments.  ``spread`` means that ``*`` or ``**`` may have given more."""

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

    def with_receiver(self, receiver: Value) -> Arguments:
        """The arguments of the function that a method is, with its receiver first."""
        return Arguments([receiver, *self.positional], self.named, self.spread)
