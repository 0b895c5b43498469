"""The costs of functions in the last recorded run, with the code that they had then."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.explanation.from_recording import explain_run
from breakscan.recording.records import FileSeen
from breakscan.recording.session import RecordedRun, read_run
from breakscan.rulebook.library import load_library
from breakscan.source.module import SourceProblem, parse_module
from breakscan.source.outline import code_of, functions_by_name
from breakscan.source.source_files import SourceFiles


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """The cost of a function.  ``code`` is its text during the run; ``seconds`` are those of its steady ``calls``,
    where it was called as something compiled.  ``breaks`` counts places, ``recompiles`` times."""

    code: str
    calls: int
    seconds: float
    breaks: int
    recompiles: int
    runs_eager: bool


Costs = Mapping[str, Mapping[str, FunctionCost]]
"""Costs by absolute path and qualified name without ``<locals>``."""


def recorded_costs(recording: Path, folders: Iterable[Path]) -> Costs:
    """The costs of the functions of a recording whose code during the run is known.

    Sources are read below ``folders`` only.  Raises SessionError and OSError where the recording cannot be read.
    """
    run = read_run(recording)
    cwd = run.parts[0].manifest.cwd
    files = SourceFiles(map(str, folders))
    explanation = explain_run(run, rules=load_library(()), show=lambda path: os.path.join(cwd, path), files=files)
    about = _costs(explanation)
    found: dict[str, dict[str, FunctionCost]] = {}
    for path in {path for path, _ in about}:
        text = _text_of_run(run, path, files)
        for name, code in _codes(path, text).items() if text is not None else ():
            if (cost := about.get((path, name))) is not None:
                found.setdefault(path, {})[name] = cost(code)
    return found


@dataclass(slots=True)
class _Cost:
    calls: int = 0
    seconds: float = 0.0
    breaks: int = 0
    recompiles: int = 0
    runs_eager: bool = False

    def __call__(self, code: str) -> FunctionCost:
        return FunctionCost(code, self.calls, self.seconds, self.breaks, self.recompiles, self.runs_eager)


def _costs(explanation: Explanation) -> dict[tuple[str, str], _Cost]:
    """The costs by path and function."""
    found: dict[tuple[str, str], _Cost] = {}
    for compiled in explanation.compiles:
        found.setdefault((compiled.site.path, compiled.function), _Cost())
    for broken in explanation.breaks:
        if broken.function is not None:
            found.setdefault((broken.site.path, broken.function), _Cost()).breaks += 1
    for again in explanation.recompiles:
        if again.function is not None:
            found.setdefault((again.site.path, again.function), _Cost()).recompiles += 1
    for frame in explanation.frames:
        if frame.status is FrameStatus.EAGER and not frame.rest_only:
            found.setdefault((frame.site.path, frame.function), _Cost()).runs_eager = True
    for calls in explanation.calls:
        # Calls are known by name alone.
        places = [key for key in found if key[1] == calls.name]
        if len(places) == 1 and calls.calls:
            found[places[0]].calls += calls.calls
            found[places[0]].seconds += calls.seconds
    return found


def _codes(path: str, text: str) -> dict[str, str]:
    """The code of each function of a text."""
    try:
        module = parse_module(text, Path(path), path)
    except SourceProblem:
        return {}
    return {name: code_of(module, scope) for name, scope in functions_by_name(module).items()}


def _text_of_run(run: RecordedRun, path: str, files: SourceFiles) -> str | None:
    """The text of a file during the run: kept with the recording, or that of the file if it has not changed."""
    kept = run.sources.get(path)
    return files.unchanged_text(path, set(_digests(run, path))) if kept is None else kept


def _digests(run: RecordedRun, path: str) -> Iterator[str]:
    """The digests that a file had when processes of the run traced it."""
    for part in run.parts:
        for process in part.processes:
            yield from (one.digest for one in process if isinstance(one, FileSeen) and one.path == path)
