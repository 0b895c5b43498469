"""The context of an explanation besides the records: sources, owners of files, rules."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePath
from typing import TypeVar

from breakscan.explanation.user_source import UserSource
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller
from breakscan.model.words import clipped
from breakscan.recording.parsers.frames import (
    BACKWARD,
    BreakCause,
    is_compiler_entry,
    is_module_wrapper,
    is_resumed,
    is_step_of_optimizer,
    user_name,
)
from breakscan.recording.records import BreakSeen, Code, CompileCalled, CompileStarted, FrameEnded, Record, StackFrame
from breakscan.rulebook.document import Rule
from breakscan.rulebook.matching import explaining_rule

T = TypeVar("T", bound=Record)
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Owners:
    """Determines the owner of a file from the folders of the Python that ran the program."""

    torch: str
    standard: str

    # A run has few files, and asks for them at each line of each stack.
    @lru_cache(maxsize=4096)  # noqa: B019
    def of(self, path: str) -> Origin:
        """Framework is torch itself, library what is installed, user the rest."""
        if self.torch and PurePath(path).is_relative_to(self.torch):
            return Origin.FRAMEWORK
        if self.is_standard(path) or any(folder in PurePath(path).parts for folder in _PACKAGE_FOLDERS):
            return Origin.LIBRARY
        return Origin.USER

    def is_programs(self, path: str) -> bool:
        """Return whether the file is neither torch's nor of Python's standard library: the user's, or a library's."""
        return self.of(path) is not Origin.FRAMEWORK and not self.is_standard(path)

    @lru_cache(maxsize=4096)  # noqa: B019
    def is_standard(self, path: str) -> bool:
        if path.startswith("<frozen "):
            return True
        below = bool(self.standard) and PurePath(path).is_relative_to(self.standard)
        return below and not any(folder in PurePath(path).parts for folder in _PACKAGE_FOLDERS)


_INSTALLED = re.compile(r"(?:site|dist)-packages/([^/]+?)(?:\.py)?(?:/|$)")


def package_of(path: str) -> str | None:
    """The package that an installed file belongs to; None for a file that is not installed."""
    package = _INSTALLED.search(path)
    return package[1] if package else None


SIZES, FRAMEWORK = 3, 9  # the families of rules about sizes that depend on data, and about code that torch owns
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_REPR = re.compile(r"<(?:function|bound method|built-in function|built-in method|class) ((?:[^ <>]|<\w+>)+)[^>]*>")
_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)\.\s+(?=[A-Z`])")
_LONGEST_REASON = 240


@dataclass(frozen=True)
class ExplainContext:
    """The records of a recording, by process and with unique compile ids, and the rules, sources and owners of
    files."""

    processes: Sequence[Sequence[Record]]
    rules: Sequence[Rule]
    sources: UserSource
    owners: Owners

    def of(self, kind: type[T]) -> list[T]:
        """The records of a kind, of all processes in their order."""
        return [record for records in self.processes for record in records if isinstance(record, kind)]

    def last(self, kind: type[T], *about: str) -> Iterator[tuple[int, T]]:
        """The records of a kind, each with the number of its process: of those about the same, the last one."""
        for process, records in enumerate(self.processes):
            kept = {tuple(getattr(one, name) for name in about): one for one in records if isinstance(one, kind)}
            yield from ((process, one) for one in kept.values())

    @cached_property
    def started(self) -> Mapping[str, CompileStarted]:
        return {record.compile_id: record for record in self.of(CompileStarted)}

    @cached_property
    def asked(self) -> Sequence[CompileCalled]:
        """The calls of torch.compile by the program: torch makes further ones itself, for the wrapper around a module.
        The file alone does not show it: the hook's frames carry its name as well."""
        return [call for call in self.of(CompileCalled) if not is_torchs_own(call)]

    @cached_property
    def modules(self) -> Mapping[str, StackFrame | None]:
        """The names of torch's own modules, such as ``Sequential``, that were to be compiled, each with the line of the
        program that asked for it: Dynamo compiles a wrapper in its place."""
        asked: dict[str, StackFrame | None] = {}
        for call in self.asked:
            if call.code and self.origin(call.code.path) is Origin.FRAMEWORK:
                lines = (frame for frame in reversed(call.stack) if self.owners.is_programs(frame.path))
                asked.setdefault(call.target, next(lines, None))
        return asked

    @cached_property
    def wrapped(self) -> Mapping[Code, str]:
        """The functions that torch.compile was given inside a library's decorator, by the code of its wrapper.  The
        wrappers of one decorator share their code.  Only where all of a call became graphs is it known to have run for
        the function that was given alone; the rest of a call after a break can be the wrapper of another."""
        given: dict[Code, set[str]] = {}
        for call in self.of(CompileCalled):
            is_wrapper = call.code and call.code.name not in ("forward", call.target.rpartition(".")[2])
            if call.code and is_wrapper and self.origin(call.code.path) is Origin.LIBRARY:
                given.setdefault(call.code, set()).add(call.target)
        broken = {(frame.path, frame.name) for seen in self.of(BreakSeen) for frame in seen.stack}
        not_compiled = {record.frame for record in self.of(FrameEnded)}
        return {
            code: min(names)
            for code, names in given.items()
            if len(names) == 1 and (code.path, code.name) not in broken and code not in not_compiled
        }

    def origin(self, path: str) -> Origin:
        return self.owners.of(path)

    def function(self, path: str, line: int, name: str) -> str | None:
        """The qualified name of the function at a line, from its source, else from its code object."""
        plain = user_name(name)
        if is_module_wrapper(path) and self.modules:
            return next(iter(self.modules)) if len(self.modules) == 1 else "a module of torch.nn"
        if is_step_of_optimizer(path, plain):
            return "Optimizer.step"
        if name == BACKWARD:
            around = self.sources.function(path, line)
            return f"{around} (backward)" if around else "backward"
        return self.sources.function(path, line) or (None if plain == "<module>" else plain)

    def function_of(self, code: Code) -> str:
        """The name as of :meth:`function`; a lambda or a generator expression is named after the function around it."""
        if code in self.wrapped:
            return self.wrapped[code]
        plain = user_name(code.name)
        around = self.function(code.path, code.line, code.name)
        if code.name == BACKWARD:
            return str(around)
        return f"{around}.{plain}" if around not in (None, plain) and plain.startswith("<") else around or plain

    def caller(self, frame: StackFrame) -> Caller:
        return Caller(
            path=self.sources.show(frame.path),
            line=frame.line,
            function=self.function(frame.path, frame.line, frame.name),
            origin=self.origin(frame.path),
        )

    def nearest(self, stack: Iterable[StackFrame]) -> Caller | None:
        return next(iter(self.callers(stack)[-1:]), None)

    def callers(self, frames: Iterable[StackFrame]) -> tuple[Caller, ...]:
        """The frames of a stack that are not torch's or the standard library's; all, where there is no other."""
        return tuple(map(self.caller, self.not_torchs(frames)))

    def way(self, above: Sequence[StackFrame], frame: Code, traced: Sequence[StackFrame]) -> tuple[Caller, ...]:
        """The callers of a line that Dynamo traced: ``above`` leads to the compiled ``frame``, ``traced`` on from it.
        The rest of a function is called from the line of the break, in the same function: that is no call."""
        return self.callers((*(above[:-1] if traced and is_resumed(frame.name) else above), *traced))

    def not_torchs(self, frames: Iterable[StackFrame]) -> list[StackFrame]:
        """The frames of :meth:`callers`, as they were recorded."""
        kept = list(frames)
        mine = [frame for frame in kept if self.owners.is_programs(frame.path)]
        return mine or kept

    def place_of(self, code: Code) -> tuple[str, int]:
        """The file and the line of a function.  Of a module of torch's it is the line that asked for it: Dynamo
        compiles a wrapper, whose file does not say which module it is."""
        if is_module_wrapper(code.path) and len(self.modules) == 1:
            (asked,) = self.modules.values()
            if asked is not None:
                return asked.path, asked.line
        return code.path, code.line

    def site_of(self, code: Code) -> Site:
        return self.sources.site(*self.place_of(code))

    def rule_for(
        self, cause: BreakCause, form: str | None, where: StackFrame, through: Iterable[StackFrame], origin: Origin
    ) -> Rule | None:
        """The rule that explains a break at ``where``, which Dynamo met ``through`` further frames.  Its ``text`` also
        meets their files, and the statement at the site.  Of torch's own code, only rules about that count."""
        rules = [rule for rule in self.rules if rule.family == FRAMEWORK] if origin is Origin.FRAMEWORK else self.rules
        files = dict.fromkeys(f"in {frame.path}" for frame in (where, *through))
        code = self.sources.code(where.path, where.line, where.column, where.end_column)
        text = "\n".join((cause.gb_type, cause.explanation, cause.context, *files, code))
        return explaining_rule(rules, gb=cause.gb_id, text=text, form=form)


def is_torchs_own(call: CompileCalled) -> bool:
    return any(is_compiler_entry(frame.path) and frame.name == "_initialize" for frame in call.stack)


def reason_of(cause: BreakCause) -> str:
    """Dynamo's explanation of a cause, else what it says for developers, in one line and without addresses."""
    text = cause.explanation or cause.context or cause.gb_type
    text = _ADDRESS.sub("", _REPR.sub(r"\1", text))
    return clipped(_SENTENCE_END.split(text)[0].strip().rstrip("."), _LONGEST_REASON)
