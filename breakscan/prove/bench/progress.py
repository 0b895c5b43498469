"""What is measured at the moment; ``reports/bench/words.py`` words it."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.prove.worker.progress import MeasuringStep


@dataclass(frozen=True, slots=True)
class BenchProgress:
    """A step for a variant, None for the eager program. ``number`` counts the variants, or its processes."""

    step: MeasuringStep
    label: str | None = None
    number: int = 0
    of: int = 0
