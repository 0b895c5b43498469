"""Tasks as engines get them."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.survey.run_unit import Task


@dataclass(frozen=True, slots=True)
class KeyedTask:
    """A task with the key that its results are kept under."""

    key: str
    task: Task

    @property
    def needs_gpu(self) -> bool:
        """Whether it runs on a GPU."""
        return self.task.unit.device.startswith("cuda")
