"""The tools: each runs the command of its name, and answers with its JSON, cut to what an agent reads.

In answers, a place is ``file:line:column``, and a remedy its text.  Values that are empty are left out.  The longest
list is read a page at a time: ``more`` is the number of entries that follow.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from breakscan.model.findings import Kind, Mode, Place
from breakscan.model.problem import ProblemKind
from breakscan.recording.recording import Tally
from breakscan.report.printable import visible
from breakscan.rulebook.config import ConfigError, load_settings, resolve_target
from breakscan.rulebook.document import RuleError
from breakscan.rulebook.ledger import load_ledger
from breakscan.rulebook.library import load_library
from breakscan.serve.agents.arguments import (
    CheckArguments,
    ExplainArguments,
    FixArguments,
    RootFolder,
    RuleArguments,
    RunArguments,
    ToolArguments,
    ToolFailure,
    TuneArguments,
    VerifyArguments,
)
from breakscan.serve.agents.command import CommandResult, Progress, run_command

Report = Mapping[str, Any]
Answer = dict[str, Any]

MOST_LINES = 240
"""Of a diff."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The keys of a report that its answer has, the list that is read by pages, and the keys of its entries."""

    keys: tuple[str, ...]
    paged: str
    of_entries: tuple[str, ...]


KEPT = {
    "check": Kept(
        ("summary", "errors", "warnings"),
        "findings",
        (
            *("site", "rule", "name", "severity", "message", "confidence", "function", "condition", "behind"),
            *("rewrites", "remedies"),
        ),
    ),
    "fix": Kept(("summary", "errors"), "files", ("path", "written", "diff", "safe", "unsafe", "declined", "without")),
    "explain": Kept(
        ("summary", "notices"),
        "problems",
        (
            *("site", "kind", "rule", "gb_id", "what", "why", "consequences", "functions", "count", "takes"),
            *("remedies", "hints"),
        ),
    ),
    "verify": Kept(
        ("calls", "compiled", "unreached", "declined", "notes", "applied", "not_applied", "held_back"),
        "proofs",
        ("label", "site", "rule", "rewrite", "verdict", "says", "reasons", "breaks", "unseen", "varied", "held_back"),
    ),
    "tune": Kept(("says", "best", "notes", "applied", "not_applied"), "tried", ("names", "verdict", "reason")),
}
_INSIDE = {
    "finding": ("site", "rule"),
    "without": ("site", "rule"),
    "remedies": ("text",),
    "reasons": ("reason",),
    "candidates": ("names", "kind"),
    **dict.fromkeys(("unseen", "varied", "compiled"), ("says",)),
}
"""The keys of objects under these keys; of a single one, its value is left."""


def answer(command: str, report: Report, offset: int, limit: int, **more: Any) -> Answer:
    """Return the answer of a tool from the report of its command, with ``more`` that is not in that."""
    kept = KEPT[command]
    entries = [one for one in report[kept.paged] if _is_read(one)]
    page = [_picked(one, kept.of_entries) for one in entries[offset : offset + limit]]
    left = len(entries) - offset - limit
    values = {**_picked(report, kept.keys), **more, kept.paged: page, "more": left if left > 0 else None}
    return {key: shown for key, one in values.items() if (shown := _plain(one, key)) is not None}


def _is_read(entry: Report) -> bool:
    """Return False for a problem that another one explains, and for a function that loses nothing."""
    lossless = (ProblemKind.FUNCTION.value, None)
    return entry.get("cause") is None and (entry.get("kind"), entry.get("verdict", "")) != lossless


def _picked(values: Report, keys: Sequence[str]) -> Answer:
    return {key: values[key] for key in keys if key in values}


def _plain(value: Any, key: str = "") -> Any:
    """Return a value in fewer words; None for an empty one."""
    if isinstance(value, str):
        lines = value.splitlines(keepends=True)
        rest = f"… {len(lines) - MOST_LINES} lines more" if len(lines) > MOST_LINES else ""
        return "".join(lines[:MOST_LINES]) + rest or None
    if isinstance(value, list):
        return [shown for one in value if (shown := _plain(one, key)) is not None] or None
    if not isinstance(value, Mapping):
        return value
    if {"path", "line", "column"} <= value.keys():
        message = f": {value['message']}" if "message" in value else ""
        cell = f"cell {value['cell']}:" if "cell" in value else ""
        return f"{value['path']}:{cell}{value['line']}:{value['column']}{message}"
    keys = _INSIDE.get(key, tuple(value))
    if len(keys) == 1:
        return _plain(value.get(keys[0]))
    shown = {name: _plain(one, name) for name, one in _picked(value, keys).items()}
    return {name: one for name, one in shown.items() if one is not None and one is not False} or None


STATIC_SECONDS = 600.0
"""The time limit of the tools that run no program."""
TUNED = 0.8
"""The part of the time limit of ``tune`` that it is given: a proof that has begun is ended."""

Call = Callable[[Any, Progress], Awaitable[Answer]]


_MOST_LINES = 15
_OWN = "breakscan: "
"""The start of breakscan's own lines."""


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A tool.  ``runs_code`` if it runs a program of the user; ``writes`` if it can change files."""

    name: str
    description: str
    takes: type[ToolArguments]
    call: Call
    runs_code: bool = False
    writes: bool = False


@dataclass(slots=True)
class Tools:
    """The tools of one server.  Programs run one at a time; ``seconds`` is their time limit."""

    root: RootFolder
    seconds: float
    _running: anyio.Lock = field(default_factory=anyio.Lock)
    _last: dict[str, CommandResult] = field(default_factory=dict)

    def kinds(self, with_runs: bool) -> list[ToolKind]:
        """Return all tools, or those that run no program."""
        kinds = [
            ToolKind(
                "check",
                "Show where torch.compile will break the graph, recompile or fall back to eager in Python files and "
                "notebooks. Static: imports and runs nothing.",
                CheckArguments,
                self.check,
            ),
            ToolKind(
                "explain",
                "RUNS CODE: run a Python program and show where torch.compile did break, recompile or fall back to "
                "eager, why, and what it cost. The program runs as the user, with a time limit.",
                ExplainArguments,
                self.explain,
                runs_code=True,
            ),
            ToolKind(
                "fix",
                "Rewrite what breaks. Returns a diff and changes nothing, unless write is true: then those that "
                "make no difference to an eager program, and all if unsafe is true. Static: imports and runs nothing.",
                FixArguments,
                self.fix,
                writes=True,
            ),
            ToolKind(
                "verify",
                "RUNS CODE: run a Python program several times, as it is and with the rewrites of fix, or with a "
                "patch, and report if results are equal, breaks are gone and steps are faster. Changes no file, unless "
                "write is true.",
                VerifyArguments,
                self.verify,
                runs_code=True,
                writes=True,
            ),
            ToolKind(
                "tune",
                "RUNS CODE: run a Python program many times, with edits, settings and other ways of compiling, and "
                "return the fastest equal one as a patch. Changes no file, unless write is true.",
                TuneArguments,
                self.tune,
                runs_code=True,
                writes=True,
            ),
            ToolKind(
                "rule",
                "Explain a rule: why the compiler cannot do it, what to write instead, with examples, and what the "
                "project's torch does with them.",
                RuleArguments,
                self.rule,
            ),
        ]
        return [kind for kind in kinds if with_runs or not kind.runs_code]

    async def check(self, asked: CheckArguments, _: Progress) -> Answer:
        words = _lists(select=asked.select)
        words += ["--diff", asked.diff] if asked.diff else []
        words += self._files(asked.paths)
        result = await run_command("check", words, self.root.folder, STATIC_SECONDS)
        return answer("check", result.report, asked.offset, asked.limit)

    async def fix(self, asked: FixArguments, _: Progress) -> Answer:
        words = _lists(select=asked.select, rewrite=asked.rewrites)
        words += [f"--{name}" for name in ("unsafe", "write") if getattr(asked, name)]
        words += self._files(asked.paths)
        result = await run_command("fix", words, self.root.folder, STATIC_SECONDS)
        return answer("fix", result.report, asked.offset, asked.limit)

    async def rule(self, asked: RuleArguments, _: Progress) -> Answer:
        return await anyio.to_thread.run_sync(self._rule, asked.rule)

    async def explain(self, asked: ExplainArguments, progress: Progress) -> Answer:
        tally: list[Tally] = []

        def doing(recording: Path, _: str) -> str:
            if not tally:
                tally.append(Tally(recording))
            tally[0].read()
            return tally[0].words

        result = await self._run("explain", [], asked, progress, doing)
        script = result.report["script"]
        ended = _ended(script["exit_status"], script["seconds"], result.limit)
        output = _last_lines(result.output) if script["exit_status"] and result.limit is None else ""
        return answer("explain", result.report, asked.offset, asked.limit, ended=ended, output=output)

    async def verify(self, asked: VerifyArguments, progress: Progress) -> Answer:
        if asked.patch is not None and (asked.select or asked.rewrites):
            raise ToolFailure("a patch is verified instead of rewrites: leave out select and rewrites")
        words = _lists(rewrite=[*asked.rewrites, *asked.select])
        words += ["--apply"] if asked.write else []
        with tempfile.TemporaryDirectory(prefix="breakscan-mcp-") as folder:
            if asked.patch is not None:
                patch = Path(folder, "change.diff")
                patch.write_text(asked.patch, encoding="utf-8", errors="surrogatepass")
                words += ["--patch", str(patch)]
            result = await self._run("verify", words, asked, progress, lambda _, output: _last_progress(output))
        return answer("verify", result.report, asked.offset, asked.limit, ended=_cut(result))

    async def tune(self, asked: TuneArguments, progress: Progress) -> Answer:
        words = [
            f"--time={TUNED * self._limit(asked):g}",
            f"--goal={asked.goal}",
            *(["--apply"] if asked.write else []),
        ]
        result = await self._run("tune", words, asked, progress, lambda _, output: _last_progress(output))
        return answer("tune", result.report, asked.offset, asked.limit, ended=_cut(result))

    async def _run(
        self,
        command: str,
        words: list[str],
        asked: RunArguments,
        progress: Progress,
        doing: Callable[[Path, str], str],
    ) -> CommandResult:
        if asked.last:
            if command not in self._last:
                raise ToolFailure(f"{command} has run nothing yet: name a program")
            return self._last[command]
        words = [*words, *(word for one in asked.compile for word in ("--compile", one)), *self._program(asked)]
        limit = self._limit(asked)
        if self._running.statistics().locked:
            await progress(0.0, "waiting for another run to end")
        async with self._running:
            result = await run_command(
                command, words, self.root.folder, limit, progress, doing, saves=command == "explain"
            )
        self._last[command] = result
        return result

    def _limit(self, asked: RunArguments) -> float:
        return min(asked.seconds or self.seconds, self.seconds)

    def _program(self, asked: RunArguments) -> list[str]:
        assert asked.program is not None
        if any("\0" in word for word in (asked.program, *asked.arguments)):
            raise ToolFailure("an argument of a program has no NUL character")
        if asked.as_module:
            if not all(part.isidentifier() for part in asked.program.split(".")):
                raise ToolFailure("with as_module, program is the name of a module, such as package.train")
            return ["-m", asked.program, *asked.arguments]
        # A path that begins with - would be read as an option.
        return [f"./{self.root.program(asked.program)}", *asked.arguments]

    def _files(self, paths: list[str]) -> list[str]:
        """Return the paths as arguments, without what leads out of the root."""
        found = list(dict.fromkeys(self.root.existing(path) for path in paths))
        excluded = [word for link in self.root.links_out(found) for word in ("--exclude", link)]
        return [*excluded, "--", *(found or ["."])]

    def _rule(self, name: str) -> Answer:
        try:
            settings = load_settings(Path(self.root.folder))
            rules = load_library(settings.rule_folders).select(name)
            target = resolve_target(settings)
        except (ConfigError, RuleError, ValueError) as error:
            raise ToolFailure(str(error)) from error
        if len(rules) > 1:
            raise ToolFailure(f"{name} names {len(rules)} rules, ask for one: {', '.join(rule.id for rule in rules)}")
        (rule,) = rules
        mode = Mode.EXPORT if rule.kind is Kind.EXPORT else Mode.DEFAULT
        ledger = load_ledger(target.ledger)
        rulings = ((place.value, ledger.ruling(rule.id, mode, place)) for place in Place)
        return {
            **{key: getattr(rule, key) for key in ("id", "name", "summary", "why", "instead")},
            "document": rule.body,
            "rewrites": list(rule.rewrites),
            "verdicts": {place: ruling.verdict.value for place, ruling in rulings if ruling is not None},
            "torch": target.torch,
        }


def _lists(**options: list[str]) -> list[str]:
    """Return options that take lists, as arguments.  Each has its value in the same word: it may begin with -."""
    return [f"--{name}={value}" for name, values in options.items() for value in values]


def _cut(result: CommandResult) -> str | None:
    """Return the time limit that ended a run, in words."""
    return None if result.limit is None else _ended(None, result.seconds, result.limit)


def _ended(status: int | None, seconds: float, limit: float | None) -> str:
    """``exit status 0 after 8.9 s``; ``limit`` is the time limit that ended the program."""
    if limit is not None:
        return f"ended by the time limit of {limit:.0f} s: ask with more seconds if that is too early"
    if status is None:
        return f"exit status unknown, after {seconds:.1f} s"
    how = f"exit status {status}" if status >= 0 else f"killed by signal {-status}"
    return f"{how} after {seconds:.1f} s"


def _last_progress(output: str) -> str:
    """Return the last message of ``verify`` or ``tune``."""
    messages = [line for line in output.splitlines() if line.startswith(_OWN)]
    return visible(messages[-1].removeprefix(_OWN)) if messages else ""


def _last_lines(output: str) -> str:
    """Return the last lines of a program, without those of breakscan."""
    lines = [visible(line) for line in output.splitlines() if not line.startswith(_OWN)]
    return "\n".join(lines[-_MOST_LINES:])
