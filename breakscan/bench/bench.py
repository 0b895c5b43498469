"""The pipeline of ``bench``: a program → what was measured of it in each way in which it can be compiled."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from breakscan.bench.best import best_of, write_for
from breakscan.bench.eager_baseline import EagerBaseline
from breakscan.bench.hinted_settings import flags_for
from breakscan.bench.replicates import run_again
from breakscan.bench.result import OWN, Bench, BenchRow, MeasurementStatus, Variant
from breakscan.bench.trial import Say, Trial
from breakscan.bench.variants import (
    Choices,
    WantedVariants,
    doubles,
    not_run,
    planned,
    with_settings,
    without_recompiles,
)
from breakscan.runtime.explain.explanation import Explanation
from breakscan.worker.captured_words import environment_of, notes_of
from breakscan.worker.interrupt import interrupted_once
from breakscan.worker.worker import UserProgram


def bench(program: UserProgram, wanted: WantedVariants, say: Say) -> Bench:
    """Runs the program several times, and writes nothing.  ``say`` is told what goes on.  SIGINT or SIGTERM ends
    it with what is measured until then.

    Raises NothingToMeasure where the program cannot be measured, ArmError where it cannot be run, UnknownName where
    something is wanted that torch has not.
    """
    folder = Path(tempfile.mkdtemp(prefix="breakscan-bench-"))
    work = _Work(program, wanted, folder, say)
    try:
        with interrupted_once():
            work.run()
    except KeyboardInterrupt:
        work.interrupted = True
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return work.result()


class _Work:
    def __init__(self, program: UserProgram, wanted: WantedVariants, folder: Path, say: Say) -> None:
        self.program = program
        self.wanted = wanted
        self.say = say
        self.interrupted = False
        self.baseline = EagerBaseline(program, folder)
        self.variants: list[Variant] = []
        self.rows: list[BenchRow] = []
        self.device = ""
        self.flags: Variant | None = None
        self._kept: dict[str, Any] = {}
        self._folders: dict[str, Path] = {}

    def run(self) -> None:
        choices, meant = self.baseline.run(self._plan, self.say)
        self._try_all(doubles(self.variants, meant, choices))
        self._try_together()
        self._run_again()

    def _plan(self, choices: Choices) -> list[dict[str, Any]]:
        self.variants = list(planned(self.wanted, choices))
        self._kept = choices.kept
        return [dict(variant.options or {}) for variant in self.variants]

    def _try_all(self, skipped: dict[str, BenchRow]) -> None:
        for variant in list(self.variants):
            row = skipped.get(variant.label) or without_recompiles(variant, self._usual())
            if row is not None:
                self.rows.append(row)
                continue
            explanation = self._try(variant)
            if variant.label == OWN and explanation is not None:
                self._try_flags(explanation)
                self._try_with_breaks(explanation)

    def _try(self, variant: Variant) -> Explanation | None:
        number = len(self.rows) + 1

        def say(what: str) -> None:
            self.say(f"{number} of {len(self.variants)}: {variant.label}: {what}")

        tried = Trial(variant, self.baseline, number, say).run()
        self.rows.append(tried.row)
        self._folders[variant.label] = tried.folder
        if tried.explanation is not None:
            self.device = self.device or tried.explanation.device or ""
        return tried.explanation

    def _try_flags(self, explanation: Explanation) -> None:
        """With the settings that Dynamo's hints name, and with those that it names then."""
        settings: dict[str, Any] = {}
        while new := {key: value for key, value in flags_for(explanation.breaks).items() if key not in settings}:
            settings |= new
            variant = with_settings(settings)
            if any(known.settings == settings for known in self.variants):
                return
            self._add(variant)
            found = self._try(variant)
            if found is None or self.rows[-1].status is not MeasurementStatus.MEASURED:
                return
            self.flags = variant
            explanation = found

    def _try_with_breaks(self, explanation: Explanation) -> None:
        """Where the program forbids the breaks that it has."""
        if self._kept.get("fullgraph") and explanation.breaks and self.rows[-1].status is MeasurementStatus.FAILED:
            variant = Variant('mode="default", fullgraph=False', {**self._kept, "fullgraph": False})
            self._add(variant)
            self._try(variant)

    def _try_together(self) -> None:
        """What is fastest, with the settings that remove breaks."""
        assert self.baseline.same is not None
        best, _ = best_of(self.rows, self.baseline.same)
        if self.flags is None or best is None or best.variant.options is None or best.variant.settings:
            return
        together = with_settings(self.flags.settings, best.variant)
        self._add(together)
        self._try(together)

    def _run_again(self) -> None:
        """What the reader goes by, in more processes: the program's own way, and the one to choose.  That may be
        another one then."""
        assert self.baseline.same is not None
        done: set[str] = set()
        while True:
            best, _ = best_of(self.rows, self.baseline.same)
            wanted = {OWN, *([best.label] if best else [])} - done
            again = [row for row in self.rows if row.label in wanted and row.status is MeasurementStatus.MEASURED]
            if not again:
                return
            for row in again:
                done.add(row.label)
                self.rows[self.rows.index(row)] = self._again(row)

    def _again(self, row: BenchRow) -> BenchRow:
        def say(what: str) -> None:
            self.say(f"{row.label}: {what}")

        return run_again(row, self.baseline, self._folders[row.label], say)

    def _add(self, variant: Variant) -> None:
        self.variants.insert(len(self.rows), variant)

    def _usual(self) -> BenchRow | None:
        """The row of Inductor as it is by default."""
        row = next((row for row in self.rows if row.label == 'mode="default"'), None)
        if row is not None and row.same_as is not None:
            row = next((one for one in self.rows if one.label == row.same_as), None)
        return row

    # -- what it comes to ---------------------------------------------------------------------------------------

    def result(self) -> Bench:
        same, about = self.baseline.same, self.baseline.about
        best, as_fast = best_of(self.rows, same) if same is not None else (None, ())
        done = {row.label for row in self.rows}
        left = [not_run(variant, "it was interrupted") for variant in self.variants if variant.label not in done]
        callables = {one["name"]: one["calls"] for one in about.get("callables", ())}
        asked = bool(self.program.requests.compile)
        return Bench(
            argv=self.program.argv,
            environment=environment_of(about, self.device),
            callables=callables,
            rows=(*self.rows, *left),
            eager=self.baseline.eager,
            same=same,
            notes=(*(notes_of(about) if about else ()), *self.baseline.notes),
            interrupted=self.interrupted,
            best=best.label if best else None,
            as_fast=tuple(row.label for row in as_fast),
            write=write_for(best, callables, asked) if best else None,
        )
