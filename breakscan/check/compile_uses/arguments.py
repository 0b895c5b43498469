"""Arguments of compiled code with another value, size or length in each iteration of a loop, and how they are used."""

import ast
from collections.abc import Iterator, Sequence
from enum import Enum

from breakscan.check.compile_uses.uses import Found, Step, Survey, Target, Use, owner_of
from breakscan.check.interpreter.values import literal
from breakscan.check.project.index import ClassInfo
from breakscan.rulebook.events import Argument, EventKind
from breakscan.source.walking import FunctionNode, Loop, is_name, own_nodes, reads, walk


class ArgumentChange(Enum):
    """The kind of value that changes, with the form of the event."""

    INT = "changing-int"
    FLOAT = "changing-float"
    TEXT = "changing-text"

    @property
    def form(self) -> str:
        return self.value if self is ArgumentChange.TEXT else "changing-number"


_COUNTING = frozenset({"range", "tqdm.trange", "tqdm.auto.trange"})
_PASSED_THROUGH = ("tqdm", "track", "reversed")
_CLOCKS_AND_DICE = frozenset(
    "time.time time.perf_counter time.monotonic random.random random.uniform random.randint random.randrange".split()
)
_OF_NUMBERS = frozenset(
    "int float round abs min max pow math.sin math.cos math.exp math.sqrt math.log math.pow".split()
)
_SETTINGS = frozenset({"args", "config", "cfg", "opt", "hparams", "params"})


class Changes:
    """The values that change in the loops around one statement."""

    def __init__(self, survey: Survey, step: Step) -> None:
        self.survey = survey
        self.scope = step.scope
        self.loops = step.loops
        self.loop = step.loops[-1] if step.loops else None
        self.names: dict[str, ArgumentChange] = {}
        for loop in step.loops:
            if not isinstance(loop, ast.While):
                self.add_head(loop.target, loop.iter)
        for loop in step.loops:
            for _ in range(2):
                self._body(loop)

    def of(self, node: ast.expr) -> ArgumentChange | None:
        """The change of an expression that is a Python number or string; else None."""
        match node:
            case ast.Name(id=name):
                return self.names.get(name)
            case ast.JoinedStr(values=parts):
                changes = any(self.of(part.value) for part in parts if isinstance(part, ast.FormattedValue))
                return ArgumentChange.TEXT if changes else None
            case ast.UnaryOp(op=ast.USub()):
                return self.of(node.operand)
            case ast.BinOp() if not isinstance(node.op, ast.Mod):
                return self._of_numbers([node.left, node.right], keeps_ints=not isinstance(node.op, ast.Div))
            case ast.Call(func=func, args=args):
                called = self.survey.index.dotted(func)
                if called in _CLOCKS_AND_DICE:
                    return ArgumentChange.FLOAT
                if called == "str" and len(args) == 1:
                    return ArgumentChange.TEXT if self.of(args[0]) else None
                return self._of_numbers(args, keeps_ints=False) if called in _OF_NUMBERS else None
        return None

    def is_number(self, node: ast.expr) -> bool:
        return self.of(node) in (ArgumentChange.INT, ArgumentChange.FLOAT)

    def _of_numbers(self, operands: Sequence[ast.expr], *, keeps_ints: bool) -> ArgumentChange | None:
        """The change of a number that is computed from other numbers."""
        fixed = [operand for operand in operands if self.of(operand) is None]
        if not any(map(self.is_number, operands)) or not all(map(self._is_fixed_number, fixed)):
            return None
        literals = (operand.value for operand in fixed if isinstance(operand, ast.Constant))
        ints = [type(value) for value in literals].count(int) + [*map(self.of, operands)].count(ArgumentChange.INT)
        return ArgumentChange.INT if keeps_ints and ints == len(operands) else ArgumentChange.FLOAT

    def _is_fixed_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int | float)
        if isinstance(node, ast.BinOp):
            return self._is_fixed_number(node.left) and self._is_fixed_number(node.right)
        if isinstance(node, ast.Call):
            return self.survey.index.dotted(node.func) in ("len", "int", "float")
        if isinstance(node, ast.Attribute):
            return isinstance(node.value, ast.Name) and node.value.id in _SETTINGS
        if isinstance(node, ast.Name):
            bound = self.survey.bindings_of(node.id, self.scope)
            fixed = [isinstance(b.value, ast.Constant | ast.Call) and self._is_fixed_number(b.value) for b in bound]
            return bool(fixed) and all(fixed)
        return False

    def add_head(self, target: ast.expr, over: ast.expr) -> None:
        """Adds the names that a loop or a comprehension binds to a counter, or to numbers and texts of a list."""
        dotted = self.survey.index.dotted
        while isinstance(over, ast.Call) and over.args and (dotted(over.func) or "").endswith(_PASSED_THROUGH):
            over = over.args[0]
        if isinstance(over, ast.Call):
            name = dotted(over.func)
            if name == "enumerate" and isinstance(target, ast.Tuple):
                target = target.elts[0]
            elif name not in _COUNTING or [getattr(bound, "value", None) for bound in over.args] in ([0], [1]):
                return
            if isinstance(target, ast.Name):
                self.names[target.id] = ArgumentChange.INT
        elif isinstance(over, ast.List | ast.Tuple | ast.Set) and isinstance(target, ast.Name):
            values = {v.value for v in over.elts if isinstance(v, ast.Constant) and type(v.value) in (int, float)}
            if len(values) == len(over.elts) > 1:
                are_ints = all(type(v) is int for v in values)
                self.names[target.id] = ArgumentChange.INT if are_ints else ArgumentChange.FLOAT
        elif isinstance(over, ast.Name) and isinstance(target, ast.Name):
            made = [one.value for one in self.survey.bindings_of(over.id, self.scope)]
            if made and all(isinstance(m, ast.ListComp) and isinstance(m.elt, ast.JoinedStr) for m in made):
                self.names[target.id] = ArgumentChange.TEXT

    def _body(self, loop: Loop) -> None:
        """Finds counters that the body increments, and names for values computed from what changes."""
        for statement in (step.statement for step in self.scope.steps if loop in step.loops):
            change: ArgumentChange | None = None
            target: ast.expr | None = None
            if isinstance(statement, ast.AugAssign):
                target = statement.target
                start = self.survey.bound_before(target.id, self.scope, loop) if isinstance(target, ast.Name) else None
                if start is not None and _is_number(start.value) and _is_number(statement.value):
                    is_int = isinstance(statement.value, ast.Constant) and type(statement.value.value) is int
                    change = ArgumentChange.INT if is_int else ArgumentChange.FLOAT
            elif isinstance(statement, ast.Assign):
                target, change = statement.targets[0], self.of(statement.value)
            if isinstance(target, ast.Name) and change and len(self.survey.bound_in(target.id, self.scope, loop)) == 1:
                self.names[target.id] = change


def _is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


class Treatment(Enum):
    """The use of a parameter, as far as it decides how often Dynamo compiles.  An operand of events."""

    UNUSED = "parameter:unused"
    COMPUTED = "parameter:computed"
    """Dynamic after one change."""
    UNROLLED = "parameter:unrolled"
    """Compiled for each value: it determines the shape of the graph."""


_LISTS = frozenset({"list", "dict", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
_WRITTEN = (ast.List, ast.ListComp, ast.Dict, ast.DictComp)


def parameter_of(call: ast.Call, argument: ast.expr, function: FunctionNode, bound: bool) -> str | None:
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)][bound:]
    rest = function.args.vararg.arg if function.args.vararg else None
    for i, given in enumerate(call.args):
        if given is argument:
            return rest if isinstance(given, ast.Starred) or i >= len(names) else names[i]
        if isinstance(given, ast.Starred):
            return None
    keyword = next((k.arg for k in call.keywords if k.value is argument), None)
    return keyword if keyword in (*names, *(a.arg for a in function.args.kwonlyargs)) else None


def treatment(function: FunctionNode, parameter: str, survey: Survey, target: Target | None) -> Treatment:
    """The use of a parameter that holds a number."""
    used = False
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and node.id == parameter and isinstance(node.ctx, ast.Load):
            used = True
        elif _unrolls(node, parameter, survey, function, target):
            return Treatment.UNROLLED
    inner = [n for n in own_nodes(function) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    used = used or any(reads(n, parameter) for n in inner)
    return Treatment.COMPUTED if used else Treatment.UNUSED


def _unrolls(node: ast.AST, name: str, survey: Survey, function: FunctionNode, target: Target | None) -> bool:
    if isinstance(node, ast.Call):
        return is_name(node.func, "range") and any(is_number_of(argument, name) for argument in node.args)
    if isinstance(node, ast.Subscript) and is_number_of(node.slice, name):
        return _is_list(node.value, survey, function, target)
    return False


def is_number_of(node: ast.expr, name: str) -> bool:
    """True if an expression is a name, or Python arithmetic on it and constants."""
    if isinstance(node, ast.BinOp):
        sides = [is_number_of(s, name) for s in (node.left, node.right) if not isinstance(s, ast.Constant)]
        return bool(sides) and all(sides)
    return is_name(node, name)


def _is_list(node: ast.expr, survey: Survey, function: FunctionNode, target: Target | None) -> bool:
    """True if a value is a list, a dict or an ``nn.ModuleList`` made in the file."""
    values: list[ast.expr | None] = []
    if isinstance(node, ast.Name):
        scope = survey.scopes.of_function.get(function)
        bindings = survey.bindings_of(node.id, scope or survey.scopes.scopes[0])
        values = [b.value for b in bindings]
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (owner := owner_of(target)):
        values = [b.value for b in survey.attribute_bindings(owner, node.attr)]
    made = [
        survey.index.dotted(v.func) in _LISTS if isinstance(v, ast.Call) else isinstance(v, _WRITTEN) for v in values
    ]
    return bool(made) and all(made)


def reads_only_constant_keys(function: FunctionNode, parameter: str) -> bool:
    """True if a function only reads constant keys of a dict."""
    nodes = own_nodes(function)
    read = [n for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load)]
    keyed = [n for n in read if isinstance(n.slice, ast.Constant) and is_name(n.value, parameter)]
    return len(keyed) == sum(is_name(n, parameter) for n in nodes)


_MADE_WITH_SIZE = frozenset({"torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty"})
_MARKS = frozenset({"mark_dynamic", "maybe_mark_dynamic", "mark_unbacked"})
_GROWING = frozenset({"append", "extend", "insert", "add", "update"})
_SHRINKING = frozenset({"clear", "pop", "popleft", "remove", "popitem"})


def changing_arguments(survey: Survey) -> Iterator[Found]:
    """The arguments of compiled callables that change in the loop of the call."""
    for use in survey.uses:
        if not use.step.loops:
            continue
        changes = Changes(survey, use.step)
        for argument in (*use.call.args, *(k.value for k in use.call.keywords if k.arg)):
            found = _of_argument(survey, use, changes, argument)
            if found is not None:
                yield found


def _of_argument(survey: Survey, use: Use, changes: Changes, argument: ast.expr) -> Found | None:
    if _changes_size(argument, changes, survey):
        names = ((survey.index.dotted(call.func) or "").rpartition(".")[2] for call, _ in survey.calls)
        marked = "size:unmarked" if _MARKS.isdisjoint(names) else "size:marked"
        return _passed(use, argument, "changing-size", None, marked)
    target = use.compiled.target
    info = survey.finder.run_by(target)[0] if target is not None else None
    known = (info.node, target is not info and not info.is_static) if info is not None else None
    parameter = parameter_of(use.call, argument, *known) if known else None
    if known is None or parameter is None:
        return None
    treated = treatment(known[0], parameter, survey, target)
    grown = argument.value if isinstance(argument, ast.Starred) else argument
    if isinstance(grown, ast.Name):
        what = next((kind for loop in use.step.loops if (kind := _grows(grown.id, loop, use, survey))), None)
        if what is not None:
            reads_keys = what == "dict" and reads_only_constant_keys(known[0], parameter)
            fact = "parameter:keys" if reads_keys and treated is not Treatment.UNUSED else treated.value
            return _passed(use, argument, "growing-container", grown.id, fact)
    change = changes.of(argument)
    return _passed(use, argument, change.form, parameter, treated.value) if change is not None else None


def _passed(use: Use, argument: ast.expr, form: str, name: str | None, fact: str) -> Found:
    options = tuple(Argument(None, key, literal_words(value)) for key, value in use.compiled.keywords.items())
    function, operands = use.step.scope.info, frozenset({fact})
    return Found(EventKind.PASS, argument, function, form, name, operands=operands, arguments=options)


def literal_words(node: ast.expr) -> frozenset[str]:
    """The words for an argument of ``torch.compile`` that is written as a literal: what has a name may be None."""
    if isinstance(node, ast.Constant):
        return literal(node.value).words()
    return frozenset({"container" if isinstance(node, ast.Dict | ast.List | ast.Tuple) else "unknown"})


def _changes_size(argument: ast.expr, changes: Changes, survey: Survey) -> bool:
    """True if an argument is a tensor that is created with, or cut to, another size in each iteration."""
    if isinstance(argument, ast.Subscript):
        parts = argument.slice.elts if isinstance(argument.slice, ast.Tuple) else [argument.slice]
        slices = [p for p in parts if isinstance(p, ast.Slice) and p.step is None]
        moving = [
            [e for e in (p.lower, p.upper) if e and any(reads(e, name) for name in changes.names)] for p in slices
        ]
        return any(len(ends) == 1 and changes.is_number(ends[0]) for ends in moving)
    if isinstance(argument, ast.Call) and survey.index.dotted(argument.func) in _MADE_WITH_SIZE:
        targets = [loop.target for loop in changes.loops if isinstance(loop, ast.For)]
        taken = {target.id for target in targets if isinstance(target, ast.Name)}
        named = any(isinstance(size, ast.Name) and size.id in taken for size in argument.args)
        return named or any(map(changes.is_number, argument.args))
    return isinstance(argument, ast.Name) and _grows_by_cat(argument.id, changes, survey)


def _grows_by_cat(name: str, changes: Changes, survey: Survey) -> bool:
    """True if the loop binds a name only once: to ``torch.cat([name, …])`` or to a tensor of a changing size."""
    loop = changes.loop
    if loop is None:
        return False
    bound = survey.bound_in(name, changes.scope, loop)
    if len(bound) != 1 or not isinstance(bound[0].value, ast.Call):
        return False
    value = bound[0].value
    dotted = survey.index.dotted(value.func)
    if dotted in ("torch.cat", "torch.concat", "torch.hstack", "torch.vstack") and value.args:
        parts = value.args[0].elts if isinstance(value.args[0], ast.List | ast.Tuple) else []
        return len(parts) > 1 and any(isinstance(p, ast.Name) and p.id == name for p in parts)
    return dotted in _MADE_WITH_SIZE and any(changes.is_number(size) for size in value.args)


def _grows(name: str, loop: Loop, use: Use, survey: Survey) -> str | None:
    """``list`` or ``dict`` for a container made before the loop that only grows in it, ``object`` if it is in one."""
    scope = use.step.scope
    before = survey.bound_before(name, scope, loop)
    rebound = [b for b in survey.bound_in(name, scope, loop) if not isinstance(b.statement, ast.AugAssign)]
    if before is None or rebound:
        return None
    made = before.value
    kinds = {ast.List: "list", ast.Dict: "dict"}
    kind = survey.index.dotted(made.func) if isinstance(made, ast.Call) else kinds.get(type(made))
    if kind is None or kind not in kinds.values():
        return "object" if growing_lists(survey.index.class_named(kind or "")) else None
    effects = {_grows_by(node, name, kind) for node in walk(loop)}
    return kind if True in effects and False not in effects else None


def growing_lists(made: ClassInfo | None) -> set[str]:
    """The attributes with a list that ``__init__`` makes, methods append to, and nothing in the file empties."""
    start = made.methods.get("__init__") if made is not None else None
    # A base in another file may empty it.
    is_whole = made is None or all(b in made.index.classes or b.startswith("torch.nn.") for b in made.bases)
    first = set(start.own_nodes) if start is not None and is_whole else set()
    stored = [n for n in first if isinstance(n, ast.Assign | ast.AnnAssign) and isinstance(n.value, ast.List)]
    lists = {getattr(t, "attr", "") for n in stored for t in (n.targets if isinstance(n, ast.Assign) else [n.target])}
    if made is None or not lists:
        return set()
    own = set(walk(made.node))
    nodes = [n for n in walk(made.index.tree) if n in own or not is_name(getattr(n, "value", n), "self")]
    changed = [n.value for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Del)]
    changed += [n for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and n not in first]
    known = set(nodes)
    called = [n for n in nodes if isinstance(n, ast.Attribute) and n.value in known]
    changed += [n.value for n in called if n.attr in _SHRINKING]
    grown = {getattr(n.value, "attr", "") for n in called if n.attr == "append"}
    return (lists & grown) - {getattr(n, "attr", "") for n in changed}


def _grows_by(node: ast.AST, name: str, kind: str) -> bool | None:
    """True if a node makes the container with a name longer, False if it makes it shorter."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_name(node.func.value, name):
        return True if node.func.attr in _GROWING else False if node.func.attr in _SHRINKING else None
    if isinstance(node, ast.Assign) and kind == "dict":
        keyed = [t for t in node.targets if isinstance(t, ast.Subscript) and is_name(t.value, name)]
        return True if any(not isinstance(t.slice, ast.Constant) for t in keyed) else None
    if isinstance(node, ast.Delete) and reads(node, name):
        return False
    return True if isinstance(node, ast.AugAssign) and is_name(node.target, name) else None
