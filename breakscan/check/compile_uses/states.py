"""State that changes between calls of compiled code: Python's, which it reads, and the global states of torch."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from breakscan.check.compile_uses.arguments import ArgumentChange, Changes, growing_lists, parameter_of
from breakscan.check.compile_uses.uses import Found, Scope, Step, Survey, Target, Use, owner_of
from breakscan.check.interpreter.signatures import State
from breakscan.check.interpreter.values import Module, Size, instance_of
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.check.project.roots import Method
from breakscan.model.words import grouped
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import Loop, form_of_test, is_name, walk


def changing_attributes(survey: Survey) -> Iterator[Found]:
    """``model.step = i`` in the loop that calls the compiled model, where its class reads ``self.step``."""
    for step in survey.steps:
        statement = step.statement
        if not step.loops or not isinstance(statement, ast.Assign | ast.AugAssign):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            continue
        changes = Changes(survey, step)
        counts = isinstance(statement, ast.AugAssign) and type(getattr(statement.value, "value", None)) is int
        if not counts and changes.of(statement.value) is not ArgumentChange.INT:
            continue
        for use in _uses_of(survey, target.value.id, step):
            if _reads(survey, use.compiled.target, target.attr):
                yield Found(EventKind.STORE, target, use.step.scope.info, "changing-attribute", target.attr)
                break


def _reads(survey: Survey, target: Target | None, attribute: str) -> bool:
    forward = survey.project.method(owner, "forward") if (owner := owner_of(target)) else None
    return forward is not None and reads_attribute(forward, attribute)


def reads_attribute(method: FunctionInfo, attribute: str) -> bool:
    used = (node for node in method.own_nodes if isinstance(node, ast.Attribute) and node.attr == attribute)
    return any(isinstance(node.ctx, ast.Load) for node in used)


def _stored(node: ast.AST, info: FunctionInfo, form: str, name: str) -> Found:
    """A change of state in compiled code."""
    return Found(EventKind.STORE, node, info, form, name, in_region=True)


def growing_attributes(index: ModuleIndex, compiled: Iterable[FunctionInfo]) -> Iterator[Found]:
    """``self.history.append(x)`` in compiled code, on a list that ``__init__`` makes and nothing empties."""
    for info in compiled if ".append(" in index.module.text else ():
        if info.index is not index or info.name == "__init__" or info.owner is None:
            continue
        lists = growing_lists(info.owner) if isinstance(instance_of(info.owner), Module) else ()
        for node in info.own_nodes if lists else ():
            match node:
                case ast.Call(ast.Attribute(ast.Attribute(ast.Name("self"), name), "append")) if name in lists:
                    yield _stored(node, info, "growing-attribute", f"self.{name}")


def counted_entries(index: ModuleIndex, compiled: Iterable[FunctionInfo]) -> Iterator[Found]:
    """``state["step"] += 1`` in compiled code, on a parameter whose entry starts as a number in the file."""
    for info in compiled if _COUNTS_ENTRY.search(index.module.text) else ():
        given = {argument.arg for argument in walk(info.node.args) if isinstance(argument, ast.arg)}
        for node in info.own_nodes if info.index is index else ():
            if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Subscript):
                continue
            held, key = node.target.value, node.target.slice
            of_parameter = isinstance(held, ast.Name) and held.id in given and isinstance(node.value, ast.Constant)
            if of_parameter and isinstance(key, ast.Constant) and _starts_as_number(index, key.value):
                yield _stored(node.target, info, "counted-entry", ast.unparse(node.target))


_COUNTS_ENTRY = re.compile(r"\][\s\\]*[-+*/%&|^@<>]{1,2}=")


def _starts_as_number(index: ModuleIndex, key: object) -> bool:
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) in (int, float)
        and any(isinstance(t, ast.Subscript) and getattr(t.slice, "value", None) == key for t in node.targets)
        for node in walk(index.tree)
    )


_KEEPS_FLOATS = frozenset({"min", "max", "abs", "float"})
_Number = type[int] | type[float]


def float_updates(index: ModuleIndex, compiled: Iterable[FunctionInfo]) -> Iterator[Found]:
    """``self.scale *= 0.5`` in compiled code, on an attribute or a global that starts as a number and that other
    arithmetic reads."""
    for info in compiled:
        if info.index is not index or info.name == "__init__":
            continue
        declares = info.own_nodes if "global " in index.module.text else ()
        declared = frozenset(name for n in declares if isinstance(n, ast.Global) for name in n.names)
        for node in info.own_nodes if declared or info.own_attributes else ():
            if isinstance(node, ast.Assign | ast.AugAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                readers = _readers(info, target, declared)
                if readers and _makes_float(node, target, info) and any(_computes_with(r, target) for r in readers):
                    yield _stored(node, info, "float-update", ast.unparse(target))


def _readers(info: FunctionInfo, target: ast.expr, declared: frozenset[str]) -> Sequence[FunctionInfo]:
    """The functions that read what is assigned: the methods of the class, or for a global the function itself."""
    if isinstance(target, ast.Name):
        return [info] if target.id in declared else []
    if info.owner is None or info.first_parameter is None or not isinstance(target, ast.Attribute):
        return []
    return list(info.owner.methods.values()) if is_name(target.value, info.first_parameter) else []


def _makes_float(node: ast.Assign | ast.AugAssign, target: ast.expr, info: FunctionInfo) -> bool:
    """True if the new value is a float that is computed from the old one and other numbers."""
    kinds = _start_of(info, target), _kind(node.value, info)
    if isinstance(node, ast.AugAssign):
        return None not in kinds and (float in kinds or isinstance(node.op, ast.Div))
    parts = (ast.unparse(part) for part in walk(node.value) if isinstance(part, ast.Name | ast.Attribute))
    reads_place = isinstance(node.value, ast.BinOp | ast.Call) and ast.unparse(target) in parts
    return reads_place and None not in kinds and float in kinds


def _kind(node: ast.expr, info: FunctionInfo) -> _Number | None:
    """The type of an expression that is Python arithmetic on numbers alone."""
    match node:
        case ast.Constant():
            return _number(node, None)
        case ast.Name() | ast.Attribute():
            return _start_of(info, node)
        case ast.UnaryOp():
            operands = [node.operand]
        case ast.BinOp():
            operands = [node.left, node.right]
        case ast.Call() if info.index.dotted(node.func) in _KEEPS_FLOATS and not node.keywords:
            operands = node.args
        case _:
            return None
    divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return _joined({_kind(operand, info) for operand in operands} | ({float} if divides else set()))


def _joined(kinds: set[_Number | None]) -> _Number | None:
    return None if None in kinds or not kinds else float if float in kinds else int


def _start_of(info: FunctionInfo, place: ast.expr) -> _Number | None:
    """The type of the number that an attribute or a global holds before the first call; None if it may hold another."""
    starts: set[_Number | None] = set()
    if isinstance(place, ast.Name):
        starts = {_number(value, None) for value in _assigned(info.index.tree.body, place.id)}
    elif isinstance(place, ast.Attribute) and info.owner is not None:
        made = info.owner.methods.get("__init__")
        starts = {_number(value, None) for value in _assigned(info.owner.node.body, place.attr)}
        if made is not None:
            starts |= {_number(value, made) for value in _assigned(made.own_nodes, ast.unparse(place))}
    return _joined(starts)


def _assigned(nodes: Iterable[ast.AST], place: str) -> Iterator[ast.expr | None]:
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and _sets(node, place):
            yield node.value


def _number(node: ast.expr | None, made: FunctionInfo | None) -> _Number | None:
    """The type of a number as it is written, or of a parameter of ``__init__`` by its annotation or default."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float if type(node.value) is float else int
    if made is None or not isinstance(node, ast.Name):
        return None
    annotation = getattr(made.argument(node.id), "annotation", None)
    if isinstance(annotation, ast.Name):
        return {"float": float, "int": int}.get(annotation.id)
    return _number(made.defaults.get(node.id), None)


def _computes_with(reader: FunctionInfo, place: ast.expr) -> bool:
    """True if arithmetic reads the place, other than for its own updates.  A number that nothing is computed with stays
    constant in the graph, so that each value compiles anew."""
    text = ast.unparse(place)
    own = {part for node in reader.own_nodes if _sets(node, text) for part in walk(node)}
    for node in reader.own_nodes:
        if isinstance(node, ast.BinOp) and node not in own:
            if any(ast.unparse(side) == text for side in (node.left, node.right)):
                return True
        elif isinstance(node, ast.AugAssign) and node not in own and ast.unparse(node.value) == text:
            return True
    return False


def _sets(node: ast.AST, place: str) -> bool:
    if isinstance(node, ast.Assign):
        return place in map(ast.unparse, node.targets)
    return isinstance(node, ast.AnnAssign | ast.AugAssign) and ast.unparse(node.target) == place


def changing_keys(survey: Survey) -> Iterator[Found]:
    """``model.options.update(…)`` and ``model.options.pop(…)`` in branches of the loop that calls the compiled model,
    where its class reads ``self.options``."""
    effects: dict[tuple[str, str, Loop], list[bool]] = {}
    for call, step in survey.calls:
        match call.func:
            case ast.Attribute(ast.Attribute(ast.Name(name), attribute) as held, method) if step.loops and step.arms:
                known = effects.setdefault((name, attribute, step.loops[0]), [])
                if method not in _ADDS_KEYS:
                    continue
                known.append(_ADDS_KEYS[method])
                if len(set(known)) == 2 and known.count(known[-1]) == 1:
                    uses = _uses_of(survey, name, step)
                    use = next((one for one in uses if _reads(survey, one.compiled.target, attribute)), None)
                    if use is not None:
                        yield Found(EventKind.STORE, held, use.step.scope.info, "changing-keys", ast.unparse(held))


_ADDS_KEYS = {"update": True, "setdefault": True, "pop": False, "clear": False, "popitem": False}


def _uses_of(survey: Survey, name: str, step: Step) -> Iterator[Use]:
    """The calls of a compiled module that has this name, in the outermost loop of a statement."""
    for use in survey.uses:
        source = use.compiled.source
        named = (use.call.func, source) if source is not None else (use.call.func,)
        if any(is_name(n, name) for n in named) and use.step.loops[:1] == step.loops[:1]:
            yield use


def differing_instances(survey: Survey) -> Iterator[Found]:
    """Calls that make objects in a loop, with another number or text in an attribute that the compiled code reads."""
    apart = dict(survey.compiled_apart())
    for call, step in survey.calls if apart else ():
        owner = survey.index.class_named(survey.index.dotted(call.func) or "")
        start = survey.project.method(owner, "__init__") if owner in apart else None
        if owner is None or start is None:
            continue
        changes = Changes(survey, step)
        for node in walk(step.statement):
            if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp) and call in set(walk(node)):
                for part in node.generators:
                    changes.add_head(part.target, part.iter)
        for argument in (*call.args, *(k.value for k in call.keywords)):
            name = parameter_of(call, argument, start.node, True) if changes.of(argument) else None
            stored = [n for n in start.own_nodes if name and isinstance(n, ast.Assign) and is_name(n.value, name)]
            for target in (target for node in stored for target in node.targets if isinstance(target, ast.Attribute)):
                if is_name(target.value, "self") and reads_attribute(apart[owner], target.attr):
                    name = f"self.{target.attr}"
                    yield Found(EventKind.STORE, call, step.scope.info, "differs-by-instance", name)


def size_branches(
    index: ModuleIndex, compiled: Mapping[FunctionInfo, State], lines: Collection[int]
) -> Iterator[Found]:
    """Branches on whether a size is above or below a number, in what the calls at some lines compile."""
    for info, state in compiled.items():
        region = state.region
        if info.index is not index or region is None or region.line not in lines:
            continue
        sizes = {name for name, value in state.parameters.items() if isinstance(value, Size)}
        made = [n for n in info.own_nodes if isinstance(n, ast.Assign) and _is_size(n.value, sizes)]
        sizes |= {target.id for node in made for target in node.targets if isinstance(target, ast.Name)}
        for node in info.own_nodes:
            if not isinstance(node, ast.If | ast.IfExp) or not isinstance(test := node.test, ast.Compare):
                continue
            if isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                others = [side for side in (test.left, test.comparators[0]) if not _is_size(side, sizes)]
                # Dynamo takes each size of 0 and 1 apart in any case.
                named = [side for side in others if isinstance(side, ast.Name | ast.Constant)]
                limits = [side for side in named if getattr(side, "value", 2) not in (0, 1)]
                if len(others) == len(limits) == 1 and form_of_test(node) != "guard":
                    yield _stored(test, info, "size-branch", ast.unparse(test))


def _is_size(node: ast.expr, names: Collection[str]) -> bool:
    """``x.shape[k]``, ``x.size(k)``, or a name for one."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "size" and bool(node.args)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Name) and node.id in names


_GRAD = {
    "torch.no_grad": "no_grad",
    "torch.autograd.no_grad": "no_grad",
    "torch.inference_mode": "inference_mode",
    "torch.enable_grad": "grad",
}
_AUTOCAST = frozenset({"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
_TRAINS = ("backward", "autograd", "optim")


def switched_state(survey: Survey) -> Iterator[Found]:
    """Calls under another grad mode or autocast than an earlier call."""
    by_scope = grouped(((use.compiled, use.step.scope), use) for use in survey.uses)
    for (compiled, scope), uses in by_scope.items():
        target = compiled.target.info if isinstance(compiled.target, Method) else compiled.target
        function = target.node if isinstance(target, FunctionInfo) else None
        # A decorator above torch.compile makes a wrapper around the compiled function.
        if not isinstance(function, ast.FunctionDef) or function.decorator_list[:1] in ([], [compiled.node]):
            yield from _contexts(survey, scope, uses)


def _contexts(survey: Survey, scope: Scope, uses: list[Use]) -> Iterator[Found]:
    inside = (call.func for call, step in survey.calls if step.contexts)
    if scope.info is not None and any(is_name(func, scope.info.name) for func in inside):
        return  # the `with` may set a state that the function does not set
    trains = any(word in survey.text for word in _TRAINS)
    seen: list[tuple[str, bool]] = []
    for use in uses:
        state = _state(survey, use)
        if state is None or state in seen:
            continue
        grads = [grad for grad, autocast in seen if autocast == state[1]]
        if any(grad == state[0] for grad, _ in seen):
            yield Found(EventKind.SWITCH, use.call, scope.info, "mixed-autocast", "autocast")
        # One version with gradients for training and one without for evaluation is intended.
        elif grads and (not trains or "grad" not in (state[0], *grads)):
            yield Found(EventKind.SWITCH, use.call, scope.info, "mixed-grad", "grad mode")
        seen.append(state)


def _state(survey: Survey, use: Use) -> tuple[str, bool] | None:
    """Grad mode and autocast at a call, as far as its function sets them; None if a context manager is not known."""
    grad, autocast = "grad", False
    node = use.step.scope.node
    decorators = [] if isinstance(node, ast.Module) else node.decorator_list
    for context in (*decorators, *use.step.contexts):
        if isinstance(context, ast.Name):
            bindings = survey.bindings_of(context.id, use.step.scope)
            if len(bindings) != 1 or bindings[0].value is None:
                return None
            context = bindings[0].value
        name = survey.index.dotted(context.func if isinstance(context, ast.Call) else context)
        if name in _GRAD:
            grad = _GRAD[name]
        elif name in _AUTOCAST and isinstance(context, ast.Call):
            enabled = next((k.value for k in context.keywords if k.arg == "enabled"), ast.Constant(True))
            if not isinstance(enabled, ast.Constant):
                return None
            autocast = bool(enabled.value)
        elif name is None or not name.startswith(("torch.profiler", "torch.cuda.device", "torch.cuda.stream", "open")):
            return None
    return grad, autocast
