"""The changes of a program's text that ``tune`` tries, besides the edits of ``fix``: what is compiled, and how."""

import ast
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import libcst as cst

from breakscan.explanation.compilations import CompileTarget
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.explanation.user_source import with_select
from breakscan.fix.result import in_one_line
from breakscan.fix.rewrites.where import A_NEW_TENSOR, BOTH_COMPUTED
from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import copied, operand_of_and
from breakscan.fix.support.context import Edit, Replacement
from breakscan.fix.support.walking import findall, fresh_name, nodes_named, read, walk, written
from breakscan.model.findings import ChangeKind, Holder, Origin, Verdict
from breakscan.model.problem import Caller, Problem, ProblemKind
from breakscan.model.remedy import COMPILE, DYNAMO, NewLine, RemedyKind, Setting
from breakscan.model.words import grouped, short_path
from breakscan.prove.compile_calls import CallKey, CompileCall, Form, TextEdit, UserFile, is_simple, with_option, writer
from breakscan.prove.proof import Goal, ProgramChange, Texts
from breakscan.prove.protocol import ModulePart, RunReport
from breakscan.prove.rewrites import FROZEN

_CAPTURES = {"BRK2": "capture_scalar_outputs", "BRK3": "capture_dynamic_output_shape_ops"}
"""By families of rules: tried also where Python seems to need the value."""
_ASKED = {ChangeKind.BRANCH_ON_SIZE, ChangeKind.LENGTH, ChangeKind.FLAG, ChangeKind.KEYS}
CallEdit = Callable[[UserFile, CompileCall], Edit | None]
_DISABLES = {"torch.compiler.disable", "torch._dynamo.disable"}
_CLOCK = "BRK404"
_CLOCKS = {"time", "timeit", "datetime"}
"""The rule of breaks at clocks, and the modules that have these."""
_UNTRACED = {"BRK407", "BRK410", "BRK420", "BRK507", "BRK612"}
"""The rules of breaks at calls that ask the system, a file or a context."""
_CONSTANT = "torch.compiler.assume_constant_result"
_WRITES = m.MatchRegex(r"write\w*|dump|save|append|add|update|set|reset|put|send|mkdir|unlink")
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
        """The user's lines from the compiled function to a problem, without its own; all if it is a library's."""
        stack = [line for line in problem.stack if line.origin is Origin.USER]
        last = max((number for number, line in enumerate(stack) if self.is_compiled(line.function)), default=None)
        return stack[last + 1 :] if last is not None else [line for line in stack if line.function]

    def everywhere(self, edit: CallEdit, calls: Iterable[RanCall] = ()) -> Callable[[Texts], Texts | None]:
        """The function that makes an edit at each of the calls, by default at all."""
        return writer(*((one.path, at_call(one.key, edit)) for one in (*calls,) or self.calls))


def at_call(key: CallKey, edit: CallEdit) -> TextEdit:
    return lambda file: edit(file, call) if (call := file.find(key)) is not None else None


def _of_loops(program: TunedProgram) -> Iterator[ProgramChange]:
    """The step in place of the loop: what a compiled function that runs eager calls, and torch compiles anyway."""
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
    return file.in_place_of(call, lambda _, arguments: f"{owner}.compile({arguments})")


def _moved(program: TunedProgram, ran: RanCall, path: str, name: str, what: str = "in place of {}") -> ProgramChange:
    """Another function, compiled by a decorator."""
    edit = _decorator_edit(program, ran, name)
    return _without(ran, f"compile {name} {what.format(ran.call.target)}", (path, edit))


def _decorator_edit(program: TunedProgram, ran: RanCall, name: str) -> TextEdit:
    """A function compiled by a decorator, as by a call."""
    file = program.file(ran.path)
    arguments = ran.call.arguments(file) if file is not None else ""
    return partial(_decorated_edit, name=name, decorator=f"{COMPILE}({arguments})" if arguments else COMPILE)


def _of_decorators(program: TunedProgram) -> Iterator[ProgramChange]:
    """The function below decorators, compiled in place of what they return."""
    for ran in program.calls if program.explanation.problems else ():
        is_decorator = ran.call.form is Form.DECORATOR
        name = ran.call.target if is_decorator else f"{ran.target.name}.forward"
        for path in (ran.path,) if is_decorator else program.texts:
            file = program.file(path)
            function = file.functions.get(name) if file is not None else None
            # What the call is given need not be known in another file.
            is_known = path == ran.path or {*read(ran.call.options.values())} <= {"True", "False", "None"}
            if file and function and is_known and function.decorators and function.decorators[-1] is not ran.call.node:
                yield _moved(program, ran, path, name, "below its decorators")


def _without(ran: RanCall, what: str, edit: tuple[str, TextEdit]) -> ProgramChange:
    """Something else that is compiled, in place of a call."""
    return ProgramChange(RemedyKind.REGION, what, writer((ran.path, at_call(ran.key, UserFile.without)), edit))


def _of_steps(program: TunedProgram) -> Iterator[ProgramChange]:
    """The modules that a step with breaks calls, compiled in its place, or a method, as of an optimizer."""
    broken = {line.function for one in program.explanation.breaks for line in one.stack}
    alone = {(graph.function or "").rpartition(".")[2] for graph in program.explanation.graphs}
    for ran in program.calls:
        file, name = program.file(ran.path), ran.target.name
        if file is not None and name in broken and name in file.functions and not name.endswith("forward"):
            yield _without(ran, f"compile the modules, and not {name}", _modules_compiled(ran, file.functions))
            for method in map(file.code, findall(file.functions[name].body, m.Attribute(value=m.Name()))):
                if method.rpartition(".")[2] in alone:
                    yield _without(ran, f"compile {method}, and not {name}", _modules_compiled(ran, (), method))


def _modules_compiled(ran: RanCall, methods: Container[str], method: str = "") -> tuple[str, TextEdit]:
    """``model.compile()`` below each statement that names a new object with one of the methods, or
    ``optimizer.step = torch.compile(optimizer.step)`` below that with the one ``method``."""

    def edit(file: UserFile) -> Edit | None:
        replaced: dict[cst.CSTNode, Replacement] = {}
        for node in walk(file.module):
            if isinstance(node, cst.Assign) and is_simple(target := node.targets[0].target):
                made = (file.code(one).partition("(")[0] for one in findall(node.value, m.Call()))
                arguments, line, name = ran.call.arguments(file), "", file.code(target)
                if method.rpartition(".")[0] == name:
                    line = f"{method} = {file.named(COMPILE)}({', '.join(filter(None, (method, arguments)))})"
                elif not _is_part(file, node) and any(f"{one.rpartition('.')[2]}.forward" in methods for one in made):
                    line = f"{name}.compile({arguments})"
                edit = file.split(node, [], node, cst.parse_module(f"{line}\n").body) if line else None
                replaced |= edit.replace if edit is not None else {}
        return Edit(replaced) if replaced else None

    return ran.path, edit


def _is_part(file: UserFile, node: cst.CSTNode) -> bool:
    """True in a class that is a module itself."""
    owner = next((one for one in file.around(node) if isinstance(one, cst.ClassDef)), None)
    return owner is not None and f"{file.qualified_name(owner)}.forward" in file.functions


def _of_plain_calls(program: TunedProgram) -> Iterator[ProgramChange]:
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
            file = program.file(ran.path) if "compile-method" in kinds and ran.target.name == owner else None
            decorator = f"{COMPILE}({ran.call.arguments(file)})" if file is not None else ""
            for path in program.texts if file is not None else ():
                yield from _decorate(program, path, f"{owner}.{name}", decorator, f"compile {owner}.{name}, too")


def _scope(file: UserFile, node: cst.CSTNode) -> cst.CSTNode:
    return next((one for one in file.around(node) if isinstance(one, cst.FunctionDef)), file.module)


def _of_callers(program: TunedProgram) -> Iterator[ProgramChange]:
    """The caller in place of a function that is compiled anew for each of many objects."""
    for problem in program.explanation.problems:
        callers = problem.called_from if any(change.objects > 1 for change in problem.changes) else ()
        for ran, caller in itertools.product(program.calls_for(problem), callers):
            if ran.call.form is Form.DECORATOR and os.path.abspath(caller.path) == ran.path:
                yield _moved(program, ran, ran.path, caller.function or "")


def _of_arguments(program: TunedProgram) -> Iterator[ProgramChange]:
    """A plain function that gives the compiled one its arguments in one form, where their ranks or layouts differ."""
    for problem in program.explanation.problems:
        for (kind, form, result, assumes), ran in itertools.product(_FORMS, program.calls_for(problem)):
            owners = {one.owner for one in problem.changes if one.kind is kind}
            names = {ran.call.target, ran.target.name, f"{ran.target.name}.forward"}
            for path in program.texts if owners else ():
                file = program.file(path)
                for name in sorted(names & file.functions.keys()) if file is not None else ():
                    edit = partial(_with_outer, name=name, owners=owners, form=form, result=result)
                    edits: list[tuple[str, TextEdit]] = [(path, edit)]
                    if ran.call.form is not Form.DECORATOR:
                        plain = at_call(ran.key, UserFile.without)
                        edits = [(ran.path, plain), (path, _decorator_edit(program, ran, name)), *edits]
                    what = f"{form.format(min(owners))} for compiled {name}"
                    yield ProgramChange(RemedyKind.CONSTRUCT, what, writer(*edits), (assumes.format(name),))


_ALONE = "{} computes each %s alone, and changes no argument"
_FORMS = (
    (ChangeKind.RANK, "{}.flatten()", ".view({}.shape)", _ALONE % "element"),
    (ChangeKind.RANK, "{}.flatten(0, -2)", ".unflatten(0, {}.shape[:-1])", _ALONE % "last dimension"),
    (ChangeKind.LAYOUT, "{}.contiguous()", "", "{} changes no argument, and returns no view of one"),
)
"""The kinds of changes, each with the form of an argument, that of the result, and what is assumed.  Not ``reshape``:
on torch 2.13, its views are compiled anew for each rank of what they view."""


def _with_outer(file: UserFile, name: str, owners: Container[str], form: str, result: str) -> Edit | None:
    """``def f(x): return _f(x.flatten()).view(x.shape)``, above the compiled function, which becomes ``_f``."""
    function = file.functions.get(name)
    if function is None or len(function.decorators) != 1 or "compile" not in file.code(function.decorators[0]):
        return None
    given = function.params
    around = next((one for one in file.around(function) if isinstance(one, cst.ClassDef | cst.FunctionDef)), None)
    simple = [one.name.value for one in (*given.posonly_params, *given.params)]
    changed = {one: form.format(one) for one in simple if one in owners}
    if not changed or given.star_kwarg or isinstance(given.star_arg, cst.Param):
        return None
    arguments = [changed.get(one, one) for one in simple]
    arguments += [f"{one.name.value}={one.name.value}" for one in given.kwonly_params]
    inner = fresh_name(file.module, f"_{function.name.value}")
    owner = f"{arguments.pop(0)}." if isinstance(around, cst.ClassDef) else ""
    code = f"return {owner}{inner.value}({', '.join(arguments)}){result.format(next(iter(changed)))}"
    docstring = function.body.body[: function.get_docstring() is not None]
    body = cst.IndentedBlock([*docstring, cst.parse_statement(code)])
    lines = [cst.EmptyLine(indent=False)] * (1 if owner else 2)
    compiled = function.with_changes(name=inner, leading_lines=lines)
    return Edit({function: [function.with_changes(decorators=[], body=body), compiled.deep_clone()]})


def _of_branches(program: TunedProgram) -> Iterator[ProgramChange]:
    """The `if` on a tensor that breaks, or ends an export: its sides chosen by ``torch.where``, or no exit of compiled
    code.  Where it raises, also the side that every call takes, with a check that it does."""
    for problem in program.explanation.problems:
        site, file = problem.site, program.file(problem.site.path)
        is_export = problem.kind is ProblemKind.EXPORT
        if file is None or not (is_export or problem.kind in (ProblemKind.BREAK, ProblemKind.FAILURE)):
            continue
        branches = _branches(file)
        branch = next((one for one in branches if file.span(one.test)[0] <= site.line <= file.span(one.test)[2]), None)
        if branch is None:
            continue
        test = file.code(branch.test)
        number = [file.code(one.test) for one in branches[: branches.index(branch)]].count(test)
        both = f"{BOTH_COMPUTED.text}; {A_NEW_TENSOR.text}"
        edits: list[tuple[str, str, Callable[..., Edit | None]]] = [("torch.where", both, _chosen)]
        edits.append(("no early exit", "what follows the exit gives what the exit gives", _without_exit))
        if is_export or problem.verdict is Verdict.RAISES:
            for holds, words in ((True, "true"), (False, "false")):
                assumes = in_one_line(f"`{test}` is {words} in every call")
                edits.append((f"torch._check that it is {words}", assumes, partial(_checked, holds=holds)))
        for what, assumes, edit in edits:
            write = writer((os.path.abspath(site.path), partial(_at_branch, test=test, number=number, edit=edit)))
            name = in_one_line(f"at `{test}`, {what}")
            yield ProgramChange(RemedyKind.CONSTRUCT, name, write, (assumes,), edit is _without_exit)


def _branches(file: UserFile) -> list[cst.If | cst.IfExp]:
    return [one for one in walk(file.module) if isinstance(one, cst.If | cst.IfExp)]


def _at_branch(file: UserFile, test: str, number: int, edit: Callable[..., Edit | None]) -> Edit | None:
    same = [one for one in _branches(file) if file.code(one.test) == test]
    # Nothing stands before an `elif`.
    fits = number < len(same) and not isinstance(file.parents[same[number]], cst.If)
    return edit(file, same[number]) if fits else None


def _chosen(file: UserFile, branch: cst.If | cst.IfExp) -> Edit | None:
    """The statements of both sides, which differ by one value each: ``x = torch.where(test, a, b)``."""
    test = file.code(branch.test).replace(".item()", "")

    def choice(one: cst.BaseExpression, other: cst.BaseExpression) -> cst.BaseExpression:
        return cst.parse_expression(f"{file.named('torch.where')}({test}, {file.code(one)}, {file.code(other)})")

    if isinstance(branch, cst.IfExp):
        return Edit({branch: choice(branch.body, branch.orelse)})
    other = branch.orelse.body if isinstance(branch.orelse, cst.Else) else None
    if other is None or not isinstance(branch.body, cst.IndentedBlock) or len(branch.body.body) != len(other.body):
        return None
    made = list[cst.CSTNode]()
    for one, its in zip(branch.body.body, other.body, strict=True):
        if not one.deep_equals(its):
            first, second = _value_of(one, its), _value_of(its, one)
            if first is None or second is None or not one.deep_replace(first, second).deep_equals(its):
                return None
            one = cst.ensure_type(one.deep_replace(first, choice(first, second)), cst.SimpleStatementLine)
        made.append(one)
    return Edit({branch: made})  # type: ignore[dict-item]


def _value_of(line: cst.CSTNode, other: cst.CSTNode) -> cst.BaseExpression | None:
    """The value of an assignment or a return; of a call, the argument that is not that of another one."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
        value = getattr(small, "value", None)
        return None if isinstance(value, cst.Tuple) else value
    others = findall(other, m.Arg())
    return next((one.value for one in small.value.args if not any(one.deep_equals(its) for its in others)), None)


def _without_exit(file: UserFile, branch: cst.If | cst.IfExp) -> Edit | None:
    """``if not torch.compiler.is_compiling() and mask.all(): return y``: what follows does the same with more work."""
    last = branch.body.body[-1] if isinstance(branch, cst.If) and branch.orelse is None else None
    if not isinstance(last, cst.SimpleStatementLine) or not isinstance(last.body[-1], cst.Return | cst.Continue):
        return None
    test = cst.parse_expression(f"not {file.named('torch.compiler.is_compiling')}()")
    return Edit({branch.test: cst.BooleanOperation(test, cst.And(), operand_of_and(branch.test))})


def _checked(file: UserFile, branch: cst.If | cst.IfExp, holds: bool) -> Edit | None:
    """``torch._check(test)``, before the branch: of a value that it asks for, both get the same."""
    code, test = file.code(branch.test), fresh_name(file.module, "is_so").value
    lines = f"{test} = {code}\n" if findall(branch.test, m.Call()) else ""
    test = test if lines else code
    check = test if holds else f"{file.named('torch.sym_not')}({test})"
    new = cst.parse_module(f"{lines}{file.named('torch._check')}({check})\n").body
    expression = cst.parse_expression(test)
    if isinstance(branch, cst.IfExp):
        small = file.small_statement(file.parents[branch])
        changed = small.deep_replace(branch.test, expression) if small is not None else None
        return file.split(small, new, changed) if small is not None else None  # type: ignore[arg-type]
    first = new[0].with_changes(leading_lines=branch.leading_lines)
    return Edit({branch: [first, *new[1:], branch.with_changes(test=expression, leading_lines=[])]})


def _of_disabled(program: TunedProgram) -> Iterator[ProgramChange]:
    """``torch.compiler.disable`` at the user's function that breaks and that a compiled one calls, and at one through
    which the program gets to several breaks: the call is then the only break.  Also at one that asks for what has its
    callers compiled anew, such as a size or the length of a dictionary."""
    through: Counter[tuple[str, str]] = Counter()
    for problem in program.explanation.problems:
        for change in problem.changes:
            asks = change.kind in _ASKED or (change.kind is ChangeKind.NUMBER and change.holder is not Holder.ARGUMENT)
            if asks and (line := change.asked_at) and not program.is_compiled(line.function):
                yield from _decorate(program, line.path, line.function or "")
        if problem.kind is ProblemKind.BREAK and problem.verdict is not Verdict.RAISES:
            functions = [(os.path.abspath(line.path), line.function or "") for line in program.traced(problem)]
            if functions:
                through.update(set(functions[:-1]))
                yield from _decorate(program, *functions[-1])
    for (path, name), breaks in through.items():
        if breaks > 1:
            yield from _decorate(program, path, name)


def _of_enabled(program: TunedProgram) -> Iterator[ProgramChange]:
    """The functions that compiled code calls and that are disabled, compiled: torch may have learned what they need."""
    for site in program.explanation.breaks:
        at = site.disabled
        if at is None or site.keeps or (file := program.file(at.path)) is None:
            continue
        for name, function in file.functions.items():
            first, _, last, _ = file.span(function)
            if name == at.function and first <= at.line <= last:
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
        kind = RemedyKind.CONSTRUCT if decorator == _CONSTANT else RemedyKind.REGION
        assumes = (f"{name} does nothing but return the same in each call",) if decorator == _CONSTANT else ()
        yield ProgramChange(kind, what or f"{decorator} at {name}", write, assumes)


def _decorated_edit(file: UserFile, name: str, decorator: str) -> Edit | None:
    function = file.functions.get(name)
    if function is None or any("compile" in file.code(one.decorator) for one in function.decorators):
        return None
    added = cst.Decorator(cst.parse_expression(file.named(decorator)))
    return Edit({function: function.with_changes(decorators=[*function.decorators, added])})


def _of_blocks(program: TunedProgram) -> Iterator[ProgramChange]:
    """The inner modules, where there are problems, and the repeated blocks, one by one."""
    inner, blocks = program.report.inner, program.report.blocks
    needed = inner if program.explanation.problems and inner != blocks else ()
    for name, parts in (("inner modules", needed), ("repeated blocks", blocks)):
        chosen = _with_parts(program, parts)
        edits = [(ran.path, at_call(ran.key, partial(_blocks_alone, its=its, ran=ran))) for ran, its in chosen]
        if edits:
            yield ProgramChange(RemedyKind.REGION, name, writer(*edits))


def _with_parts(
    program: TunedProgram, parts: Sequence[tuple[ModulePart, ...]]
) -> list[tuple[RanCall, tuple[ModulePart, ...]]]:
    """The calls whose modules have such parts."""
    if len(parts) == len(program.calls):
        return [(ran, its) for ran, its in zip(program.calls, parts, strict=True) if its and ran.call.subject]
    modules = [ran for ran in program.calls if ran.call.subject is not None]
    alike = {*parts} - {()}
    return [(modules[0], its) for its in alike] if len(modules) == len(alike) == 1 else []


def _blocks_alone(file: UserFile, call: CompileCall, its: Sequence[ModulePart], ran: RanCall) -> Edit | None:
    scope = _scope(file, call.node)
    if any(_scope(file, one) is scope for one in nodes_named(scope, "block")):
        return None

    def lines(owner: str, arguments: str) -> str:
        return "\n".join(lines_for(its, arguments, owner.rpartition(".")[0] if ran.is_method else owner))

    return file.in_place_of(call, lines)


def lines_for(parts: Sequence[ModulePart], arguments: str, model: str) -> Iterator[str]:
    """The lines that compile parts of one callable by themselves; ``model`` is the expression of its module."""
    for part in parts:
        codes = ", ".join(f"{model}{code}" for code in part.codes)
        if part.repeated:
            blocks = f"({codes})" if part.codes[1:] else codes
            yield f"for block in {blocks}:\n    {_compiled('block', part.of_torch, arguments)}"
        else:
            yield _compiled(codes, part.of_torch, arguments)


def _compiled(module: str, of_torch: bool, arguments: str) -> str:
    """``block.compile()``, which on torch 2.13 and older does nothing for modules of torch."""
    if of_torch:
        return f"{module}.forward = torch.compile({module}.forward{f', {arguments}' if arguments else ''})"
    return f"{module}.compile({arguments})"


def _of_eager(program: TunedProgram) -> Iterator[ProgramChange]:
    """Nothing compiled, and one of several not compiled."""
    if program.calls:
        yield ProgramChange(RemedyKind.REGION, NOT_COMPILED, program.everywhere(UserFile.without))
    elif program.texts:
        # A library compiles: the line is in the script.
        yield ProgramChange(RemedyKind.REGION, NOT_COMPILED, writer((next(iter(program.texts)), _stance)))
    if len(program.calls) > 1:
        for ran in program.calls:
            name = f"without torch.compile of {ran.call.target}"
            yield ProgramChange(RemedyKind.REGION, name, program.everywhere(UserFile.without, [ran]))


def _stance(file: UserFile) -> Edit | None:
    return _below_imports(file, f'{file.named("torch.compiler.set_stance")}("force_eager")')


MOST_CHANGES = 20
MOST_OF_A_KIND = 5
_SIZES = {ChangeKind.SIZE, ChangeKind.BRANCH_ON_SIZE, ChangeKind.EQUAL_SIZES}
_LIMIT = "64"
"""The versions of a function that are allowed where their number is not known."""
_INDUCTOR = "torch._inductor.config"
_ATTENDS = re.compile("(?i)att(entio)?n|transformer")
_REUSED = "the result of a compiled call is read, or copied, before the next call"
Changes = Callable[[TunedProgram], Iterator[ProgramChange]]
"""A kind of changes."""


def changes_of(program: TunedProgram, kinds: Sequence[Changes] | None = None) -> list[ProgramChange]:
    """The changes of some kinds, by default of all, that fit the program."""
    found: dict[str, ProgramChange] = {}
    for changes in (*SOLVING, *FASTER) if kinds is None else kinds:
        most = len(found) + MOST_OF_A_KIND
        for change in changes(program):
            if len(found) < most and change.name not in found and change.write(program.texts):
                found[change.name] = change
    return list(found.values())[:MOST_CHANGES]


def _of_remedies(program: TunedProgram, inductor: bool = False) -> Iterator[ProgramChange]:
    """Those of the remedies, and then all settings for breaks at once; settings of Inductor apart from others."""
    of_breaks: dict[str, Setting] = {}
    for problem in program.explanation.problems:
        for remedy in problem.remedies:
            if remedy.write is not None:
                path = os.path.abspath(remedy.write.path)
                write = writer((path, _line_edit(program, remedy.write)))
                name = f"{short_path(remedy.write.path)}:{remedy.write.line} {remedy.write.code}"
                yield ProgramChange(remedy.kind, name, write)
            if remedy.settings and (remedy.settings[0].owner == _INDUCTOR) is inductor:
                if problem.kind is ProblemKind.BREAK:
                    of_breaks |= {one.name: one for one in remedy.settings}
                yield _with_settings(program, remedy.settings, remedy.kind, problem)
        captures = _CAPTURES.get((problem.rule or "")[:4])
        if captures and problem.kind is ProblemKind.BREAK and not inductor:
            setting = of_breaks[captures] = Setting(DYNAMO, captures, "True")
            yield _with_settings(program, [setting], RemedyKind.SETTING)
    if len(of_breaks) > 1:
        yield _with_settings(program, list(of_breaks.values()), RemedyKind.SETTING)


def _with_settings(
    program: TunedProgram,
    settings: Sequence[Setting],
    kind: RemedyKind,
    problem: Problem | None = None,
    assumes: tuple[str, ...] = (),
) -> ProgramChange:
    edits: list[tuple[str, TextEdit]] = []
    for setting in settings:
        if setting.owner == COMPILE:
            calls = program.calls_for(problem) if problem is not None else program.calls
            for path, those in grouped((one.path, one.key) for one in calls).items():
                file = program.file(path)
                known = frozenset(map(file.key_of, file.calls)) if file is not None else frozenset()
                edits.append((path, partial(_keyword, keys=those, known=known, setting=setting)))
        else:
            # Where something is first compiled, else in the script.
            path = next((one.path for one in program.calls), next(iter(program.texts), ""))
            edits.append((path, partial(_setting_edit, setting=setting)))
    names = (str(one) if one.owner == COMPILE else f"{one.name}{one.assigned}" for one in settings)
    return ProgramChange(kind, ", ".join(names), writer(*edits), assumes)


def _keyword(file: UserFile, keys: Sequence[CallKey], known: Container[CallKey], setting: Setting) -> Edit | None:
    """The keyword at calls; where a change has written others in place of them, at those that were not ``known``."""
    calls = [call for key in keys if (call := file.find(key)) is not None]
    if len(calls) < len(keys):
        calls += [call for call in file.calls if file.key_of(call) not in known]
    edits = [edit for call in calls if (edit := call.with_keyword(setting.name, setting.value)) is not None]
    return Edit({node: new for edit in edits for node, new in edit.replace.items()}) if edits else None


def _setting_edit(file: UserFile, setting: Setting) -> Edit | None:
    """A line that sets it, below the imports and the lines like it; or its new value where the file sets it already."""
    dotted = f"{setting.owner}.{setting.name}"
    for node in walk(file.module):
        if isinstance(node, cst.Assign) and file.dotted(node.targets[0].target) == dotted:
            same = file.code(node.value) == setting.value
            return None if same else Edit({node: node.with_changes(value=cst.parse_expression(setting.value))})
    if setting.owner == "torch._functorch.config" and setting.owner not in file.module.code:
        file.needs.append(setting.owner)
    if "logging." in setting.value and "logging" not in file.imports:
        file.needs.append("logging")
    return _below_imports(file, f"{file.named(dotted)}{setting.assigned}")


def _below_imports(file: UserFile, line: str) -> Edit | None:
    body, at = file.module.body, file.last_import
    new = cst.ensure_type(cst.parse_module(f"{line}\n").body[0], cst.SimpleStatementLine)
    if at is None:
        return Edit({body[0]: [new.with_changes(leading_lines=[]), body[0]]}) if body else None
    lines = [cst.EmptyLine(indent=False)]
    # Next to lines such as ``torch._dynamo.config.recompile_limit = 16``.
    while at + 1 < len(body) and isinstance(after := body[at + 1], cst.SimpleStatementLine):
        if not any(".config." in (file.dotted(node) or "") for node in walk(after)):
            break
        at, lines = at + 1, []
    return Edit({body[at]: [body[at], new.with_changes(leading_lines=lines)]})


def _line_edit(program: TunedProgram, line: NewLine) -> TextEdit:
    """The edit that writes a new line: above the simple statement, or the header, that is at its line now."""
    file = program.file(line.path)
    statements = _statements(file) if file is not None else []
    spans = [file.span(one) for one in statements] if file is not None else []
    at = next((number for number, (first, _, last, _) in enumerate(spans) if first <= line.line <= last), None)
    if file is None or at is None:
        return lambda _: None
    codes = [file.code(one) for one in statements[: at + 1]]
    text = codes[at]
    number = codes[:at].count(text)

    def edit(now: UserFile) -> Edit | None:
        same = [one for one in _statements(now) if now.code(one) == text]
        if number >= len(same):
            return None
        small = same[number]
        new = cst.parse_module(f"{line.code}\n").body
        if "torch." in line.code:
            now.named("torch")
        # Once is enough.
        if now.code(new[0]) in map(now.code, now.parents[now.parents[small]].children):
            return None
        return now.split(small, new, small)

    return edit


def _statements(file: UserFile) -> list[cst.BaseSmallStatement]:
    return [one for line in walk(file.module) if isinstance(line, cst.SimpleStatementLine) for one in line.body]


def _of_limits(program: TunedProgram) -> Iterator[ProgramChange]:
    """More versions, where nothing makes one of them serve all."""
    names = {remedy.name for problem in program.explanation.problems for remedy in problem.remedies}
    if "recompile_limit" in names or any(frame.over_limit for frame in program.explanation.frames):
        for owner in (DYNAMO, COMPILE):
            change = _with_settings(program, [Setting(owner, "recompile_limit", _LIMIT)], RemedyKind.SETTING)
            # A line that sets it in the main thread, as it may be there, says nothing to another one.
            if change.write(program.texts) is not None:
                yield change
                break


def _of_sizes(program: TunedProgram) -> Iterator[ProgramChange]:
    """Open sizes and numbers, where these change: ``dynamic=True`` leaves ints of modules fixed."""
    for problem in program.explanation.problems:
        numbers = (one.holder for one in problem.changes if one.kind is ChangeKind.NUMBER)
        if any(one.kind in _SIZES for one in problem.changes) or any(one is not Holder.MODULE for one in numbers):
            if any(one.target.settings.get("dynamic") == "False" for one in program.calls_for(problem)):
                yield _with_settings(program, [Setting(COMPILE, "dynamic", "None")], RemedyKind.SHAPES, problem)
            yield _with_settings(program, [Setting(COMPILE, "dynamic", "True")], RemedyKind.SHAPES, problem)


def _of_other_calls(program: TunedProgram) -> Iterator[ProgramChange]:
    """Other calls than those of torch.compile, wherever they are."""
    for problem in program.explanation.problems:
        for remedy in problem.remedies:
            name, edit = _OTHER_CALLS.get(remedy.name, ("", None))
            edits = [(path, edit) for path in program.texts if edit and writer((path, edit))(program.texts)]
            if edits:
                yield ProgramChange(remedy.kind, name, writer(*edits))


def _calls_of(file: UserFile, owner: str) -> Iterator[tuple[cst.Call, dict[str, cst.Arg]]]:
    """The calls of what a module of torch holds, each with its keyword arguments."""
    for node in walk(file.module):
        if isinstance(node, cst.Call) and (file.dotted(node.func) or "").rpartition(".")[0] == owner:
            yield node, {one.keyword.value: one for one in node.args if one.keyword is not None}


def _tensor_rate(file: UserFile) -> Edit | None:
    """``lr=torch.tensor(1e-3)``."""
    rates: dict[cst.CSTNode, cst.Arg] = {}
    for call, keywords in _calls_of(file, "torch.optim"):
        rate = keywords.get("lr") or next((one for one in call.args[1:2] if one.keyword is None and not one.star), None)
        if rate is not None and "tensor" not in (code := file.code(rate.value)):
            rates[rate] = rate.with_changes(value=cst.parse_expression(f"{file.named('torch.tensor')}({code})"))
    return Edit(rates) if rates else None


def _workers_that_stay(file: UserFile) -> Edit | None:
    """``persistent_workers=True``."""
    loaders: dict[cst.CSTNode, cst.Call] = {
        call: with_option(call, "persistent_workers", "True")
        for call, keywords in _calls_of(file, "torch.utils.data")
        if "num_workers" in keywords and "persistent_workers" not in keywords
    }
    return Edit(loaders) if loaders else None


def _without_inference_mode(file: UserFile) -> Edit | None:
    above = {node: file.parents[node] for node in walk(file.module) if file.dotted(node) == "torch.inference_mode"}
    plain = [node for node, one in above.items() if not getattr(one, "args", isinstance(one, cst.ImportAlias))]
    return Edit({node: cst.parse_expression(file.named("torch.no_grad")) for node in plain}) if plain else None


_OTHER_CALLS: Mapping[str, tuple[str, TextEdit]] = {
    "tensor-lr": ("the learning rate as a tensor", _tensor_rate),
    "no-inference-mode": ("torch.no_grad in place of torch.inference_mode", _without_inference_mode),
    "persistent-workers": ("DataLoader(..., persistent_workers=True)", _workers_that_stay),
}
"""The names of changes, and their edits, by the remedy."""


def _of_clocks(program: TunedProgram) -> Iterator[ProgramChange]:
    """Timers in compiled code, such as those of a ``with``, left to eager code."""
    for site in program.explanation.breaks:
        if site.rule is not None and site.rule.id == _CLOCK and site.function:
            write = writer((os.path.abspath(site.site.path), partial(_untimed, line=site.site.line)))
            what = f"no time taken by compiled {site.function}"
            yield ProgramChange(RemedyKind.CONSTRUCT, what, write, ("the time that it takes is only looked at",))


def _untimed(file: UserFile, line: int) -> Edit | None:
    """The statements that take the time, and use it, in eager code alone.  None if more than simple ones do."""
    spans = {one: file.span(one) for one in file.functions.values()}
    at = next((one for one, (first, _, last, _) in spans.items() if first <= line <= last), file.module)
    scope = next((one for one in file.around(at) if isinstance(one, cst.ClassDef)), at)
    test = cst.parse_expression(f"not {file.named('torch.compiler.is_compiling')}()")
    calls = [one for one in walk(scope) if isinstance(one, cst.Call)]
    uses: list[cst.CSTNode] = [one for one in calls if (file.dotted(one.func) or "").partition(".")[0] in _CLOCKS]
    found: dict[cst.CSTNode, Replacement] = {}
    while uses:
        small = file.small_statement(uses.pop())
        body = file.parents[small] if isinstance(small, cst.Expr | cst.Assign | cst.AugAssign) else None
        if small is None or not isinstance(body, cst.SimpleStatementLine) or len(body.body) > 1:
            return None
        if body not in found:
            inner = cst.IndentedBlock([body.with_changes(leading_lines=[])])
            found[body] = cst.If(test, inner, leading_lines=body.leading_lines)
            for assigned in getattr(small, "targets", [small]):
                if is_simple(target := getattr(assigned, "target", None)):
                    around = _scope(file, target) if isinstance(target, cst.Name) else scope
                    uses += [one for one in walk(around) if type(one) is type(target) and one.deep_equals(target)]
    return Edit(found) if found else None


def _of_constants(program: TunedProgram) -> Iterator[ProgramChange]:
    """A constant of compiled code in place of a question to a file, the system or a context."""
    for site in program.explanation.breaks:
        file = program.file(site.site.path) if site.rule is not None and site.rule.id in _UNTRACED else None
        function = file.functions.get(site.function or "") if file is not None else None
        if file is None or function is None:
            continue
        path, names, call = os.path.abspath(site.site.path), {*written(function)}, file.at(site.site)
        if _gives_values(file, function):
            yield from _decorate(program, path, site.function or "", _CONSTANT)
        # What is called for what it does has no value that is used.
        if not isinstance(call, cst.Call) or isinstance(file.parents[call], cst.Expr):
            continue
        if {*read(call)} <= {*written(file.module)} - names and not findall(call, m.Attribute(attr=m.Name(_WRITES))):
            code = file.code(call)
            write = writer((path, partial(_constant, function=site.function or "", code=code)))
            assumes = (f"{code} gives the same in each call",)
            yield ProgramChange(RemedyKind.CONSTRUCT, f"{code} as a constant", write, assumes)


def _gives_values(file: UserFile, function: cst.FunctionDef) -> bool:
    """True for a function that returns a value, stores and writes nothing, and is given literals alone."""
    calls = [one for one in walk(file.module) if isinstance(one, cst.Call)]
    given = [one.value for call in calls if file.code(call.func).endswith(function.name.value) for one in call.args]
    is_given = bool(given) or {*written(function.params)} <= {"self", "cls"}
    stored = m.AssignTarget(target=~m.Name()) | m.AugAssign(target=~m.Name()) | m.Global() | m.Return(value=None)
    if not is_given or findall(function.body, stored | m.Attribute(attr=m.Name(_WRITES))):
        return False
    is_literal = all(isinstance(one, cst.SimpleString | cst.BaseNumber) for one in given)
    return is_literal and bool(findall(function.body, m.Return()))


def _constant(file: UserFile, function: str, code: str) -> Edit | None:
    """The call in a function of its own, whose result Dynamo takes for a constant."""
    inside = file.functions.get(function, file.module)
    found = {one: None for one in walk(inside) if isinstance(one, cst.Call) and file.code(one) == code}
    at = next((number for number, one in enumerate(file.module.body) if not found.keys().isdisjoint(walk(one))), 0)
    if not at:
        return None
    name = fresh_name(file.module, re.sub(r"\W+", "_", code).strip("_").lower()).value
    new = cst.parse_module(f"@{file.named(_CONSTANT)}\ndef {name}():\n    return {code}\n").body[0]
    above, lines = file.module.body[at - 1], [cst.EmptyLine(indent=False)] * 2
    made: dict[cst.CSTNode, Replacement] = {one: cst.parse_expression(f"{name}()") for one in found}
    return Edit({above: [above, new.with_changes(leading_lines=lines)], **made})


def _of_attributes(program: TunedProgram) -> Iterator[ProgramChange]:
    """The attribute or the item of a dictionary that changes, kept in another way or not at all."""
    for problem in program.explanation.problems:
        for change in problem.changes:
            worth = {remedy.name for remedy in problem.remedies}
            name = re.findall(r"\w+", change.subject)[-1:]
            at = (change.switched_at if "set-always" in worth else None) or change.asked_at or problem.site
            if change.kind is ChangeKind.SET_LATER and change.values[:1] == ("None",):
                worth.add("no-memo")
            if change.kind is ChangeKind.NUMBER and change.holder is not Holder.ARGUMENT:
                worth |= {"tensor-number", "no-memo"}
            for remedy, (what, edit, assumes) in _ATTRIBUTES.items():
                if name and remedy in worth:
                    write = writer((os.path.abspath(at.path), partial(edit, name=name[0])))
                    what, assumes = (text.format(name=name[0]) for text in (what, assumes))
                    yield ProgramChange(RemedyKind.CONSTRUCT, what, write, (assumes,))


def _of_indices(program: TunedProgram) -> Iterator[ProgramChange]:
    """``x.select(1, n)`` in place of ``x[:, n]``, where the number is compiled in."""
    for problem in program.explanation.problems:
        names = {one.name for one in problem.remedies} & {"select", "select-of-module"}
        for change in problem.changes if names else ():
            if change.kind is ChangeKind.NUMBER and (at := change.asked_at) is not None:
                select = partial(_selected, function=at.function or "", number=change.subject)
                edits: list[tuple[str, TextEdit]] = [(os.path.abspath(at.path), select)]
                if change.holder is Holder.MODULE:
                    path = next((one.path for one in program.calls), next(iter(program.texts)))
                    edits.append((path, partial(_setting_edit, setting=_INTEGERS_OPEN)))
                yield ProgramChange(RemedyKind.CONSTRUCT, f"select by {change.subject}", writer(*edits))


def _selected(file: UserFile, function: str, number: str) -> Edit | None:
    found: dict[cst.CSTNode, Replacement] = {}
    for node in walk(file.functions.get(function, file.module)):
        index = ast.parse(file.code(node), mode="eval").body if isinstance(node, cst.Subscript) else None
        if isinstance(index, ast.Subscript):
            index.ctx = ast.Store() if isinstance(file.parents[node], cst.AssignTarget | cst.AugAssign) else ast.Load()
            if code := with_select(index, number):
                found[node] = cst.parse_expression(code)
    return Edit(found) if found else None


_INTEGERS_OPEN = Setting(DYNAMO, "allow_unspec_int_on_nn_module", "True")


def _tensor_number(file: UserFile, name: str) -> Edit | None:
    """``self.steps = torch.tensor(0)``, wherever the attribute or item gets a number, or an argument of its object."""
    numbers: dict[cst.CSTNode, cst.BaseExpression] = {}
    for node in walk(file.module):
        for target, value in _bound(node):
            is_it = isinstance(target, cst.Attribute) and target.attr.value == name
            if isinstance(target, cst.Subscript | cst.SimpleString):
                is_it = file.code(target).rpartition("[")[2].strip("\"']") == name
            if is_it and (isinstance(value, cst.Integer | cst.Float) or _is_of_init(file, value)):
                numbers[value] = cst.parse_expression(f"{file.named('torch.tensor')}({file.code(value)})")
    return Edit(numbers) if numbers else None


def _bound(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """The targets of an assignment, or the key of an item, each with its value."""
    if isinstance(node, cst.DictElement):
        yield node.key, node.value
    elif isinstance(node, cst.Assign):
        target, value = node.targets[0].target, node.value
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            yield from ((one.value, its.value) for one, its in zip(target.elements, value.elements, strict=False))
        else:
            yield target, value


def _is_of_init(file: UserFile, value: cst.BaseExpression) -> bool:
    """True for an argument of the ``__init__`` around it."""
    function = next((one for one in file.around(value) if isinstance(one, cst.FunctionDef)), None)
    if function is None or function.name.value != "__init__" or not isinstance(value, cst.Name):
        return False
    return any(one.name.value == value.value for one in function.params.params)


def _set_always(file: UserFile, name: str) -> Edit | None:
    """``self.name = None`` at the beginning of the ``__init__`` of the class whose methods set it."""
    for statement in walk(file.module):
        if isinstance(statement, cst.Assign) and file.code(statement.targets[0].target) == f"self.{name}":
            scope = next((one for one in file.around(statement) if isinstance(one, cst.ClassDef)), None)
            first = file.functions.get(f"{file.qualified_name(scope)}.__init__") if scope is not None else None
            if first is None or not isinstance(first.body, cst.IndentedBlock):
                continue
            heads = sum("super().__init__" in file.code(one) for one in first.body.body[:1])
            heads += first.get_docstring() is not None
            new = cst.parse_module(f"self.{name} = None\n").body
            body = [*first.body.body[:heads], *new, *first.body.body[heads:]]
            return Edit({first.body: first.body.with_changes(body=body)})
    return None


def _without_memo(file: UserFile, name: str) -> Edit | None:
    """``self.mask = make(x)`` in each call, without the test that asks for what was kept."""
    own = f"self.{name}"
    for node in walk(file.module):
        if isinstance(node, cst.If) and node.orelse is None:
            body, test = node.body.body, file.code(node.test)
            simple = [one.body[0] for one in body if isinstance(one, cst.SimpleStatementLine)]
            kept = {file.code(one.targets[0].target): one.value for one in simple if isinstance(one, cst.Assign)}
            if own not in test or own not in kept or len(kept) != len(body):
                continue
            is_both = m.matches(node.test, m.BooleanOperation(operator=m.And()))
            # A counter that starts anew is kept for nothing else.
            if not is_both and ("None" in test or f"not {own}" in test or file.code(kept[own]) in test):
                return Edit({node: list(body)})  # type: ignore[arg-type]
    return None


_ATTRIBUTES: Mapping[str, tuple[str, Callable[..., Edit | None], str]] = {
    "tensor-number": ("{name} as a tensor", _tensor_number, "{name} is only computed with"),
    "set-always": ("{name} is None where it is not set", _set_always, "None and no {name} at all mean the same"),
    "no-memo": ("{name} computed in each call", _without_memo, "what is kept depends on the call alone"),
}
"""The names of changes, their edits, and what they assume, by the remedy."""


def _of_modes(program: TunedProgram) -> Iterator[ProgramChange]:
    """The other modes of Inductor, CUDA graphs and blocks first, and its settings that are not on by default."""
    calls = program.calls
    is_default = all(one.target.backend in (None, "inductor") and "options" not in one.call.options for one in calls)
    modes = ["max-autotune-no-cudagraphs", *(["max-autotune"] if program.report.cuda else [])]
    compiles = is_default and program.goal is not Goal.COMPILE
    if compiles and program.report.cuda:
        yield _in_mode(program, "reduce-overhead")
    yield from _of_blocks(program)
    if compiles and program.report.cuda and any(map(_ATTENDS.search, program.texts.values())):
        # cuDNN plans its attention anew for each size.
        setting = Setting("torch.backends.cuda", "enable_cudnn_sdp", "(False)")
        yield _with_settings(program, [setting], RemedyKind.SETTING)
    if is_default and any("mode" in one.call.options for one in calls):
        yield _with_settings(program, [Setting(COMPILE, "mode", "None")], RemedyKind.SETTING)
    for mode in modes if compiles else ():
        yield _in_mode(program, mode)
    if compiles and not (program.report.backward or program.report.weights_change):
        setting = Setting(_INDUCTOR, "freezing", "True")
        yield _with_settings(program, [setting], RemedyKind.SETTING, assumes=(FROZEN,))


def _in_mode(program: TunedProgram, mode: str) -> ProgramChange:
    assumes = () if mode.endswith("no-cudagraphs") else (_REUSED,)
    return _with_settings(program, [Setting(COMPILE, "mode", f'"{mode}"')], RemedyKind.SETTING, assumes=assumes)


SOLVING: tuple[Changes, ...] = (
    _of_remedies,
    _of_loops,
    _of_plain_calls,
    _of_callers,
    _of_arguments,
    _of_decorators,
    _of_steps,
    _of_branches,
    _of_enabled,
    _of_disabled,
    _of_clocks,
    _of_constants,
    _of_sizes,
    _of_indices,
    _of_other_calls,
    _of_attributes,
    _of_blocks,
    _of_limits,
)
"""The kinds of changes that may leave fewer problems, those first that are cheap and likely to."""
FASTER: tuple[Changes, ...] = (partial(_of_remedies, inductor=True), _of_modes, _of_eager)
"""Those that may make a step faster that has no problems."""
