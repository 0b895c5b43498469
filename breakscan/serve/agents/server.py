"""The server of the Model Context Protocol: each tool runs the command of its name, and answers with its JSON."""

import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BeforeValidator, Field

from breakscan import __version__
from breakscan.model.findings import Kind, Mode, Place
from breakscan.report.printable import visible
from breakscan.rulebook.config import ConfigError, load_settings, resolve_target
from breakscan.rulebook.document import RuleError
from breakscan.rulebook.ledger import load_ledger
from breakscan.serve.agents.answers import answer
from breakscan.serve.agents.command import OWN, CommandResult, ToolFailure, run_command
from breakscan.source.files import SKIPPED_FOLDERS
from breakscan.source.paths import path_from, relative_to

_INSTRUCTIONS = (
    "Finds and fixes what breaks torch.compile. The loop: explain (runs a program: what broke, and what it cost), tune "
    "(tries the remedies on it, and gives the fastest equal program as a patch), rule for what is left, verify (proves "
    "a patch). What cannot be run: check (static), fix (a diff). Then run the project's tests. Where an answer has "
    "more, ask again with offset, and with last instead of a program. Paths are relative to the root."
)
STATIC_SECONDS = 600.0  # the time limit of the tools that run no program
TUNED = 0.8  # the part of the time limit of ``tune`` that it is given: a proof that has begun is ended
_MOST_LINES = 15


def _listed(value: Any) -> Any:
    """Accept a single word for a list of one, as some clients send it."""
    return [value] if isinstance(value, str) else value


def _about(description: str, **limits: Any) -> Any:
    return Field(description=description, **limits)


_Text = Annotated[str, Field(min_length=1, max_length=4096)]
_Texts = Annotated[Sequence[_Text], BeforeValidator(_listed), Field(max_length=1000)]
Paths = Annotated[_Texts, _about("Files or folders below the root; the root without any.")]
Select = Annotated[_Texts, _about("Only these rules: ids, or starts of ids (BRK1).")]
Diff = Annotated[
    str,
    _about(
        "Only what is new since the branch left this commit of git, such as main.",
        pattern=r"^([^-\s\x00][^\s\x00]*)?$",
        max_length=200,
    ),
]
Limit = Annotated[int, _about("Entries in the answer.", ge=1, le=200)]
Offset = Annotated[int, _about("Entries to skip.", ge=0, le=10**9)]
Rewrites = Annotated[_Texts, _about("Only these rewrites, by id.")]
Unsafe = Annotated[bool, _about("With write: also write what changes more than speed; each says what.")]
Write = Annotated[bool, _about("Change the files.")]
Program = Annotated[
    str, _about("The Python file to run, below the root; with as_module, the name of a module.", max_length=4096)
]
Arguments = Annotated[_Texts, _about("Arguments of the program.")]
AsModule = Annotated[bool, _about("Run program as python -m does.")]
Compile = Annotated[
    _Texts, _about("Compile these first, if the program compiles nothing: MODULE:NAME, or :NAME of the program's own.")
]
Seconds = Annotated[
    float, _about("The time limit, 0 for that of the server. What was found until then is reported.", ge=0)
]
Last = Annotated[bool, _about("Run nothing: go on with the answer of the last run.")]
Patch = Annotated[str, _about("A unified diff to verify instead of the rewrites.", max_length=1_000_000)]
Goal = Annotated[
    Literal["step", "compile", "memory"],
    _about("What to make small: the time of a step, the time spent compiling, or memory."),
]
RuleName = Annotated[
    str,
    _about(
        "An id such as BRK101, or a name such as branch-on-tensor.", pattern=r"^[A-Za-z][A-Za-z0-9-]*$", max_length=100
    ),
]
_Context = Context[Any, Any]
ENTRIES = 20  # entries of an answer, where the call does not say how many


def serve(root: Path, seconds: float, with_runs: bool) -> None:
    """Serve until the client closes standard input.  ``with_runs`` offers the tools that run programs."""
    make_server(RootFolder(root), seconds, with_runs).run("stdio")


def make_server(root: "RootFolder", seconds: float, with_runs: bool) -> MCPServer[Any]:
    tools = Tools(root, seconds)
    listed = [
        _tool(tools.check),
        _tool(tools.explain, runs_code=True),
        _tool(tools.fix, writes=True),
        _tool(tools.verify, runs_code=True, writes=True),
        _tool(tools.tune, runs_code=True, writes=True),
        _tool(tools.rule),
    ]
    offered = [tool for tool in listed if with_runs or not (tool.annotations and tool.annotations.open_world_hint)]
    return MCPServer("breakscan", version=__version__, instructions=_INSTRUCTIONS, tools=offered, log_level="WARNING")


def _tool(call: Callable[..., Any], *, runs_code: bool = False, writes: bool = False) -> Tool:
    """A tool.  Another argument is an error: a misspelt ``path`` would check everything."""
    tool = Tool.from_function(
        call,
        description=" ".join((call.__doc__ or "").split()),
        annotations=ToolAnnotations(
            read_only_hint=not (runs_code or writes),
            destructive_hint=runs_code or writes,
            idempotent_hint=not runs_code,
            open_world_hint=runs_code,
        ),
    )
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool


class Tools:
    """The tools of one server.  Programs run one at a time; ``seconds`` is their time limit."""

    def __init__(self, root: "RootFolder", seconds: float) -> None:
        self._root = root
        self._seconds = seconds
        self._running = anyio.Lock()
        self._last: dict[str, CommandResult] = {}

    async def check(
        self, paths: Paths = (), select: Select = (), diff: Diff = "", limit: Limit = ENTRIES, offset: Offset = 0
    ) -> CallToolResult:
        """Show where torch.compile will break the graph, recompile or fall back to eager in Python files and notebooks.
        Static: imports and runs nothing."""
        words = [*_lists(select=select), *(["--diff", diff] if diff else []), *self._files(paths)]
        result = await run_command("check", words, self._root.folder, STATIC_SECONDS)
        return _answered("check", result, offset, limit)

    async def fix(
        self,
        paths: Paths = (),
        select: Select = (),
        rewrites: Rewrites = (),
        unsafe: Unsafe = False,
        write: Write = False,
        limit: Limit = ENTRIES,
        offset: Offset = 0,
    ) -> CallToolResult:
        """Rewrite what breaks. Returns a diff and changes nothing, unless write is true: then those that make no
        difference to an eager program, and all if unsafe is true. Static: imports and runs nothing."""
        flags = [*(["--unsafe"] if unsafe else []), *(["--write"] if write else [])]
        words = [*_lists(select=select, rewrite=rewrites), *flags, *self._files(paths)]
        result = await run_command("fix", words, self._root.folder, STATIC_SECONDS)
        return _answered("fix", result, offset, limit)

    async def explain(
        self,
        context: _Context,
        program: Program = "",
        arguments: Arguments = (),
        as_module: AsModule = False,
        compile: Compile = (),
        seconds: Seconds = 0.0,
        last: Last = False,
        limit: Limit = ENTRIES,
        offset: Offset = 0,
    ) -> CallToolResult:
        """RUNS CODE: run a Python program and show where torch.compile did break, recompile or fall back to eager, why,
        and what it cost. The program runs as the user, with a time limit."""
        run = self._program(program, arguments, as_module, compile, last)
        result = await self._run("explain", run, seconds, context)
        status, took = (result.report["script"][key] for key in ("exit_status", "seconds"))
        how = f"exit status {status}" if status >= 0 else f"killed by signal {-status}"
        ended = _cut(result) or f"{how} after {took:.1f} s"
        output = _last_lines(result.output) if status and result.limit is None else ""
        return _answered("explain", result, offset, limit, ended=ended, output=output)

    async def verify(
        self,
        context: _Context,
        program: Program = "",
        arguments: Arguments = (),
        as_module: AsModule = False,
        compile: Compile = (),
        select: Select = (),
        rewrites: Rewrites = (),
        patch: Patch = "",
        write: Write = False,
        seconds: Seconds = 0.0,
        last: Last = False,
        limit: Limit = ENTRIES,
        offset: Offset = 0,
    ) -> CallToolResult:
        """RUNS CODE: run a Python program several times, as it is and with the rewrites of fix, or with a patch, and
        report if results are equal, breaks are gone and steps are faster. Changes no file, unless write is true."""
        if patch and (select or rewrites):
            raise ToolFailure("a patch is verified instead of rewrites: leave out select and rewrites")
        words = [*_lists(rewrite=[*rewrites, *select]), *(["--apply"] if write else [])]
        run = self._program(program, arguments, as_module, compile, last)
        with tempfile.TemporaryDirectory(prefix="breakscan-mcp-") as folder:
            if patch:
                file = Path(folder, "change.diff")
                file.write_text(patch, encoding="utf-8", errors="surrogatepass")
                words += ["--patch", str(file)]
            result = await self._run("verify", run and [*words, *run], seconds, context)
        return _answered("verify", result, offset, limit, ended=_cut(result))

    async def tune(
        self,
        context: _Context,
        program: Program = "",
        arguments: Arguments = (),
        as_module: AsModule = False,
        compile: Compile = (),
        goal: Goal = "step",
        write: Write = False,
        seconds: Seconds = 0.0,
        last: Last = False,
        limit: Limit = ENTRIES,
        offset: Offset = 0,
    ) -> CallToolResult:
        """RUNS CODE: run a Python program many times, with edits, settings and other ways of compiling, and return the
        fastest equal one as a patch. Changes no file, unless write is true."""
        words = [f"--time={TUNED * self._limit(seconds):g}", f"--goal={goal}", *(["--apply"] if write else [])]
        run = self._program(program, arguments, as_module, compile, last)
        result = await self._run("tune", run and [*words, *run], seconds, context)
        return _answered("tune", result, offset, limit, ended=_cut(result))

    def rule(self, rule: RuleName) -> CallToolResult:
        """Explain a rule: why the compiler cannot do it, what to write instead, with examples, and what the project's
        torch does with them."""
        try:
            settings = load_settings(Path(self._root.folder))
            rules = settings.library.select(rule)
            target = resolve_target(settings)
        except (ConfigError, RuleError, ValueError) as error:
            raise ToolFailure(str(error)) from error
        if len(rules) > 1:
            raise ToolFailure(f"{rule} names {len(rules)} rules, ask for one: {', '.join(one.id for one in rules)}")
        (found,) = rules
        mode = Mode.EXPORT if found.kind is Kind.EXPORT else Mode.DEFAULT
        ledger = load_ledger(target.ledger)
        rulings = ((place.value, ledger.ruling(found.id, mode, place)) for place in Place)
        return _structured(
            {
                **{key: getattr(found, key) for key in ("id", "name", "summary", "why", "instead")},
                "document": found.body,
                "rewrites": list(found.rewrites),
                "verdicts": {place: ruling.verdict.value for place, ruling in rulings if ruling is not None},
                "torch": target.torch,
            }
        )

    async def _run(self, command: str, words: list[str], seconds: float, context: _Context) -> CommandResult:
        """Run a command on a program; without ``words``, return the result of its last run."""
        if not words:
            if command not in self._last:
                raise ToolFailure(f"{command} has run nothing yet: name a program")
            return self._last[command]

        async def progress(done: float, message: str) -> None:
            await context.report_progress(done, None, message or None)

        if self._running.statistics().locked:
            await progress(0.0, "waiting for another run to end")
        async with self._running:
            result = await run_command(command, words, self._root.folder, self._limit(seconds), progress)
        self._last[command] = result
        return result

    def _limit(self, seconds: float) -> float:
        return min(seconds or self._seconds, self._seconds)

    def _program(
        self, program: str, arguments: Sequence[str], as_module: bool, compile: Sequence[str], last: bool
    ) -> list[str]:
        """The program with its arguments, as words of a command; none to go on with the last run."""
        if last == bool(program):
            raise ToolFailure("name a program, or go on with the last run (last)")
        if any("\0" in word for word in (program, *arguments)):
            raise ToolFailure("an argument of a program has no NUL character")
        options = [word for one in compile for word in ("--compile", one)]
        if as_module:
            if not all(part.isidentifier() for part in program.split(".")):
                raise ToolFailure("with as_module, program is the name of a module, such as package.train")
            return [*options, "-m", program, *arguments]
        # A path that begins with - would be read as an option.
        return [] if last else [*options, f"./{self._root.program(program)}", *arguments]

    def _files(self, paths: Sequence[str]) -> list[str]:
        """The paths as arguments, without what leads out of the root."""
        found = list(dict.fromkeys(self._root.existing(path) for path in paths or (".",)))
        excluded = [word for link in self._root.links_out(found) for word in ("--exclude", link)]
        return [*excluded, "--", *found]


def _answered(command: str, result: CommandResult, offset: int, limit: int, **more: Any) -> CallToolResult:
    return _structured(answer(command, result.report, offset, limit, **more))


def _structured(values: dict[str, Any]) -> CallToolResult:
    text = TextContent(type="text", text=json.dumps(values, ensure_ascii=False))
    return CallToolResult(content=[text], structured_content=values)


def _lists(**options: Sequence[str]) -> list[str]:
    """Return options that take lists, as arguments.  Each has its value in the same word: it may begin with -."""
    return [f"--{name}={value}" for name, values in options.items() for value in values]


def _cut(result: CommandResult) -> str | None:
    """Return the time limit that ended a run, in words."""
    if result.limit is None:
        return None
    return f"ended by the time limit of {result.limit:.0f} s: ask with more seconds if that is too early"


def _last_lines(output: str) -> str:
    """Return the last lines of a program, without those of breakscan."""
    lines = [visible(line) for line in output.splitlines() if not line.startswith(OWN)]
    return "\n".join(lines[-_MOST_LINES:])


_PLAIN = re.compile(r"[\w./\x20-]*\w")  # names without special characters of .gitignore patterns and lists with commas


class RootFolder:
    """A folder that no path of a call may leave, also by links."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.path.realpath(folder)

    def existing(self, path: str) -> str:
        """Return the path of a file or folder from the root, with links resolved.  Raises ToolFailure for all else."""
        if "\0" in path:
            raise ToolFailure("a path has no NUL character: name a file or folder below the root")
        try:
            real = os.path.realpath(os.path.join(self.folder, path))
            relative = "." if real == self.folder else relative_to(real, self.folder)
            if relative is None:
                raise ToolFailure(
                    f"{visible(path)} is outside the root, {self.folder}: name what is below it, or start the server "
                    "with another --root"
                )
            kind = os.stat(real).st_mode
        except OSError as error:
            raise ToolFailure(
                f"cannot read {visible(path)}: {error.strerror}; paths are relative to {self.folder}"
            ) from error
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise ToolFailure(f"{visible(path)} is neither a file nor a folder: name one that is")
        return relative

    def program(self, path: str) -> str:
        """Return the path of a file for Python to run; see :meth:`existing`."""
        relative = self.existing(path)
        if os.path.isdir(os.path.join(self.folder, relative)):
            raise ToolFailure(f"{visible(path)} is a folder: name a Python file, or a module with as_module")
        return relative

    def links_out(self, paths: Sequence[str]) -> list[str]:
        """Return patterns that exclude links below some paths out of the root.  Raises ToolFailure where none can."""
        found = [link for path in paths for link in self._links(os.path.join(self.folder, path))]
        for link in found:
            if not _PLAIN.fullmatch(link):
                raise ToolFailure(f"{visible(link)} leads out of the root: name paths that do not have it")
        return [f"/{link}" for link in dict.fromkeys(found)]

    def _links(self, top: str) -> Iterator[str]:
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            for name in files:
                path = os.path.join(folder, name)
                if os.path.islink(path) and relative_to(os.path.realpath(path), self.folder) is None:
                    yield path_from(self.folder, path)
