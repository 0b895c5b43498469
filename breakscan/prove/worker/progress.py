"""What ``verify`` and ``bench`` do at the moment, as values; reports word them."""

from __future__ import annotations

from enum import Enum


class MeasuringStep(Enum):
    RUN = "run"
    """Running the program."""
    TRACE = "trace"
    """Running Dynamo alone."""
    COMPILE = "compile"
    TIME = "time"
    REPEAT = "repeat"
    """Timing again in another process."""
    RECORD_TESTS = "record-tests"
    """Recording the outcomes of tests."""
