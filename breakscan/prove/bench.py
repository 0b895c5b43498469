"""The pipeline of ``bench``: from a program to the measurements of each variant."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from breakscan.explanation.explanation import Explanation
from breakscan.prove.bench_result import OWN, Bench, BenchRow, LeastTime, MeasurementStatus, best_of, least_time
from breakscan.prove.candidate import Candidate, MeasuringProgress, MeasuringStep, Say
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.observation import environment_of, notes_of
from breakscan.prove.original import Workers, running_original
from breakscan.prove.protocol import CompileOption
from breakscan.prove.trial import (
    EagerBaseline,
    Trial,
    at_once,
    captures_more,
    compile_all,
    end_all,
    is_over_limit,
    is_worth_repeating,
    run_again,
    trace_alone,
    unsteady_row,
    useless_row,
)
from breakscan.prove.variants import (
    Choices,
    WantedVariants,
    doubles,
    flags_for,
    interrupted,
    is_static,
    planned,
    times_kernels,
    with_settings,
    without_recompiles,
    write_for,
)
from breakscan.prove.worker import UserProgram, Worker, interrupted_once


def bench(program: UserProgram, wanted: WantedVariants, say: Say) -> Bench:
    """Runs the program several times, and writes nothing.

    ``say`` is called with the progress. SIGINT or SIGTERM ends the run, which returns what is measured until then.
    Raises NothingToMeasure if the program cannot be measured, WorkerError if it cannot be run, UnknownName if torch
    lacks a backend or mode that is asked for.
    """
    folder = Path(tempfile.mkdtemp(prefix="breakscan-bench-"))
    work = _Work(program, wanted, say)
    try:
        with interrupted_once(), ForkServerProcess(folder / "server", eager=2) as server:
            work.run(Workers(program, folder, server))
    except KeyboardInterrupt:
        work.interrupted = True
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return work.result()


class _Work:
    """Holds the measurements so far, since an interrupt may end the work at any point."""

    def __init__(self, program: UserProgram, wanted: WantedVariants, say: Say) -> None:
        self.program = program
        self.wanted = wanted
        self.say = say
        self.interrupted = False
        self.measured: _Variants | None = None

    def run(self, workers: Workers) -> None:
        """Measures all variants."""
        variants: list[Candidate] = []

        def plan(choices: Choices) -> list[Mapping[str, CompileOption]]:
            variants.extend(planned(self.wanted, choices))
            return [variant.options or {} for variant in variants]

        self.say(MeasuringProgress(MeasuringStep.RUN))
        with running_original(workers) as original:
            baseline = EagerBaseline(original, plan, self.say)
        self.measured = _Variants(baseline, variants, self.say)
        self.measured.run()

    def result(self) -> Bench:
        """Returns the measurements so far."""
        if self.measured is None:
            environment = environment_of(None, None)
            return Bench(self.program.argv, environment, {}, frozenset(), (), interrupted=self.interrupted)
        return self.measured.result(self.interrupted)


class _Variants:
    """Runs the variants of a program, and adds further ones depending on the results."""

    def __init__(self, baseline: EagerBaseline, variants: Sequence[Candidate], say: Say) -> None:
        self.say = say
        self.baseline = baseline
        self.variants = list(variants)
        self.rows: list[BenchRow] = []
        self.device = ""
        self.flags: Candidate | None = None
        self.at_once = 1
        self._started: dict[str, Worker] = {}
        """The first process of each variant, by label."""
        self._compiled: dict[str, Trial] = {}
        """Results of compiling side by side, by label. The processes go on until all have been timed."""
        self._traced: dict[str, Explanation | None] = {}
        """Results of Dynamo alone, by label."""

    def run(self) -> None:
        """Tries all variants, then repeats those that matter."""
        skipped = doubles(self.variants, self.baseline.resolved, self.baseline.choices)
        try:
            self._compile_side_by_side(skipped)
            self._try_all(skipped)
        finally:
            end_all(list(self._compiled.values()))
        self._try_together()
        self._run_again()

    def _compile_side_by_side(self, skipped: Collection[str]) -> None:
        choices = zip(self.variants, self.baseline.resolved, strict=True)
        own = self.baseline.choices.available.chosen
        wanted = [
            variant
            for variant, its in choices
            if variant.name not in skipped
            and not is_static(variant)
            and not variant.settings
            and not any(map(times_kernels, own if variant.options is None else (its.choice,)))
        ]
        count = min(len(wanted), at_once(self.baseline))
        if count > 1:
            self.at_once = count
            # Those that generate no code are quick: they fill the gaps.
            wanted.sort(key=lambda variant: "backend" in (variant.options or {}))
            self._compiled = {variant.name: self._trial(variant) for variant in wanted}
            trials = list(self._compiled.values())
            tracing: list[Worker] = []
            static = [variant for variant in self.variants if is_static(variant) and variant.name not in skipped]
            compile_all(trials, count, [functools.partial(self._trace_ahead, one, tracing) for one in static], tracing)

    def _trace_ahead(self, variant: Candidate, tracing: list[Worker]) -> None:
        """Runs a static variant with Dynamo alone, if anything that was compiled until now is compiled again: else it
        is hardly needed.
        """
        if any(trial.row.recompiles for trial in self._compiled.values()):
            self._say(variant, MeasuringStep.TRACE)
            self._traced[variant.name] = trace_alone(variant, self.baseline, tracing.append)

    def _trial(self, variant: Candidate) -> Trial:
        return Trial(variant, self.baseline, functools.partial(self._say, variant))

    def _try_all(self, skipped: Mapping[str, BenchRow]) -> None:
        for variant in list(self.variants):
            row = skipped.get(variant.name) or (self._without_compiling(variant) if is_static(variant) else None)
            if row is not None:
                self.rows.append(row)
                continue
            explanation = self._try(variant)
            if variant.name == OWN and explanation is not None:
                self._try_flags(explanation)
                self._try_with_breaks(explanation)

    def _try(self, variant: Candidate) -> Explanation | None:
        trial = self._compiled.get(variant.name)
        if trial is None or trial.lacked_memory:
            trial = self._trial(variant)
            try:
                trial.compile()
                trial.time()
            finally:
                trial.end()
        else:
            trial.time()
        self.rows.append(trial.row)
        if trial.started is not None:
            self._started[variant.name] = trial.started
        if trial.explanation is not None:
            self.device = self.device or trial.explanation.device or ""
        return trial.explanation

    def _without_compiling(self, variant: Candidate) -> BenchRow | None:
        """Returns the row of a static variant if its shapes are constants anyway, or if it is surely unsteady."""
        row = without_recompiles(variant, self._usual())
        if row is not None:
            return row
        alone = self._trace_alone(variant)
        return unsteady_row(variant, alone) if alone is not None and is_over_limit(alone) else None

    def _trace_alone(self, variant: Candidate) -> Explanation | None:
        if variant.name in self._traced:
            return self._traced[variant.name]
        self._say(variant, MeasuringStep.TRACE)
        return trace_alone(variant, self.baseline)

    def _say(self, variant: Candidate, step: MeasuringStep) -> None:
        self.say(MeasuringProgress(step, variant.name, self.variants.index(variant) + 1, len(self.variants)))

    def _try_flags(self, own: Explanation) -> None:
        """Tries the settings that Dynamo's hints name, and then those that the hints name after that, as soon as they
        remove a break.
        """
        settings: dict[str, object] = {}
        measured = hinting = own
        while new := {key: value for key, value in flags_for(hinting.breaks).items() if key not in settings}:
            settings |= new
            variant = with_settings(dict(settings))
            if any(known.settings == settings for known in self.variants):
                return
            self._add(variant)
            alone = self._trace_alone(variant)
            if alone is not None and not captures_more(alone, measured):
                self.rows.append(useless_row(variant, alone))
                hinting = alone
                continue
            found = self._try(variant)
            if found is None or self.rows[-1].status is not MeasurementStatus.MEASURED:
                return
            self.flags = variant
            measured = hinting = found

    def _try_with_breaks(self, explanation: Explanation) -> None:
        """Tries the program without ``fullgraph=True``, if it has graph breaks."""
        kept = self.baseline.choices.kept
        if kept.get("fullgraph") and explanation.breaks and self.rows[-1].status is MeasurementStatus.FAILED:
            variant = Candidate('mode="default", fullgraph=False', {**kept, "fullgraph": False})
            self._add(variant)
            self._try(variant)

    def _try_together(self) -> None:
        """Tries the fastest variant together with the settings that remove breaks."""
        best, _ = best_of(self.rows, self.baseline.same)
        if self.flags is None or best is None or best.variant.options is None or best.variant.settings:
            return
        together = with_settings(self.flags.settings, best.variant)
        self._add(together)
        self._try(together)

    def _run_again(self) -> None:
        """Repeats the variants that the reader relies on in more processes: the program's own, and the one to choose.

        The variant to choose may change as a result.
        """
        done: set[str] = set()
        while True:
            best, _ = best_of(self.rows, self.baseline.same)
            wanted = {OWN, *([best.label] if best else [])} - done
            measured = [row for row in self.rows if row.status is MeasurementStatus.MEASURED]
            again = [row for row in measured if row.label in wanted and is_worth_repeating(row)]
            if not again:
                return
            for row in again:
                done.add(row.label)
                self.rows[self.rows.index(row)] = self._again(row)

    def _again(self, row: BenchRow) -> BenchRow:
        return run_again(row, self.baseline, self._started[row.label], self.say)

    def _add(self, variant: Candidate) -> None:
        self.variants.insert(len(self.rows), variant)

    def _usual(self) -> BenchRow | None:
        """Returns the row of Inductor with its default settings."""
        row = next((row for row in self.rows if row.label == 'mode="default"'), None)
        if row is not None and row.same_as is not None:
            row = next((one for one in self.rows if one.label == row.same_as), None)
        return row

    def result(self, was_interrupted: bool) -> Bench:
        """Returns the measurements so far."""
        same, about = self.baseline.same, self.baseline.about
        best, as_fast = best_of(self.rows, same)
        done = {row.label for row in self.rows}
        left = [interrupted(variant) for variant in self.variants if variant.name not in done]
        callables = {one.name: one.calls for one in about.callables}
        return Bench(
            argv=self.baseline.original.workers.program.argv,
            environment=environment_of(about, self.device),
            callables=callables,
            backward=about.with_backward,
            rows=(*self.rows, *left),
            eager=self.baseline.eager,
            same=same,
            step=self.baseline.original.step,
            notes=(*notes_of(about), *self.baseline.notes),
            interrupted=was_interrupted,
            compiled_at_once=self.at_once,
            best=best.label if best else None,
            as_fast=tuple(row.label for row in as_fast),
            write=self._write(best),
            least_time=self._least_time(),
        )

    def _least_time(self) -> tuple[LeastTime, ...]:
        found = least_time(self.rows, self.baseline.eager.step_seconds, self.baseline.same)
        rows = {row.label: row for row in self.rows}
        return tuple(replace(one, write=self._write(rows.get(one.label))) for one in found)

    def _write(self, row: BenchRow | None) -> str | None:
        """Returns the code to write for a variant."""
        if row is None:
            return None
        baseline = self.baseline
        asked = bool(baseline.original.workers.program.requests.compile)
        callables = {one.name: one.calls for one in baseline.about.callables}
        return write_for(row, callables, asked, baseline.choices.available)
