"""Makes a program of one function, stand-ins for what it was called with, and the call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakscan.explanation.compile_targets import CompileTarget
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.function_values import FunctionValues
from breakscan.explanation.repro.needed_code import NeededCode, ProgramModule, ProgramModules
from breakscan.explanation.repro.problem import FunctionAt, NotReproducible, Obstacle, RecordedProblem
from breakscan.explanation.repro.stand_ins import NOT_RECORDED, End, StandIns, with_part
from breakscan.model.observations import ValueSeen
from breakscan.model.problem import ProblemKind
from breakscan.source.outline import OutlineEntry
from breakscan.source.source_files import SourceFiles

_BACKENDS = ("inductor", "eager", "aot_eager", "aot_eager_decomp_partition", "cudagraphs")
"""The backends that every installation has under this name."""
_PLAIN = "eager"
_OBJECT = "stand_in"
"""The name of the object whose method is called."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The choice among recorded values: a call of the function for each of ``ends``.  With ``alone``, only what
    a guard is about differs between the calls, else all that did in the run: sizes can depend on one another."""

    ends: tuple[End, ...]
    alone: bool = False


@dataclass(frozen=True, slots=True)
class MinimalProgram:
    """A program in parts.  ``function`` is what it compiles; ``unknown`` what the recording does not have: names, and
    values by how the program reaches them; ``own_backend`` is the program's own, which ``eager`` stands in for."""

    function: FunctionAt
    imports: tuple[str, ...]
    definitions: tuple[str, ...]
    calls: tuple[str, ...]
    unknown: tuple[str, ...]
    placeholder: str | None
    own_backend: str | None


def minimal_program(
    problem: RecordedProblem, at: FunctionAt, explanation: Explanation, files: SourceFiles, plan: Plan
) -> MinimalProgram:
    """The program that calls ``at``.  Raises NotReproducible."""
    modules = ProgramModules(files)
    seen = next((one for one in explanation.values if (one.site.path, one.function) == (at.path, at.function)), None)
    if seen is None:
        raise NotReproducible(Obstacle.NO_VALUES, at.function)
    module = modules.at(at.path)
    scope = module.scope(at.function) if module else None
    if module is None or scope is None or isinstance(scope.node, ast.ClassDef | ast.Lambda):
        raise NotReproducible(Obstacle.NO_SOURCE, at.function)
    code = NeededCode(modules)
    stand_ins = StandIns(code, modules, explanation.values)
    maker = _Maker(module, scope, seen, code, stand_ins, problem, plan)
    target = _target(explanation.targets, problem, at)
    calls = maker.calls(_compile_arguments(target))
    code.settle()
    imports, definitions = code.text()
    unknown = (*stand_ins.unknown, *code.unknown)
    return MinimalProgram(
        at,
        tuple(imports),
        tuple(definitions),
        tuple(calls),
        unknown,
        NOT_RECORDED if stand_ins.unknown else None,
        target.backend if target and target.backend not in _BACKENDS else None,
    )


class _Maker:
    """Writes the calls of one function."""

    def __init__(
        self,
        module: ProgramModule,
        scope: OutlineEntry,
        seen: FunctionValues,
        code: NeededCode,
        stand_ins: StandIns,
        problem: RecordedProblem,
        plan: Plan,
    ) -> None:
        assert isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef)
        self._module, self._scope, self._node, self._seen = module, scope, scope.node, seen
        self._code, self._stand_ins, self._plan = code, stand_ins, plan
        is_recompile = problem.kind is ProblemKind.RECOMPILES
        self._root, self._parts = _way_into(problem.subject) if is_recompile else ("", [])
        both = (problem.old, problem.new)
        self._changes = sorted((text for text in both if text is not None and _is_literal(text)), key=_by_number)

    def calls(self, arguments: str) -> list[str]:
        """The statements after the definitions."""
        ends = self._plan.ends
        given = self._node.args
        owner = self._owner()
        lines = self._closure(owner)
        if owner is None:
            self._code.function(self._module, self._scope, self._closed_over())
            lines.append(f"compiled = torch.compile({self._node.name}{arguments})")
            return lines + [f"compiled({self._arguments(given, end, skip=0)})" for end in ends]
        name = owner.arg
        self._code.method(self._node.name)
        lines.append(f"{_OBJECT} = {self._argument(name, ends[0])}")
        held = self._stand_ins.held(self._seen.values[name])
        if "training" in held and self._texts(name, "training", ends[0]) == "False":
            lines.append(f"{_OBJECT}.eval()")
        is_forward = self._node.name == "forward" and "training" in held
        target = _OBJECT if is_forward else f"{_OBJECT}.{self._node.name}"
        lines.append(f"compiled = torch.compile({target}{arguments})")
        for number, end in enumerate(ends):
            if number:
                lines += self._changed(name, ends[number - 1], end)
            lines.append(f"compiled({self._arguments(given, end, skip=1)})")
        return lines

    def _owner(self) -> ast.arg | None:
        """The parameter of a method that is its object."""
        parameters = [*self._node.args.posonlyargs, *self._node.args.args]
        around = self._scope.qualname.rpartition(".")[0]
        is_method = bool(around) and not around.endswith("<locals>")
        return parameters[0] if is_method and parameters and parameters[0].arg in self._seen.values else None

    def _closed_over(self) -> list[str]:
        taken = self._node.args
        own = {a.arg for a in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg) if a}
        return [name for name in self._seen.values if name not in own]

    def _closure(self, owner: ast.arg | None) -> list[str]:
        """The assignments of what enclosing functions give it."""
        if owner is not None:
            return []
        names = self._closed_over()
        return [f"{name} = {self._stand_ins.expression(self._seen.values[name], End.LOW, name)}" for name in names]

    def _arguments(self, given: ast.arguments, end: End, skip: int) -> str:
        positional = [*given.posonlyargs, *given.args]
        defaults = [*[None] * (len(positional) - len(given.defaults)), *given.defaults]
        parts = [self._argument(one.arg, end) for one in positional[skip:]]
        if not (given.vararg and self._seen.values.get(given.vararg.arg)):
            # What is passed as it would be without a word.
            while parts and (default := defaults[skip + len(parts) - 1]) and ast.unparse(default) == parts[-1]:
                parts.pop()
        if given.vararg and (rest := self._seen.values.get(given.vararg.arg)) and rest.items:
            parts += [
                self._stand_ins.expression(item, self._end(given.vararg.arg, end), f"{given.vararg.arg}[{number}]")
                for number, item in enumerate(self._value(given.vararg.arg, end).items or ())
            ]
        for one, preset in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            argument = self._argument(one.arg, end)
            if preset is None or ast.unparse(preset) != argument:
                parts.append(f"{one.arg}={argument}")
        if given.kwarg and given.kwarg.arg in self._seen.values:
            entries = self._value(given.kwarg.arg, end).entries
            parts += [f"{key}={self._stand_ins.expression(value, end, key)}" for key, value in entries.items()]
        return ", ".join(parts)

    def _argument(self, name: str, end: End) -> str:
        return self._stand_ins.expression(self._value(name, end), self._end(name, end), name)

    def _value(self, name: str, end: End) -> ValueSeen:
        """The recorded value; of a recompile, with the value that its guard met."""
        value = self._seen.values.get(name, ValueSeen(()))
        return with_part(value, self._parts, self._changes[end.value]) if self._is_set(name) else value

    def _end(self, name: str, end: End) -> End:
        """The end of the values of a name that a call gets."""
        return End.LOW if self._plan.alone and (name != self._root or self._is_set(name)) else end

    def _is_set(self, name: str) -> bool:
        """Return whether the guard has the values of a part of a name."""
        return name == self._root and len(self._changes) > 1

    def _texts(self, name: str, attribute: str, end: End) -> str:
        held = self._stand_ins.held(self._value(name, end))
        if attribute not in held:
            return ""
        return self._stand_ins.expression(held[attribute], self._end(name, end), f"{name}.{attribute}")

    def _changed(self, name: str, before: End, after: End) -> list[str]:
        """The change of the object between two calls: the attribute that a guard is about."""
        if self._root != name or not self._parts or not isinstance(self._parts[0], str):
            return []
        attribute = self._parts[0]
        old, new = (self._texts(name, attribute, end) for end in (before, after))
        if attribute == "training" and new != old:
            return [f"{_OBJECT}.train({new})"]
        return [f"{_OBJECT}.{attribute} = {new}"] if new != old else []


def _way_into(subject: str) -> tuple[str, list[str | int]]:
    """The name that an expression begins with, and the attributes, keys and indexes after it."""
    parts: list[str | int] = []
    try:
        node: ast.expr = ast.parse(subject, mode="eval").body
    except SyntaxError:
        return "", []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
        elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int | str):
            parts.insert(0, node.slice.value)
        else:
            return "", []
        node = node.value
    return (node.id, parts) if isinstance(node, ast.Name) else ("", [])


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def _by_number(text: str) -> float:
    try:
        return float(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError):
        return 0.0


def _target(targets: Sequence[CompileTarget], problem: RecordedProblem, at: FunctionAt) -> CompileTarget | None:
    """The compiled thing that led to the function: by its name, else the first that was called."""
    names = {part for one in (at, *problem.way) for part in (one.function, *one.function.split("."))}
    called = [target for target in targets if target.attempted]
    named = (target for target in called if target.name in names or target.name.rpartition(".")[2] in names)
    return next(named, next(iter(called), None))


def _compile_arguments(target: CompileTarget | None) -> str:
    """The arguments after the function in the call of ``torch.compile``."""
    if target is None:
        return ""
    backend = target.backend if target.backend in _BACKENDS else _PLAIN
    given: Mapping[str, str] = {
        **({"backend": repr(backend)} if backend != "inductor" else {}),
        **({"fullgraph": "True"} if target.fullgraph else {}),
        **(target.settings if backend == target.backend else {}),
    }
    return "".join(f", {name}={value}" for name, value in given.items())
