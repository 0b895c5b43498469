"""Why no program can be made."""

from __future__ import annotations

from enum import Enum


class Obstacle(Enum):
    """``about`` of :class:`NotReproducible` is a name."""

    NO_FUNCTION = "no function"
    """The recording does not say which function of the program it was in."""
    NO_VALUES = "no values"
    """The values of the function were not recorded."""
    NO_SOURCE = "no source"
    """The source of the function cannot be read."""
    SAME_NAME = "same name"
    """Two files of the program mean different things by a name."""


class NotReproducible(Exception):
    """No program can be made of what was recorded."""

    def __init__(self, obstacle: Obstacle, about: str = "") -> None:
        self.obstacle, self.about = obstacle, about
        super().__init__(f"{obstacle.value}: {about}")
