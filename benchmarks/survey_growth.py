"""How the cost of a survey grows with its units, where the units are done: planning, beginning, going on, reports,
comparing and merging.

    python benchmarks/survey_growth.py STORE [--sizes N,N,...]

The results of STORE, a survey that really ran, are repeated under other names until there are as many units as asked.
Each step runs in a process of its own, whose CPU seconds and largest memory are those of the step alone: what an empty
one of these processes takes is printed first.  "next" is the time from a result that comes to the next one that can
come: keeping it, at the end of a survey of that size.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakscan.report.formats import SURVEY, SURVEY_DIFF
from breakscan.survey.comparison import compared
from breakscan.survey.engine import Arriving
from breakscan.survey.keyed_tasks import KeyedTask
from breakscan.survey.manifest import SurveyManifest, read_manifest
from breakscan.survey.overview import overview
from breakscan.survey.plan import PlannedUnit, planned
from breakscan.survey.stage_results import StageResult, packed
from breakscan.survey.store import Store, Surveyed
from breakscan.survey.survey import run_survey
from breakscan.survey.units import SurveyStage

STEPS = ("nothing", "plan", "begin", "fill", "go on", "report", "report json", "diff", "merge")


def repeated(source: Path, count: int) -> Iterator[tuple[PlannedUnit, dict[str, StageResult]]]:
    """As many units as asked, with the results of units that ran."""
    with Store(source, must_exist=True) as store:
        found = [one for one in store.surveyed(store.latest()) if SurveyStage.EXPLAIN.value in one.results]
        reports = [_report(store, one) for one in found]
    for number in range(count):
        at = number % len(found)
        one = found[at]
        unit = replace(one.unit, name=f"{one.unit.name} {number // len(found)}")
        result = replace(one.results[SurveyStage.EXPLAIN.value], report=reports[at])
        yield PlannedUnit(unit, one.environment, "/"), {SurveyStage.EXPLAIN.value: result}


def _report(store: Store, one: Surveyed) -> bytes | None:
    text = store.report(one.unit.key(one.environment), SurveyStage.EXPLAIN.value)
    return None if text is None else packed(text)


class Replays:
    """An engine that answers with results that there are; it refuses where there are none."""

    def __init__(self, results: dict[str, dict[str, StageResult]]) -> None:
        self._results = results

    def run(self, tasks: Sequence[KeyedTask], *, alone: bool) -> Arriving:
        for one in tasks:
            for stage in one.task.stages:
                yield one.key, self._results[one.key][stage.value]

    def close(self) -> None:
        pass


class Step:
    """One step, by its name, for a number of units.  Gives more numbers than the time of it where there are any."""

    def __init__(self, source: Path, folder: Path, count: int) -> None:
        self.source = source
        self.folder = folder
        self.count = count
        self.store = folder / f"{count}.db"
        self.manifest = SurveyManifest(Path("/"), (), ())

    def run(self, name: str) -> dict[str, float]:
        """Measures a step."""
        step: Callable[[], Callable[[], dict[str, float] | None]] = getattr(self, name.replace(" ", "_"))
        work = step()
        started, cpu = time.perf_counter(), time.process_time()
        more = work() or {}
        times = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {**times, "memory": memory, **more}

    def nothing(self) -> Callable[[], None]:
        return lambda: None

    def plan(self) -> Callable[[], Any]:
        programs = "".join(f'[[program]]\nname = "unit {n}"\ncommand = ["a.py", "{n}"]\n' for n in range(self.count))
        path = self.folder / "survey.toml"
        path.write_text(f'sources = ["none"]\n{programs}', encoding="utf-8")
        return lambda: planned(read_manifest(path)) and {}

    def begin(self) -> Callable[[], None]:
        units = [unit for unit, _ in repeated(self.source, self.count)]

        def work() -> None:
            with Store(self.folder / "begun.db") as store:
                store.begin(units, ["explain"])

        return work

    def fill(self) -> Callable[[], dict[str, float]]:
        units, results = [], {}
        for unit, found in repeated(self.source, self.count):
            units.append(unit)
            results[unit.key] = found

        def work() -> dict[str, float]:
            moments = []
            with Store(self.store) as store:
                run_survey(
                    self.manifest, units, store, Replays(results), on_result=lambda _: moments.append(time.time())
                )
            late = moments[-min(len(moments), 500) :]
            log = Path(f"{self.store}-wal")
            size = self.store.stat().st_size + (log.stat().st_size if log.exists() else 0)
            return {"next": (late[-1] - late[0]) / (len(late) - 1), "size": size / self.count}

        return work

    def go_on(self) -> Callable[[], None]:
        units = [unit for unit, _ in repeated(self.source, self.count)]

        def work() -> None:
            with Store(self.store) as store:
                run_survey(self.manifest, units, store, Replays({}))

        return work

    def report(self) -> Callable[[], None]:
        return lambda: self._report("terminal")

    def report_json(self) -> Callable[[], None]:
        return lambda: self._report("json")

    def _report(self, form: str) -> None:
        with Store(self.store, must_exist=True) as store:
            SURVEY.write(form, overview(store.surveyed(store.latest())), io.StringIO())

    def diff(self) -> Callable[[], None]:
        def work() -> None:
            with Store(self.store, must_exist=True) as store, Store(self.store, must_exist=True) as other:
                found = compared(store.surveyed(store.latest()), other.surveyed(other.latest()))
            SURVEY_DIFF.write("terminal", found, io.StringIO())

        return work

    def merge(self) -> Callable[[], None]:
        def work() -> None:
            with Store(self.folder / f"merged {self.count}.db") as into, Store(self.store, must_exist=True) as other:
                into.merge(other)

        return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--sizes", default="10,100,1000,2000")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(word) for word in options.sizes.split(",")]
    if options.step:
        print(json.dumps(Step(options.store, options.folder, sizes[0]).run(options.step)))
        return
    print("| units | step | seconds | CPU s | MB | more |")
    with tempfile.TemporaryDirectory() as made:
        for size in sizes:
            for step in STEPS:
                told = _measured(options.store, step, made, size)
                more = {"next": "{:.2f} ms from a result to the next", "size": "{:,.0f} bytes a unit"}
                scale = {"next": 1e3, "size": 1.0}
                words = ", ".join(text.format(told[name] * scale[name]) for name, text in more.items() if name in told)
                row = (
                    f"{size:,}",
                    step,
                    f"{told['seconds']:.3f}",
                    f"{told['cpu']:.3f}",
                    f"{told['memory']:.0f}",
                    words,
                )
                print(f"| {' | '.join(row)} |", flush=True)
            for left in Path(made).glob("begun.db*"):
                left.unlink()


def _measured(store: Path, step: str, folder: str, size: int) -> dict[str, Any]:
    command = [sys.executable, os.path.abspath(__file__), str(store), "--step", step, "--folder", folder]
    done = subprocess.run([*command, "--sizes", str(size)], stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    main()
