"""The tools: each runs the command of its name, and makes a short answer from its JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from breakscan.recording.recording import Tally
from breakscan.report.printable import visible
from breakscan.report.rules import rule_object
from breakscan.rulebook.config import ConfigError, load_settings
from breakscan.rulebook.document import RuleError
from breakscan.rulebook.ledger import load_ledger, measured_versions
from breakscan.rulebook.library import Library, load_library
from breakscan.serve.agents.answers import (
    Answer,
    check_answer,
    explain_answer,
    fix_answer,
    rule_answer,
    tune_answer,
    verify_answer,
)
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
    title: str
    description: str
    takes: type[ToolArguments]
    call: Call
    runs_code: bool = False
    writes: bool = False


@dataclass(slots=True)
class _LastRun:
    report: Any
    asked: Mapping[str, Any]
    result: CommandResult

    @property
    def cut(self) -> str | None:
        """The time limit that ended it, in words."""
        limit = self.result.limit
        return None if limit is None else _ended(None, self.result.seconds, limit)


@dataclass(slots=True)
class Tools:
    """The tools of one server.  Programs run one at a time; ``seconds`` is their time limit."""

    root: RootFolder
    seconds: float
    _running: anyio.Lock = field(default_factory=anyio.Lock)
    _last: dict[str, _LastRun] = field(default_factory=dict)

    def kinds(self, with_runs: bool) -> list[ToolKind]:
        """Return all tools, or those that run no program."""
        kinds = [
            ToolKind(
                "check",
                "Find what breaks torch.compile",
                "Show where torch.compile will break the graph, recompile or fall back to eager in Python files and "
                "notebooks. Static: imports and runs nothing.",
                CheckArguments,
                self.check,
            ),
            ToolKind(
                "explain",
                "Run a program and show what broke",
                "RUNS CODE: run a Python program and show where torch.compile did break, recompile or fall back to "
                "eager, why, and what it cost. The program runs as the user, with a time limit.",
                ExplainArguments,
                self.explain,
                runs_code=True,
            ),
            ToolKind(
                "fix",
                "Rewrite what breaks",
                "Rewrite what breaks. Returns a diff and changes nothing, unless write is true: then those that "
                "make no difference to an eager program, and all if unsafe is true. Static: imports and runs nothing.",
                FixArguments,
                self.fix,
                writes=True,
            ),
            ToolKind(
                "verify",
                "Run a program with and without rewrites",
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
                "Find the fastest equal program",
                "RUNS CODE: run a Python program many times, with edits, settings and other ways of compiling, and "
                "return the fastest equal one as a patch. Changes no file, unless write is true.",
                TuneArguments,
                self.tune,
                runs_code=True,
                writes=True,
            ),
            ToolKind(
                "rule",
                "Explain a rule",
                "Explain a rule: why the compiler cannot do it, what to write instead, examples, and the verdict of "
                "each torch.",
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
        library = await anyio.to_thread.run_sync(self._library)
        return check_answer(result.report, library, asked.given, asked.offset, asked.limit)

    async def fix(self, asked: FixArguments, _: Progress) -> Answer:
        words = _lists(select=asked.select, rewrite=asked.rewrites)
        words += [f"--{name}" for name in ("unsafe", "write") if getattr(asked, name)]
        words += self._files(asked.paths)
        result = await run_command("fix", words, self.root.folder, STATIC_SECONDS)
        return fix_answer(result.report, asked.given, asked.offset, asked.limit)

    async def rule(self, asked: RuleArguments, _: Progress) -> Answer:
        return await anyio.to_thread.run_sync(self._rule, asked.rule)

    async def explain(self, asked: ExplainArguments, progress: Progress) -> Answer:
        tally: list[Tally] = []

        def doing(recording: Path, _: str) -> str:
            if not tally:
                tally.append(Tally(recording))
            tally[0].read()
            return tally[0].words

        last = await self._run("explain", [], asked, progress, doing)
        script = last.report["script"]
        failed = script["exit_status"] not in (0, None) and last.result.limit is None
        return explain_answer(
            last.report,
            await anyio.to_thread.run_sync(self._library),
            last.asked,
            _ended(script["exit_status"], script["seconds"], last.result.limit),
            _last_lines(last.result.output) if failed else None,
            asked.offset,
            asked.limit,
        )

    async def verify(self, asked: VerifyArguments, progress: Progress) -> Answer:
        if asked.patch is not None and (asked.select or asked.rewrites):
            raise ToolFailure("a patch is verified instead of rewrites: leave out select and rewrites")
        words = _lists(select=asked.select, rewrite=asked.rewrites)
        words += ["--apply"] if asked.write else []
        with tempfile.TemporaryDirectory(prefix="breakscan-mcp-") as folder:
            if asked.patch is not None:
                patch = Path(folder, "change.diff")
                patch.write_text(asked.patch, encoding="utf-8", errors="surrogatepass")
                words += ["--patch", str(patch)]
            last = await self._run("verify", words, asked, progress, lambda _, output: _last_progress(output))
        return verify_answer(last.report, last.asked, last.cut, asked.offset, asked.limit)

    async def tune(self, asked: TuneArguments, progress: Progress) -> Answer:
        words = [
            f"--time={TUNED * self._limit(asked):g}",
            f"--goal={asked.goal}",
            *(["--apply"] if asked.write else []),
        ]
        last = await self._run("tune", words, asked, progress, lambda _, output: _last_progress(output))
        return tune_answer(last.report, last.asked, last.cut, asked.offset, asked.limit)

    async def _run(
        self,
        command: str,
        words: list[str],
        asked: RunArguments,
        progress: Progress,
        doing: Callable[[Path, str], str],
    ) -> _LastRun:
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
        self._last[command] = _LastRun(result.report, asked.given, result)
        return self._last[command]

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
        library = self._library()
        try:
            rules = library.select(name)
        except ValueError as error:
            raise ToolFailure(str(error)) from error
        if len(rules) > 1:
            raise ToolFailure(f"{name} names {len(rules)} rules, ask for one: {', '.join(rule.id for rule in rules)}")
        ledgers = [load_ledger(version) for version in reversed(measured_versions())]
        return rule_answer(rule_object(rules[0], ledgers), rules[0].examples)

    def _library(self) -> Library:
        try:
            return load_library(load_settings(Path(self.root.folder)).rule_folders)
        except (ConfigError, RuleError) as error:
            raise ToolFailure(str(error)) from error


def _lists(**options: list[str]) -> list[str]:
    """Return options that take lists, as arguments.  Each has its value in the same word: it may begin with -."""
    return [f"--{name}={value}" for name, values in options.items() for value in values]


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
