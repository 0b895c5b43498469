"""Remedies: those that a rule knows for the code at hand, and those of ``remedies.toml``, by name.

Some depend on the uses of a value that the compiler does not know: on those that need it in Python, and on tests that
leave a loop."""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from breakscan.model.findings import Finding, Mode, Site, Verdict
from breakscan.model.remedy import NewLine, Remedy, RemedyKind, Setting
from breakscan.model.torch_versions import PINNED
from breakscan.model.words import grouped
from breakscan.rulebook.document import Rule
from breakscan.rulebook.torch_facts.table import KEEPS_DIMENSIONS, load_api
from breakscan.source.module import SourceModule
from breakscan.source.spans import nodes_around, span
from breakscan.source.toml_text import parse_toml
from breakscan.source.walking import Definition, push_children, root_of

_CAPTURES = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
"""Code in which Python needs the value breaks all the same, or fails."""
INTEGERS_OPEN = "allow_unspec_int_on_nn_module"
LEAVE_LOOP = "leave-loop"
NESTED = "nested_graph_breaks"
ASKS_FOR_NAMES = "BRK504"
"""With NESTED, torch 2.13 calls ``globals()`` in a caller of the function that asks, which may be another file's."""
DECIDE_OUTSIDE, COMPUTE_OUTSIDE, CALL_OUTSIDE = "decide-outside", "compute-outside", "call-outside"
ASSERT = "assert-in-graph"


@cache
def remedy_table() -> dict[str, Any]:
    """The kind, the text, the settings and the rewrites of each remedy, by name."""
    return parse_toml(Path(__file__).with_name("remedies.toml").read_text(encoding="utf-8"))


def remedy(name: str, write: NewLine | None = None, **facts: object) -> Remedy:
    """The remedy of that name, with the facts of the case."""
    entry = remedy_table()[name]
    # A damaged recording may name any.
    given = defaultdict[str, object](str, facts)
    settings = [Setting(*(part.format_map(given) for part in setting)) for setting in entry.get("settings", ())]
    text = entry["text"].format_map(given | {"setting": next(iter(settings), "")})
    # A number that is not known is said to be N.
    known = tuple(setting for setting in settings if setting.value != "N")
    return Remedy(RemedyKind(entry["kind"]), name, text, known, write, tuple(entry.get("rewrites", ())))


def remedies_at(rule: Rule, module: SourceModule, site: Site, *, returns: bool) -> tuple[str, ...]:
    """The names of remedies that only the code at a site decides on, for :func:`rule_remedies`, some with the line that
    decides; ``returns`` as of :func:`needed_at`."""
    if leaves_loop(module, site):
        return (LEAVE_LOOP,)
    line = line_of_record(module, site) if _CAPTURES[0] in rule.flags else None
    names = [] if line is None else [f"{CALL_OUTSIDE} {line}"]
    # Where no call of autograd keeps the graph from having it, its setting does not either.
    left_out = None if re.search(r"\b(?:backward|grad)\(", module.text) else "trace_autograd_ops"
    for name in (name for name in rule.flags if name in remedy_table() and name != left_out):
        is_sized = "shape" in name
        need = needed_at(module, site, returns=returns, sized=is_sized) if name in _CAPTURES else None
        if need is None:
            names.append(name)
        elif line := line_of_test(module, need):
            names.append(f"{DECIDE_OUTSIDE} {line}")
        elif not is_sized and (line := line_of_test(module, need, raises=True)):
            names.append(f"{ASSERT} {line}")
        elif not is_sized and isinstance(need, ast.Call) and isinstance(need.func, ast.Attribute):
            # A call in a module other than torch.
            names += [f"{COMPUTE_OUTSIDE} {need.lineno}"] if root_of(need.func) not in _OWN else []
    return tuple(names)


def rule_remedies(rule: Rule, mode: Mode, at_site: tuple[str, ...] = ()) -> tuple[Remedy, ...]:
    """The remedies of a rule, the best first.  ``at_site`` is what :func:`remedies_at` gives."""
    kind = RemedyKind.EDIT if rule.rewrites else RemedyKind.CONSTRUCT
    advice = rule.instead_exported if mode is Mode.EXPORT else None
    instead = Remedy(kind, rule.name, advice or rule.instead, rewrites=rule.rewrites)
    kept = at_site if mode is Mode.DEFAULT else () if mode.exports else (LEAVE_LOOP,)
    entries = [entry.partition(" ") for entry in at_site if entry in kept]
    others = [remedy(name, line=line) for name, _, line in entries if name in remedy_table()]
    if others and others[0].name in (LEAVE_LOOP, CALL_OUTSIDE, DECIDE_OUTSIDE, COMPUTE_OUTSIDE, ASSERT):
        # Python needs the value: what keeps it a tensor moves the break to that line.
        return (replace(others[0], rewrites=others[0].rewrites or rule.rewrites), *others[1:])
    return (instead, *others)


def finding_remedies(finding: Finding, rule: Rule | None) -> tuple[Remedy, ...]:
    """The remedies for a finding of ``check``, the best first."""
    raises = finding.mode is Mode.DEFAULT and finding.verdict is Verdict.RAISES
    return rule_remedies(rule, Mode.FULLGRAPH if raises else finding.mode, finding.remedies) if rule else ()


_PASSES_ON = {"int", "float", "max", "min", "abs", "round", "zip", "enumerate", "list", "tuple", "reversed"}
"""Builtins that take an unknown number, and whose result is unknown as well."""
_PARTS = {"tolist", "unbind", "split", "chunk", "tensor_split", "zip", "enumerate", "list", "tuple", "reversed"}
"""Functions that take a tensor apart: the number of parts is its size."""
_OWN = ("self", "cls", "super")
_TRACED = {"math.sqrt", "math.floor", "math.ceil", "np.arange", "np.zeros", "numpy.arange", "numpy.zeros"}
"""Functions that torch traces with an unknown number."""


def needed_at(module: SourceModule, site: Site, *, returns: bool, sized: bool) -> ast.AST | None:
    """The node at which Python itself needs the value that the code at a site reads from a tensor, or what is computed
    from it: a test, a number of rounds, a text, the choice of an object, a call; the module where that is in code that
    is not seen.  Values are followed through the functions of the file.  ``returns`` says that the function may return
    it: nothing that is compiled as well calls the function.  ``sized`` says that it is a tensor of unknown size."""
    around = [node for _, node in nodes_around(site, module)]
    whole = site.line, site.column, site.end_line, site.end_column
    at_site = [one for one in around if isinstance(one, ast.expr) and span(module, one) == whole]
    own = next((one for one in reversed(around) if isinstance(one, Definition)), None)
    uses = _uses(module.tree)
    left: list[_Value] = [(at_site[0], sized)] if at_site else []
    seen: set[_Value] = set()
    while left:
        value = left.pop()
        if value not in seen:
            seen.add(value)
            holders = uses.follow(*value, own if returns else None)
            if isinstance(holders, ast.AST):
                return holders
            left += holders
    return None if at_site else module.tree


def line_of_test(module: SourceModule, node: ast.AST, *, raises: bool = False) -> int | None:
    """The line of the ``if`` that has the node in its test, if it does more than raise, or does that alone."""
    parents = _uses(module.tree).parents
    child, parent = node, node if isinstance(node, ast.If | ast.IfExp) else parents.get(node)
    while isinstance(parent, ast.expr) and not isinstance(parent, ast.IfExp):
        child, parent = parent, parents.get(parent)
    is_test = isinstance(parent, ast.If | ast.IfExp) and (parent is node or child is parent.test)
    only_raises = isinstance(parent, ast.If) and isinstance(parent.body[-1], ast.Raise)
    return getattr(parent, "lineno", None) if is_test and only_raises is raises else None


def line_of_record(module: SourceModule, site: Site) -> int | None:
    """The line of the statement that prints the value at a site, or calls a method with it, as of a list or of a meter,
    if the code around it uses nothing else of the object than such calls."""
    around = [node for _, node in nodes_around(site, module)]
    statement = next((node for node in reversed(around) if isinstance(node, ast.stmt)), None)
    own = next((node for node in reversed(around) if isinstance(node, Definition)), None)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if own is None or not isinstance(call, ast.Call) or call.func in around:
        return None
    if not isinstance(call.func, ast.Attribute):
        return call.lineno if isinstance(call.func, ast.Name) and call.func.id == "print" else None
    owner, parents = call.func.value, _uses(module.tree).parents
    name = ast.unparse(owner)
    same = [one for one in ast.walk(own) if isinstance(one, ast.Name | ast.Attribute) and ast.unparse(one) == name]
    calls = [parents[parents[one]] for one in same]
    is_alone = all(isinstance(one, ast.Call) and isinstance(parents[one], ast.Expr) for one in calls)
    return call.lineno if same and is_alone and root_of(owner) != "torch" else None


def leaves_loop(module: SourceModule, site: Site) -> bool:
    """Return whether the code at a site is part of a test on which a loop is left, and nothing else depends."""
    around = [node for _, node in nodes_around(site, module)]
    begins = next((i for i in reversed(range(len(around))) if isinstance(around[i], Definition)), -1) + 1
    loops = [i for i, node in enumerate(around) if i >= begins and isinstance(node, ast.For | ast.While)]
    test = next((node for node in reversed(around) if isinstance(node, ast.stmt)), None)
    if not loops or not isinstance(test, ast.If) or test.test not in around or test.orelse:
        return False
    return all(isinstance(statement, ast.Break | ast.Return) for statement in test.body)


_Value = tuple[ast.expr, bool]
"""An expression, and whether it is a tensor of which only the size is not known."""


class _Uses:
    """The uses of values in a file."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        by_kind: dict[type[ast.AST], list[Any]] = {}
        nodes: list[ast.AST] = [tree]
        for one in nodes:
            by_kind.setdefault(one.__class__, []).append(one)
            first = len(nodes)
            push_children(nodes, one)
            for child in nodes[first:]:
                self.parents[child] = one
        self.functions = grouped((made.name, made) for made in by_kind.get(ast.FunctionDef, ()))
        self.reads: list[ast.Name] = [one for one in by_kind.get(ast.Name, ()) if one.ctx.__class__ is ast.Load]
        calls = ((self._callee(call), call) for call in by_kind.get(ast.Call, ()))
        self.calls: dict[ast.AST | None, list[ast.Call]] = grouped((callee, call) for callee, call in calls if callee)
        imported = [alias for one in by_kind.get(ast.Import, ()) for alias in one.names]
        names = {alias.asname or alias.name.partition(".")[0]: alias.name.partition(".")[0] for alias in imported}
        self.modules = {name for name, head in names.items() if head != "torch"}
        """The names of modules that are not torch's."""

    def follow(self, value: ast.expr, is_tensor: bool, own: ast.AST | None) -> ast.AST | list[_Value]:
        """The expressions that hold it from then on, or the node at which Python needs it.  What the function ``own``
        returns is not used in compiled code."""
        below: ast.AST = value
        child: ast.AST = value
        while (parent := self.parents.get(child)) is not None:
            if _asks(parent, child):
                return parent
            match parent:
                case ast.comprehension() | ast.For() | ast.AsyncFor() if child is parent.iter:
                    return parent if is_tensor else self._loads(parent.target, is_tensor)
                case ast.Attribute():
                    if is_tensor and parent.attr in _PARTS:
                        return parent
                    api = load_api(PINNED)  # all versions of torch are alike here
                    gives = api.attributes.get(parent.attr) or api.methods.get(parent.attr)
                    gives_number = gives in ("size", "python")
                    is_tensor = is_tensor and not gives_number
                    if not is_tensor and not gives_number:
                        return []
                case ast.Call() if child is not parent.func:
                    name = parent.func.id if isinstance(parent.func, ast.Name) else None
                    if callee := self._callee(parent):
                        return self._inside(callee, parent, child, is_tensor)
                    if root_of(parent.func) in {*_OWN, *self.modules} and ast.unparse(parent.func) not in _TRACED:
                        return parent
                    if name is not None and name not in _PASSES_ON:
                        return parent
                    called = parent.func.attr if isinstance(parent.func, ast.Attribute) else name or ""
                    if is_tensor and called in _PARTS:
                        return parent
                    whole = is_tensor and _is_whole(called, parent, len(parent.args))
                    if whole or (name is None and not is_tensor and root_of(parent.func) not in self.modules):
                        return []
                case ast.Call() if is_tensor and _is_whole(getattr(child, "attr", ""), parent, 1 + len(parent.args)):
                    return []
                case ast.Subscript() if child is parent.slice and not is_tensor:
                    return parent if root_of(parent.value) in _OWN or not isinstance(parent.value, ast.Name) else []
                case ast.Slice():
                    return []
                case ast.Return():
                    function = self._around(parent, ast.FunctionDef)
                    return [] if function is own else self._returned(function, child, below, is_tensor)
                case ast.Assign() | ast.AnnAssign() | ast.AugAssign() if child is parent.value:
                    return self._assigned(parent, child, is_tensor)
                case ast.stmt():
                    return []
            below, child = child, parent
        return []

    def _assigned(self, statement: ast.stmt, value: ast.AST, is_tensor: bool) -> ast.AST | list[_Value]:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
        held = []
        for target in targets:
            if any(isinstance(one, ast.Attribute) for one in ast.walk(target)):
                return statement
            if is_tensor and isinstance(target, ast.Tuple):
                results = _results(value)
                if results is None:
                    return statement
                held += [load for n, one in enumerate(target.elts) if n in results for load in self._loads(one, True)]
            else:
                held += self._loads(target, is_tensor)
        if self._around(statement, ast.For | ast.AsyncFor | ast.While):
            return held
        # What was read before is another value, unless a function inside reads it.
        function, line = self._around(statement, Definition), statement.lineno
        return [one for one in held if one[0].lineno >= line or self._around(one[0], Definition) is not function]

    def _returned(
        self, function: ast.AST | None, value: ast.AST, part: ast.AST, is_tensor: bool
    ) -> ast.AST | list[_Value]:
        """The calls of the function; of a part of what it returns, the names that get it there."""
        calls = self.calls.get(function, [])
        if not isinstance(value, ast.Tuple):
            return [(call, is_tensor) for call in calls] or self.tree
        number = next((n for n, one in enumerate(value.elts) if one is part), len(value.elts))
        held: list[_Value] = []
        for call in calls:
            target = getattr(self.parents[call], "targets", [None])[0]
            names = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == len(value.elts) else []
            if number >= len(names) or not isinstance(names[number], ast.Name):
                return call
            held += self._loads(names[number], is_tensor)
        return held if calls else self.tree

    def _inside(
        self, callee: ast.FunctionDef, call: ast.Call, given: ast.AST, is_tensor: bool
    ) -> ast.AST | list[_Value]:
        """The uses of an argument in a function of the file."""
        names = [one.arg for one in (*callee.args.posonlyargs, *callee.args.args)]
        names = names[isinstance(call.func, ast.Attribute) :]
        passed = zip(names, call.args, strict=False)
        name = given.arg if isinstance(given, ast.keyword) else next((key for key, one in passed if one is given), None)
        if name is None or any(isinstance(one, ast.Starred) for one in call.args):
            return call
        return [(one, is_tensor) for one in self._reads_of({name}, callee)]

    def _loads(self, target: ast.AST, is_tensor: bool) -> list[_Value]:
        names = {one.id for one in ast.walk(target) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        scope = self._around(target, Definition) or self.tree
        return [(one, is_tensor) for one in self._reads_of(names, scope)]

    def _reads_of(self, names: Collection[str], scope: ast.AST) -> list[ast.Name]:
        return [one for one in self.reads if one.id in names and scope in self._outwards(one)]

    def _callee(self, call: ast.Call) -> ast.FunctionDef | None:
        """The function or the method of the same class that is called, if it is the only one of its name."""
        match call.func:
            case ast.Name(id=name):
                holder: ast.AST | None = self.tree
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                holder = self._around(call, ast.ClassDef)
            case _:
                return None
        named = self.functions.get(name, [])
        is_there = len(named) == 1 and self.parents[named[0]] is holder and not named[0].decorator_list
        return named[0] if is_there else None

    def _around(self, node: ast.AST, kinds: Any) -> ast.AST | None:
        return next((parent for parent in self._outwards(node) if isinstance(parent, kinds)), None)

    def _outwards(self, node: ast.AST) -> Iterator[ast.AST]:
        while (parent := self.parents.get(node)) is not None:
            yield (node := parent)


_uses = lru_cache(maxsize=1)(_Uses)
"""Findings come file by file."""


def _results(value: ast.AST) -> set[int] | None:
    """Those of the tensors that a function returns whose size is not known; None if the value is a single tensor."""
    call = value if isinstance(value, ast.Call) else None
    name = getattr(call.func, "attr", "") if call else ""
    flags = {one.arg for one in call.keywords} if call else set()
    if name in ("unique", "unique_consecutive") and flags & {"return_inverse", "return_counts"}:
        return {0, 2} if "return_inverse" in flags else {0, 1}
    return set(range(8)) if name == "nonzero" and "as_tuple" in flags else None


def _is_whole(name: str, call: ast.Call, tensors: int) -> bool:
    """Return whether the result of the call has one element, whatever the sizes of that many tensors are."""
    return load_api(PINNED).is_whole(name, tensors) and not KEEPS_DIMENSIONS & {one.arg for one in call.keywords}


def _asks(parent: ast.AST, child: ast.AST) -> bool:
    """Return whether Python asks for the value of the child there."""
    match parent:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            return child is parent.test
        case ast.comprehension():
            return child in parent.ifs
        case ast.UnaryOp():
            return isinstance(parent.op, ast.Not)
        case ast.Dict():
            return child in parent.keys
        case ast.BoolOp() | ast.JoinedStr() | ast.FormattedValue() | ast.Raise() | ast.Match():
            return True
    return False
