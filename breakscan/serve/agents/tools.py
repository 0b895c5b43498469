"""The tools: each runs the command of its name, and makes a short answer of the JSON that it writes."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from breakscan.recording.recording import Tally
from breakscan.report.answers.answer import (
    Answer,
    CheckAnswer,
    ExplainAnswer,
    FixAnswer,
    RuleAnswer,
    VerifyAnswer,
)
from breakscan.report.answers.commands import check_answer, fix_answer, rule_answer, verify_answer
from breakscan.report.answers.explain import explain_answer
from breakscan.report.answers.tool_words import WAITING, ended_words, last_lines, last_progress
from breakscan.report.explain.news import tally_words
from breakscan.report.rules import rule_object
from breakscan.rulebook.config import ConfigError, load_settings
from breakscan.rulebook.document import RuleError
from breakscan.rulebook.ledger import load_ledger, measured_versions
from breakscan.rulebook.library import Library, load_library
from breakscan.serve.agents.arguments import (
    CheckArguments,
    ExplainArguments,
    FixArguments,
    RootFolder,
    RuleArguments,
    RunArguments,
    ToolArguments,
    ToolFailure,
    VerifyArguments,
)
from breakscan.serve.agents.command import CommandResult, Progress, run_command

STATIC_SECONDS = 600.0
"""The time limit of the tools that run no program."""

Call = Callable[[Any, Progress], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A tool: what it takes, what it answers, and what a client should know before it is called.  ``runs_code`` says
    that it runs a program of the user; ``writes`` that it can change files."""

    name: str
    takes: type[ToolArguments]
    answers: type[Answer]
    runs_code: bool
    writes: bool
    call: Call


@dataclass(slots=True)
class _LastRun:
    report: Any
    asked: Mapping[str, Any]
    result: CommandResult


@dataclass(slots=True)
class Tools:
    """The tools of one server.  Programs run one at a time; ``seconds`` is their time limit."""

    root: RootFolder
    seconds: float
    _running: anyio.Lock = field(default_factory=anyio.Lock)
    _last: dict[str, _LastRun] = field(default_factory=dict)

    def kinds(self, with_runs: bool) -> list[ToolKind]:
        """All tools, or those that run no program."""
        found = [
            ToolKind("check", CheckArguments, CheckAnswer, False, False, self.check),
            ToolKind("explain", ExplainArguments, ExplainAnswer, True, False, self.explain),
            ToolKind("fix", FixArguments, FixAnswer, False, True, self.fix),
            ToolKind("verify", VerifyArguments, VerifyAnswer, True, True, self.verify),
            ToolKind("rule", RuleArguments, RuleAnswer, False, False, self.rule),
        ]
        return [kind for kind in found if with_runs or not kind.runs_code]

    async def check(self, asked: CheckArguments, _: Progress) -> CheckAnswer:
        words = _lists(select=asked.select)
        words += ["--diff", asked.diff] if asked.diff else []
        words += self._files(asked.paths)
        result = await run_command("check", words, self.root.folder, STATIC_SECONDS)
        library = await anyio.to_thread.run_sync(self._library)
        return check_answer(result.report, library, asked.given, asked.offset, asked.limit)

    async def fix(self, asked: FixArguments, _: Progress) -> FixAnswer:
        words = _lists(select=asked.select, rewrite=asked.rewrites)
        words += [f"--{name}" for name in ("unsafe", "write") if getattr(asked, name)]
        words += self._files(asked.paths)
        result = await run_command("fix", words, self.root.folder, STATIC_SECONDS)
        return fix_answer(result.report, asked.given, asked.offset, asked.limit)

    async def rule(self, asked: RuleArguments, _: Progress) -> RuleAnswer:
        return await anyio.to_thread.run_sync(self._rule, asked.rule)

    async def explain(self, asked: ExplainArguments, progress: Progress) -> ExplainAnswer:
        tally: list[Tally] = []

        def doing(recording: Path, _: str) -> str:
            if not tally:
                tally.append(Tally(recording))
            tally[0].read()
            return tally_words(tally[0])

        last = await self._run("explain", [], asked, progress, doing)
        script = last.report["script"]
        failed = script["exit_status"] not in (0, None) and last.result.limit is None
        return explain_answer(
            last.report,
            await anyio.to_thread.run_sync(self._library),
            last.asked,
            ended_words(script["exit_status"], script["seconds"], last.result.limit),
            last_lines(last.result.output) if failed else None,
            asked.offset,
            asked.limit,
        )

    async def verify(self, asked: VerifyArguments, progress: Progress) -> VerifyAnswer:
        if asked.patch is not None and (asked.select or asked.rewrites):
            raise ToolFailure("a patch is verified instead of rewrites: leave out select and rewrites")
        words = _lists(select=asked.select, rewrite=asked.rewrites)
        words += ["--apply"] if asked.write else []
        with tempfile.TemporaryDirectory(prefix="breakscan-mcp-") as folder:
            if asked.patch is not None:
                patch = Path(folder, "change.diff")
                patch.write_text(asked.patch, encoding="utf-8", errors="surrogatepass")
                words += ["--patch", str(patch)]
            last = await self._run("verify", words, asked, progress, lambda _, output: last_progress(output))
        limit = last.result.limit
        ended = ended_words(None, last.result.seconds, limit) if limit is not None else None
        return verify_answer(last.report, last.asked, ended, asked.offset, asked.limit)

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
        limit = min(asked.seconds or self.seconds, self.seconds)
        if self._running.statistics().locked:
            await progress(0.0, WAITING)
        async with self._running:
            result = await run_command(
                command, words, self.root.folder, limit, progress, doing, saves=command == "explain"
            )
        self._last[command] = _LastRun(result.report, asked.given, result)
        return self._last[command]

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
        """The paths as arguments, without what leads out of the root."""
        found = list(dict.fromkeys(self.root.existing(path) for path in paths))
        excluded = [word for link in self.root.links_out(found) for word in ("--exclude", link)]
        return [*excluded, "--", *(found or ["."])]

    def _rule(self, name: str) -> RuleAnswer:
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
    """Options that take lists, as arguments.  Each has its value in the same word: it may begin with -."""
    return [f"--{name}={value}" for name, values in options.items() for value in values]
