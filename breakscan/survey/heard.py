"""What errors of calls speak of: it leads to the next ones."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

_MOST = 6
_GREATEST = 4096


def quoted(error: Exception) -> list[str]:
    """The names between quotes in what an error says, but for those of classes."""
    return re.findall(r"['\"`]([a-z_]\w*)['\"`]", str(error)[:2000])


@dataclass(slots=True)
class Heard:
    """The ``names`` that errors held and the ``quoted`` ones of them, and ``numbers`` that may be sizes, in the order
    in which they came."""

    names: dict[str, None] = field(default_factory=dict)
    quoted: dict[str, None] = field(default_factory=dict)
    numbers: dict[int, None] = field(default_factory=dict)

    def listen(self, error: Exception) -> None:
        """Takes up what an error says."""
        text = str(error)[:2000]
        self.names.update(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text)))
        self.quoted.update(dict.fromkeys(quoted(error)))
        for digits in re.findall(r"(?<![\w.])\d+(?![\w.]*\w)", text.replace("x", " ")):
            if len(self.numbers) < _MOST and 1 <= int(digits) <= _GREATEST:
                self.numbers.setdefault(int(digits))

    def state(self, known: Collection[str]) -> tuple[int, int]:
        """Changes when it has heard a name of these, or a number, that is new."""
        return sum(name in self.names for name in known), len(self.numbers)
