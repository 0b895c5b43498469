"""The run and the texts that changes are made from, and the changes of what is compiled."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import libcst as cst

from breakscan.explanation.compilations import CompileTarget
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import copied
from breakscan.fix.support.context import Edit, Replacement
from breakscan.fix.support.walking import findall, nodes_named, walk
from breakscan.model.findings import ChangeKind, Origin, Verdict
from breakscan.model.problem import Caller, Problem, ProblemKind
from breakscan.model.remedy import COMPILE, RemedyKind
from breakscan.prove.compile_calls import (
    CallKey,
    CompileCall,
    Form,
    TextEdit,
    UserFile,
    in_place_of,
    is_simple,
    without_compile,
    writer,
)
from breakscan.prove.protocol import BlockList, CallableBlocks, RunReport
from breakscan.prove.tuning import Goal, ProgramChange, Texts

_ASKED = {ChangeKind.BRANCH_ON_SIZE, ChangeKind.LENGTH, ChangeKind.FLAG, ChangeKind.KEYS}
CallEdit = Callable[[UserFile, CompileCall], Edit | None]
_DISABLES = {"torch.compiler.disable", "torch._dynamo.disable"}
NOT_COMPILED = "without torch.compile"
"""The name of the change that compiles nothing."""


@dataclass(frozen=True, slots=True)
class RanCall:
    """A call of ``torch.compile`` in the program's text that ran, and what it was given."""

    path: str
    call: CompileCall
    key: CallKey
    target: CompileTarget
    is_method: bool
    """True if a method of a module was compiled."""


@dataclass(frozen=True)
class TunedProgram:
    """A run, the texts of its files, how they compile, and the ``report`` on the program as it is."""

    explanation: Explanation
    texts: Texts
    report: RunReport
    goal: Goal
    _files: dict[str, UserFile | None] = field(default_factory=dict)

    def file(self, path: str) -> UserFile | None:
        """A file of the program by a path that reports show; None where it cannot be parsed, or is another's."""
        path = os.path.abspath(path)
        if path not in self._files:
            try:
                self._files[path] = UserFile(self.texts[path]) if path in self.texts else None
            except ValueError:
                self._files[path] = None
        return self._files[path]

    @cached_property
    def calls(self) -> tuple[RanCall, ...]:
        """The calls of torch.compile in the order in which they ran first, each once."""
        found: dict[tuple[str, CallKey], RanCall] = {}
        for target in self.explanation.targets:
            file = self.file(target.caller.path) if target.caller is not None else None
            if file is not None and target.caller is not None and (there := self._calls_at(target.caller)):
                path = os.path.abspath(target.caller.path)
                # Several on one line run one after another.
                call = min(there, key=lambda one: (one[0], (path, file.key_of(one[1])) in found))[1]
                key = file.key_of(call)
                last = call.target.rpartition(".")[2]
                is_method = isinstance(call.subject, cst.Attribute) and target.name.endswith(f".{last}")
                found.setdefault((path, key), RanCall(path, call, key, target, is_method))
        return tuple(found.values())

    def _calls_at(self, line: Caller) -> list[tuple[int, CompileCall]]:
        """The calls that a line is a part of, with the lines from it to their ends."""
        file = self.file(line.path)
        spans = [(file.span(call.node), call) for call in file.calls] if file is not None else []
        return [(end - line.line, call) for (start, _, end, _), call in spans if start <= line.line <= end]

    @property
    def elsewhere(self) -> list[str]:
        """The lines that compile something by a call that cannot be changed."""
        callers = (one.caller for one in self.explanation.targets)
        return [f"{one.path}:{one.line}" for one in callers if one is not None and not self._calls_at(one)]

    def calls_for(self, problem: Problem) -> tuple[RanCall, ...]:
        """The calls that compiled the function of a problem, or one that leads to it; all where that is not known."""
        lines = (*problem.stack, *problem.called_from)
        names = {*problem.functions, *(line.function for line in lines if line.function)}
        own = [one for one in self.calls if any(f"{name}.".startswith(f"{one.target.name}.") for name in names)]
        return tuple(own) or self.calls

    def is_compiled(self, function: str | None) -> bool:
        """True for a function that the program compiles, also as the ``forward`` of a module."""
        names = {one.target.name for one in self.calls}
        return function is not None and (function in names or function.removesuffix(".forward") in names)

    def traced(self, problem: Problem) -> list[Caller]:
        """The user's lines that lead from the function that is compiled to a problem, without that function's own; all
        in functions where what is compiled is a library's."""
        stack = [line for line in problem.stack if line.origin is Origin.USER]
        last = max((number for number, line in enumerate(stack) if self.is_compiled(line.function)), default=None)
        return stack[last + 1 :] if last is not None else [line for line in stack if line.function]

    @property
    def settings_file(self) -> str | None:
        """The file for settings of the compiler: the one that first compiles something, else the script."""
        return self.calls[0].path if self.calls else next(iter(self.texts), None)

    def everywhere(self, edit: CallEdit, calls: Iterable[RanCall] = ()) -> Callable[[Texts], Texts | None]:
        """The function that makes an edit at each of the calls, by default at all."""
        return writer(*((one.path, at_call(one.key, edit)) for one in (*calls,) or self.calls))


def at_call(key: CallKey, edit: CallEdit) -> TextEdit:
    def found(file: UserFile) -> Edit | None:
        call = file.find(key)
        return edit(file, call) if call is not None else None

    return found


def of_loops(program: TunedProgram) -> Iterator[ProgramChange]:
    """The step in place of the loop: of a compiled function that runs eager, the functions that it calls and that are
    compiled by themselves anyway."""
    eager = {frame.function for frame in program.explanation.frames if frame.status is FrameStatus.EAGER}
    alone = {graph.function for graph in program.explanation.graphs}
    for ran in program.calls:
        name = ran.target.name
        if name not in eager or (file := program.file(ran.path)) is None:
            continue
        forward = f"{name.rpartition('.')[0]}.forward"
        function = file.functions.get(name)
        for other in alone if function is not None else ():
            last = "self" if other == forward else (other or "").rpartition(".")[2]
            its_call = m.Call(func=m.Name(last) | m.Attribute(attr=m.Name(last)))
            if other is None or function is None or not findall(function.body, its_call):
                continue
            if ran.call.form is Form.DECORATOR:
                yield _moved(program, ran, ran.path, other)
            elif ran.is_method and other == forward:
                write = program.everywhere(_compiled_owner, [ran])
                yield ProgramChange(RemedyKind.REGION, f"compile the module of {name} in its place", write)


def _compiled_owner(file: UserFile, call: CompileCall) -> Edit | None:
    """``model.compile()``, and ``model.generate`` as it is."""
    if not isinstance(call.subject, cst.Attribute) or not is_simple(call.subject):
        return None
    owner = file.code(call.subject.value)
    return in_place_of(file, call, lambda _, arguments: f"{owner}.compile({arguments})")


def _moved(program: TunedProgram, ran: RanCall, path: str, name: str, what: str = "in place of {}") -> ProgramChange:
    """Another function, compiled by a decorator."""
    file = program.file(ran.path)
    arguments = ran.call.arguments(file) if file is not None else ""
    decorator = f"{COMPILE}({arguments})" if arguments else COMPILE
    edit = partial(_decorated_edit, name=name, decorator=decorator)
    return _without(ran, f"compile {name} {what.format(ran.call.target)}", (path, edit))


def of_decorators(program: TunedProgram) -> Iterator[ProgramChange]:
    """The function below decorators, compiled in place of what they return."""
    for ran in program.calls if program.explanation.problems else ():
        is_decorator = ran.call.form is Form.DECORATOR
        name = ran.call.target if is_decorator else f"{ran.target.name}.forward"
        for path in (ran.path,) if is_decorator else program.texts:
            file = program.file(path)
            function = file.functions.get(name) if file is not None else None
            if file and function and function.decorators and function.decorators[-1] is not ran.call.node:
                yield _moved(program, ran, path, name, "below its decorators")


def _without(ran: RanCall, what: str, edit: tuple[str, TextEdit]) -> ProgramChange:
    """Something else that is compiled, in place of a call."""
    return ProgramChange(RemedyKind.REGION, what, writer((ran.path, at_call(ran.key, without_compile)), edit))


def of_steps(program: TunedProgram) -> Iterator[ProgramChange]:
    """The modules that a step with breaks of its own calls, compiled in its place."""
    own = {line.function for one in program.explanation.breaks for line in one.stack[-1:]}
    for ran in program.calls:
        file, name = program.file(ran.path), ran.target.name
        if file is not None and name in own and name in file.functions and not name.endswith("forward"):
            yield _without(ran, f"compile the modules, and not {name}", _modules_compiled(ran, file.functions))


def _modules_compiled(ran: RanCall, methods: Container[str]) -> tuple[str, TextEdit]:
    """``model.compile()`` below each statement that names a new object whose ``forward`` is one of the methods."""

    def edit(file: UserFile) -> Edit | None:
        replaced: dict[cst.CSTNode, Replacement] = {}
        for node in walk(file.module):
            if isinstance(node, cst.Assign) and isinstance(name := node.targets[0].target, cst.Name):
                made = (file.code(one).partition("(")[0] for one in findall(node.value, m.Call()))
                if any(f"{one.rpartition('.')[2]}.forward" in methods for one in made):
                    line = cst.parse_module(f"{name.value}.compile({ran.call.arguments(file)})\n").body
                    replaced |= file.split(node, [], node, line) or {}
        return Edit(replaced) if replaced else None

    return ran.path, edit


def of_plain_calls(program: TunedProgram) -> Iterator[ProgramChange]:
    """The inner module that is also called plainly, compiled in place; the method that is called besides."""
    for problem in program.explanation.problems:
        if problem.kind is not ProblemKind.PLAIN_CALLS or not problem.functions:
            continue
        owner, _, name = problem.functions[0].rpartition(".")
        kinds = {remedy.name for remedy in problem.remedies}
        for ran in program.calls:
            if "compile-in-place" in kinds and ran.target.name != owner:
                modules = _modules_compiled(ran, {f"{owner}.forward"})
                yield _without(ran, f"compile {owner} in place, and not {ran.target.name}", modules)
                yield ProgramChange(RemedyKind.REGION, f"compile {owner} in place", writer(modules))
            if "compile-method" in kinds and ran.target.name == owner:
                what = f"compile {owner}.{name}, too"
                write = program.everywhere(partial(_compiled_method, name=name), [ran])
                yield ProgramChange(RemedyKind.REGION, what, write)
                # Where the call is a part of an expression, it has no statement to follow.
                if (file := program.file(ran.path)) is not None:
                    decorator = f"{COMPILE}({ran.call.arguments(file)})"
                    for path in program.texts:
                        yield from _decorate(program, path, f"{owner}.{name}", decorator, what)


def _scope(file: UserFile, node: cst.CSTNode) -> cst.CSTNode:
    return next((one for one in file.around(node) if isinstance(one, cst.FunctionDef)), file.module)


def _compiled_method(file: UserFile, call: CompileCall, name: str) -> Edit | None:
    """``model.step = torch.compile(model.step)``, below the statement that compiles the model."""
    small = file.small_statement(call.node)
    if isinstance(small, cst.Assign) and small.value is call.node and is_simple(small.targets[0].target):
        owner = file.code(small.targets[0].target)
    elif call.form is Form.METHOD and is_simple(call.subject):
        owner = call.target
    else:
        return None
    given = ", ".join(filter(None, (f"{owner}.{name}", call.arguments(file))))
    new = cst.parse_module(f"{owner}.{name} = {file.named(COMPILE)}({given})\n").body
    replaced = file.split(small, [], small, new) if small is not None else None
    return Edit(replaced) if replaced is not None else None


def of_callers(program: TunedProgram) -> Iterator[ProgramChange]:
    """The caller in place of a function that is compiled anew for each of many objects."""
    for problem in program.explanation.problems:
        if any(change.objects > 1 for change in problem.changes):
            for ran in program.calls_for(problem):
                for caller in problem.called_from:
                    if ran.call.form is Form.DECORATOR and os.path.abspath(caller.path) == ran.path:
                        yield _moved(program, ran, ran.path, caller.function or "")


def of_disabled(program: TunedProgram) -> Iterator[ProgramChange]:
    """``torch.compiler.disable`` at the user's function that breaks and that a compiled one calls, and at one through
    which the program gets to several breaks: the call is then the only break.  Also at one that asks for what has its
    callers compiled anew, such as a size or the length of a dictionary."""
    through: Counter[tuple[str, str]] = Counter()
    for problem in program.explanation.problems:
        for change in problem.changes:
            if change.kind in _ASKED and (line := change.asked_at) and not program.is_compiled(line.function):
                yield from _decorate(program, line.path, line.function or "")
        if problem.kind is ProblemKind.BREAK and problem.verdict is not Verdict.RAISES:
            functions = [(os.path.abspath(line.path), line.function or "") for line in program.traced(problem)]
            if functions:
                through.update(set(functions[:-1]))
                yield from _decorate(program, *functions[-1])
    for (path, name), breaks in through.items():
        if breaks > 1:
            yield from _decorate(program, path, name)


def of_enabled(program: TunedProgram) -> Iterator[ProgramChange]:
    """The functions that compiled code calls and that are disabled, compiled: torch may have learned what they need."""
    for site in program.explanation.breaks:
        at = site.disabled
        if at is None or site.keeps or (file := program.file(at.path)) is None:
            continue
        for name, function in file.functions.items():
            first, _, last, _ = file.span(function)
            if function.name.value == at.function and first <= at.line <= last:
                write = writer((os.path.abspath(at.path), partial(_enabled, name=name)))
                what = f"without torch.compiler.disable at {name}"
                yield ProgramChange(RemedyKind.REGION, what, write, (f"{name} need not run eager",))


def _enabled(file: UserFile, name: str) -> Edit | None:
    """The function without its decorator; what ``disable(function)`` is written for without that call."""
    found: dict[cst.CSTNode, cst.CSTNode | None] = {}
    for node in walk(file.module):
        made = node.decorator if isinstance(node, cst.Decorator) else node
        disables = file.dotted(made.func if isinstance(made, cst.Call) else made) in _DISABLES
        if disables and isinstance(node, cst.Decorator):
            above = file.parents[node]
            if isinstance(above, cst.FunctionDef) and file.qualified_name(above) == name:
                found[node] = None
        elif disables and isinstance(node, cst.Call) and node.args:
            given = node.args[0].value
            if file.code(given).rpartition(".")[2] == name.rpartition(".")[2]:
                found[node] = copied(given)
    return Edit(found) if found else None


def _decorate(
    program: TunedProgram, path: str, name: str, decorator: str = "torch.compiler.disable", what: str = ""
) -> Iterator[ProgramChange]:
    file = program.file(path)
    if file is not None and name in file.functions:
        write = writer((os.path.abspath(path), partial(_decorated_edit, name=name, decorator=decorator)))
        yield ProgramChange(RemedyKind.REGION, what or f"{decorator} at {name}", write)


def _decorated_edit(file: UserFile, name: str, decorator: str) -> Edit | None:
    function = file.functions.get(name)
    if function is None or any("compile" in file.code(one.decorator) for one in function.decorators):
        return None
    added = cst.Decorator(cst.parse_expression(file.named(decorator)))
    return Edit({function: function.with_changes(decorators=[*function.decorators, added])})


def of_blocks(program: TunedProgram) -> Iterator[ProgramChange]:
    """Repeated blocks, compiled one by one, and with them the parts that hold none; where the code around them breaks,
    the inner modules."""
    pairs = _with_blocks(program)
    alone = [(ran, replace(its, rest=())) for ran, its in pairs if its.lists]
    parts = [(ran, its) for ran, its in pairs if its.rest and (alone or program.explanation.breaks)]
    for name, chosen in (("repeated blocks", alone), ("blocks + rest" if alone else "inner modules", parts)):
        edits = [(ran.path, at_call(ran.key, partial(_blocks_alone, its=its, ran=ran))) for ran, its in chosen]
        if edits:
            yield ProgramChange(RemedyKind.REGION, name, writer(*edits))


def _with_blocks(program: TunedProgram) -> list[tuple[RanCall, CallableBlocks]]:
    """The calls whose modules have repeated blocks, or modules in them."""
    blocks = program.report.blocks
    if len(blocks) == len(program.calls):
        pairs = zip(program.calls, blocks, strict=True)
        return [(ran, its) for ran, its in pairs if (its.lists or its.rest) and ran.call.subject]
    modules = [ran for ran in program.calls if ran.call.subject is not None]
    alike = {its.lists: its for its in blocks if its.lists}
    return [(modules[0], its) for its in alike.values()] if len(modules) == len(alike) == 1 else []


def _blocks_alone(file: UserFile, call: CompileCall, its: CallableBlocks, ran: RanCall) -> Edit | None:
    scope = _scope(file, call.node)
    if any(_scope(file, one) is scope for one in nodes_named(scope, "block")):
        return None

    def lines(owner: str, arguments: str) -> str:
        return "\n".join(lines_for(its, arguments, owner.rpartition(".")[0] if ran.is_method else owner))

    return in_place_of(file, call, lines)


def lines_for(its: CallableBlocks, arguments: str, model: str) -> Iterator[str]:
    """The lines that compile parts of one callable by themselves; ``model`` is the expression of its module."""
    for one in its.lists:
        yield f"for block in {_iterated(one, model)}:\n    {_compiled('block', one.of_torch, arguments)}"
    for part in its.rest:
        yield _compiled(_expression(part.path, model), part.of_torch, arguments)


def _compiled(module: str, of_torch: bool, arguments: str) -> str:
    """``block.compile()``, which on torch 2.13 and older does nothing for modules of torch."""
    if of_torch:
        return f"{module}.forward = torch.compile({module}.forward{f', {arguments}' if arguments else ''})"
    return f"{module}.compile({arguments})"


def _iterated(one: BlockList, model: str) -> str:
    owner = _expression(one.path, model)
    return owner if one.whole else f"({', '.join(_expression(name, owner) for name in one.names)})"


def _expression(path: str, owner: str) -> str:
    """``model.layers[0].mlp`` for ``layers.0.mlp``."""
    for name in path.split(".") if path else ():
        if name.isdigit():
            owner += f"[{name}]"
        elif name.isidentifier():
            owner += f".{name}"
        else:
            owner += f".get_submodule({name!r})"
    return owner


def of_eager(program: TunedProgram) -> Iterator[ProgramChange]:
    """Nothing compiled, and one of several not compiled."""
    if program.calls:
        yield ProgramChange(RemedyKind.REGION, NOT_COMPILED, program.everywhere(without_compile))
    if len(program.calls) > 1:
        for ran in program.calls:
            name = f"without torch.compile of {ran.call.target}"
            yield ProgramChange(RemedyKind.REGION, name, program.everywhere(without_compile, [ran]))
