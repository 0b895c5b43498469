"""Reports of ``tune``: for terminals, JSON and Markdown.  ``schemas/tune.schema.json`` describes the JSON."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TextIO

from breakscan.model.words import capitalized, counted, duration, grouped, listed, megabytes, sentence
from breakscan.prove.changed_code import UnseenCode
from breakscan.prove.faster import CLOSE, LEAST
from breakscan.prove.observation import Observation
from breakscan.prove.proof import Best, Evidence, Goal, RunFigures, Trial, TrialVerdict, Tuning, VariedDifference
from breakscan.report import measurements as measured
from breakscan.report.measured_page import MeasuredPage, PageDetail, PageRow
from breakscan.report.printable import picked, printable, write_json_report
from breakscan.report.verify import MOST_NAMED, alike, pair_of_bytes, unseen_words, varied_words

_BETTER = {Goal.STEP: "faster", Goal.COMPILE: "faster to compile", Goal.MEMORY: "smaller in memory"}
_VERDICTS = {
    TrialVerdict.GAINS: "gains by itself",
    TrialVerdict.NO_GAIN: "no gain",
    TrialVerdict.DIFFERS: "computes something else",
    TrialVerdict.FAILS: "fails",
    TrialVerdict.NOT_TRIED: "not tried",
}
_COMPARED = {
    Evidence.CALLS: "the results of the compiled calls, with their gradients and state",
    Evidence.VARIED: "the results of varied calls",
    Evidence.RUN: "the tensors and numbers that the program has at its end, and what its calls return",
    Evidence.EAGER: "these are those of eager, too, which the program as it is does not compute",
}
_Value = Callable[[RunFigures], int]
_COUNTS: tuple[tuple[str, str, _Value], ...] = (
    ("break", "breaks", lambda run: run.breaks),
    ("recompile", "recompiles", lambda run: run.recompiles),
    ("function run eager", "functions run eager", lambda run: run.eager_functions),
)


def headline(tuning: Tuning) -> str:
    """``1.79× faster [1.75, 1.83]: 9 breaks → 0, 4 recompiles → 0``."""
    best = tuning.best
    if best is not None and tuning.error:
        said = f"It runs to its end, which it does not as it is ({tuning.error})"
    elif best is None:
        last = {trial.names: trial.verdict for trial in tuning.tried}
        left = sum(verdict is TrialVerdict.NOT_TRIED for verdict in last.values())
        count = len(last) - left
        nothing = f"Nothing is {_BETTER[tuning.goal]} than what you have ({counted(count, 'way')} tried)"
        if left:
            nothing = f"Nothing {_BETTER[tuning.goal]} was found in time: {count} of {count + left} ways tried (--time)"
        said = nothing if count else "Nothing was tried"
    elif not best.after.graphs and not best.after.eager_functions:
        said = f"Eager is best: {_gain(best, tuning)}"
    else:
        said = ": ".join(filter(None, (_gain(best, tuning), _counts(best.before, best.after))))
    return f"{'Interrupted. ' if tuning.interrupted else ''}{capitalized(said)}"


def _counts(before: RunFigures, after: RunFigures) -> str:
    """``9 breaks → 0, 4 recompiles → 1``: those that differ."""
    changed = [(one, many, value) for one, many, value in _COUNTS if value(before) != value(after)]
    return ", ".join(f"{counted(value(before), one, many)} → {value(after)}" for one, many, value in changed)


def _gain(best: Best, tuning: Tuning) -> str:
    """The gain of the goal.  Steps may be as fast as before, and fewer of them wait for the compiler."""
    before, after, ratio = best.before, best.after, best.ratio
    if tuning.goal is Goal.MEMORY:
        return f"{pair_of_bytes(before.memory_bytes, after.memory_bytes)} of memory"
    if tuning.goal is Goal.COMPILE:
        return f"{measured.steps(before.compile_seconds, after.compile_seconds)} of compiling"
    if ratio is not None and ratio.low > LEAST and not ratio.disturbed:
        return f"{measured.times_words(ratio)} faster {measured.interval(ratio)}"
    if ratio is not None and ratio.high < 1 / LEAST and not ratio.disturbed:
        compiling = measured.steps(before.compile_seconds, after.compile_seconds)
        return f"{compiling} of compiling, with steps of {measured.ratio_words(ratio)}"
    if after.run_seconds * CLOSE < before.run_seconds:
        run = "the program" if tuning.step is None else f"{counted(tuning.steps, 'step')} with compiling (caches warm)"
        return f"{measured.steps(before.run_seconds, after.run_seconds)} for {run}"
    if ratio is not None and ratio.is_noisy:
        what = "Fewer problems, too" if after.problems < before.problems else "Too"
        return f"{what} noisy to say if faster{'' if ratio.disturbed else f' {measured.interval(ratio)}'}"
    return "As fast as before" if ratio is None else f"As fast as before, {measured.ratio_words(ratio)}"


def table_rows(tuning: Tuning) -> list[tuple[str, ...]]:
    """The titles of the columns, and a row for each figure; those that the headline has are left out."""
    best = tuning.best
    before, after = (best.before, best.after) if best else (tuning.before, None)
    runs = (("as it is", before), ("tuned", after), ("eager", tuning.eager))
    shown = {title: run for title, run in runs if run is not None}
    # Without a GPU, the peak is that of the process, most of which is torch's own.
    has_memory = tuning.goal is Goal.MEMORY or tuning.environment["device"] != "cpu"

    def cells(run: RunFigures) -> dict[str, str]:
        """By the titles of the rows."""
        kept = [(many, value) for _, many, value in _COUNTS if best is None or value(best.before) == value(best.after)]
        counts = {many: str(value(run)) for many, value in (*kept, ("graphs", lambda run: run.graphs))}
        seconds = (
            ("step", run.step_seconds),
            ("compiling", run.compile_seconds),
            # With a loop, it depends on the number of steps.
            ("the program", run.run_seconds if tuning.step is None else None),
        )
        return {
            **(dict.fromkeys(counts, "") if run is tuning.eager else counts),
            **{title: duration(value) if value else "" for title, value in seconds},
            "memory": megabytes(run.memory_bytes) if has_memory and run.memory_bytes is not None else "",
        }

    columns = list(map(cells, shown.values()))
    rows = [(title, *(column[title] for column in columns)) for title in columns[0]]
    return [("", *shown), *(row for row in rows if set(row[1:]) - {"", "0"})]


def outcome_words(trial: Trial) -> str:
    """``no faster``, ``1.20× slower, with 3 breaks → 0``, ``fails: it ended by signal 11``."""
    reason, over, after = remark_words(trial.reason), trial.over, trial.figures
    is_fewer = over is not None and after is not None and after.graphs > 0 and after.problems < over.problems
    counts = f", with {_counts(over, after)}" if is_fewer and over and after else ""
    if reason and trial.verdict is TrialVerdict.NO_GAIN:
        return f"{reason}{counts}"
    ratio = f" ({measured.ratio_words(trial.ratio)})" if trial.ratio is not None and not reason else ""
    return f"{_VERDICTS[trial.verdict]}{ratio}{': ' if reason else counts}{reason}"


def remark_words(remark: str | Observation) -> str:
    """A reason or a note as a clause."""
    return remark if isinstance(remark, str) else measured.observation_words(remark)


def held_back_words(best: Best) -> list[str]:
    """Why the best program is not written unasked, as clauses; differences of one kind in varied calls together."""
    texts = [one for one in best.held_back if isinstance(one, str)]
    unseen = [unseen_words(one) for one in best.held_back if isinstance(one, UnseenCode)]
    varied = alike([one for one in best.held_back if isinstance(one, VariedDifference)])
    return [*texts, *unseen, *(varied_words(*group) for group in varied)]


def not_taken(tuning: Tuning) -> list[tuple[str, str]]:
    """The changes that are not in the best program, with the last reason; those with one together."""
    taken = {name for change in tuning.best.changes for name in change.names} if tuning.best else set()
    last = {tuple(one.names): one for one in tuning.tried}.values()
    others = [trial for trial in last if not taken.issuperset(trial.names)]
    groups = grouped((outcome_words(trial), " + ".join(trial.names)) for trial in others)
    return [(listed(names, "change", MOST_NAMED), words) for words, names in groups.items()]


def basis_words(tuning: Tuning) -> list[tuple[str, str]]:
    """The assumptions of the best program, and what was compared in which runs, as labels and sentences."""
    best = tuning.best
    said = [("Assumes: ", sentence(words)) for words in (best.assumes if best else ())]
    if best is not None and best.compared:
        said.append(("Equal: ", sentence("; ".join(_COMPARED[one] for one in best.compared))))
    loop = f"{counted(tuning.steps, 'iteration')} of the loop at {tuning.step}"
    runs = "the whole program" if tuning.step is None else loop
    cut = ", after which the program would go on" if tuning.cut else ""
    device = f"on {tuning.environment['device']}, torch {tuning.environment['torch']}"
    said.append(("Each run: ", sentence(f"{runs}{cut}, {device}")))
    return [*said, *(("Note: ", sentence(remark_words(note))) for note in tuning.notes)]


def ending_words(tuning: Tuning) -> str:
    """The files that were written or not, and the option that writes them."""
    said = [measured.written_words(tuning)]
    if tuning.best is not None and not (tuning.applied or tuning.not_applied):
        held_back = "; ".join(held_back_words(tuning.best))
        said.append(f"Held back: {held_back}. --apply-unseen writes it." if held_back else "--apply writes the patch.")
    return " ".join(said)


def tune_page(tuning: Tuning) -> MeasuredPage:
    patch = "" if tuning.best is None else tuning.best.patch
    tuning = printable(tuning)
    titles, *rows = table_rows(tuning)
    return MeasuredPage(
        "tune",
        headline(tuning),
        (*titles, ""),
        [PageRow(title, cells, is_code=False) for title, *cells in rows],
        paragraphs=basis_words(tuning),
        details=[PageDetail("Not taken", [f"{names}: {sentence(words)}" for names, words in not_taken(tuning)])],
        ending=ending_words(tuning),
        patch=patch,
    )


SCHEMA = 1


def write_tune_json(tuning: Tuning, stream: TextIO) -> None:
    fields = {
        "program": tuning.argv,
        **picked(tuning, "environment goal seconds steps step cut error before eager applied interrupted"),
        "says": headline(printable(tuning)),
        "best": tuning.best and _best(tuning.best),
        "tried": list(map(_trial, tuning.tried)),
        "notes": list(map(remark_words, tuning.notes)),
        "not_applied": measured.not_applied_words(tuning.not_applied),
    }
    write_json_report(SCHEMA, fields, stream)


def _best(best: Best) -> dict[str, Any]:
    before, after = asdict(best.before), asdict(best.after)
    return {
        **picked(best, "patch compared ratio assumes"),
        "candidates": list(map(_trial, best.changes)),
        "equal": bool(best.compared),
        **{name: {"before": before[name], "after": after[name]} for name in before},
        "held_back": held_back_words(best),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {**picked(trial, "names kind verdict figures ratio"), "reason": remark_words(trial.reason)}
