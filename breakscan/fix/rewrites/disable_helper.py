"""A loop, ``try`` or ``with`` that breaks → a helper under ``torch.compiler.disable``.

Dynamo cannot resume after a break in such a statement: it skips the whole function, and nothing of it is compiled.  If
the statement is moved into a disabled helper function, it costs one clean split: the code before and after it is
compiled.  The statement itself ran as plain Python before and still does, on the same objects, so values, side effects
and exceptions stay; only tracebacks and profiles show one more frame.

``recursive=False`` if the statement calls other Python code, which is then compiled separately, as before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import statements
from breakscan.fix.support.context import RewriteContext, Statement
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.flow import flow, loaded, stored
from breakscan.fix.support.names import written
from breakscan.fix.support.operators import taken_out
from breakscan.fix.support.walking import children, findall
from breakscan.model.findings import Confidence, Place, Verdict

RESUMABLE = frozenset(
    {
        *("torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.inference_mode", "torch.autocast"),
        *("torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast", "contextlib.nullcontext"),
        *("torch.profiler.record_function", "torch.autograd.profiler.record_function", "torch.profiler.profile"),
        *("torch.nn.attention.sdpa_kernel", "torch.autograd.grad_mode.no_grad"),
        "torch.autograd.graph.disable_saved_tensors_hooks",
    }
)
"""Context managers that Dynamo enters again after a break."""
SEES_ITS_FRAME = frozenset({"super", "locals", "vars", "dir", "eval", "exec", "__class__", "inspect", "_getframe"})
LOOKS_AT_FRAMES = frozenset({"stacklevel", "_getframe", "currentframe", "extract_stack", "format_stack", "print_stack"})
OTHER_PYTHON = ("torch.nn.", "torch.utils.checkpoint")
"""Functions of torch that call Python code of the program or receive it."""
TRACES_NOTHING = frozenset(
    {
        *("abs", "bool", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "print", "range"),
        *("reversed", "tuple", "zip"),
    }
)
"""Builtins that do not call other Python code."""
LINE_LENGTH = 120
MOST_NAMES = 8
"""A helper with more parameters would be harder to read than the loop."""
WORDS: tuple[tuple[type[cst.CSTNode] | tuple[type[cst.CSTNode], ...], str], ...] = (
    ((cst.For, cst.While), "loop"),
    ((cst.Try, cst.TryStar), "attempt"),
    (cst.With, "block"),
    (cst.SimpleStatementLine, "step"),
)


def rewrite(context: RewriteContext) -> Edit:
    """The outermost statement that prevents Dynamo from resuming, as a call of a helper that contains it."""
    _worth_it(context)
    function = context.function
    if any("script" in context.code(one.decorator) for one in function.decorators):
        raise Declined("`torch.jit.script` reads the code of the function")
    classes = _classes_around(context, function)
    part = _part(context, function)
    what = next(word for kind, word in WORDS if isinstance(part, kind))
    _movable(context, function, part, bool(classes), what)
    parsed, path = _parsed(context, function, part)
    moved = flow(parsed, path)
    if moved.unbound:
        raise Declined(f"`{moved.unbound[0]}` may have no value before or after the {what}")
    caught = written([one for one in findall(part, m.AsName()) if isinstance(context.parent(one), cst.ExceptHandler)])
    if gone := [one for one in caught if one in moved.gives]:
        raise Declined(f"`{gone[0]}` has no value after its `except`")
    _closures(parsed, path[-1][0][path[-1][1]], moved.bound_behind, what)
    if not _computes_outside(context, function, part):
        raise Declined(f"there are no tensor operations to compile outside the {what}")
    if len(moved.needs) > MOST_NAMES:
        raise Declined(f"the {what} needs {len(moved.needs)} variables from the code around it: use fewer")
    name = _name(context, function, part, classes, what)
    given = ", ".join(moved.needs)
    results = ", ".join(moved.gives)
    body: list[cst.BaseStatement] = [part.deep_clone().with_changes(leading_lines=())]
    if results:
        body += statements(f"return {results}")
    disable = context.code(context.imported("torch.compiler.disable"))
    if _calls_python(context, part):
        disable += "(recursive=False)"
    (header,) = statements(f"@{disable}\n{_wrapped(f'def {name}', given, 4)}: ...\n")
    helper = cst.ensure_type(header, cst.FunctionDef).with_changes(body=cst.IndentedBlock(body))
    target = f"{results} = " if results else ""
    (made,) = statements(_wrapped(target + name, given, context.tree.span(part)[1] - 1))
    lines = [line.deep_clone() for line in part.leading_lines]
    return Edit(
        {part: made.with_changes(leading_lines=lines)},
        above=[_with_blank_lines(helper)],
        takes_out=taken_out(context, part),
        keeps_operations=True,
    )


def _wrapped(head: str, arguments: str, more: int) -> str:
    """``head(arguments)``, over three lines if it is too long for one, with ``more`` additional columns."""
    if len(head) + len(arguments) + more + 2 > LINE_LENGTH:
        return f"{head}(\n    {arguments}\n)"
    return f"{head}({arguments})"


def _with_blank_lines(helper: cst.FunctionDef) -> cst.FunctionDef:
    return helper.with_changes(leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)])


def _worth_it(context: RewriteContext) -> None:
    finding = context.finding
    if context.needs_whole_graph:
        raise Declined("neither fullgraph=True nor torch.export allows code outside the graph")
    if finding.verdict is not Verdict.EAGER:
        raise Declined("the rest of the function is compiled, and a call that is not compiled breaks the graph as well")
    if finding.via is not None:
        raise Declined(f"the loop, `try` or `with` is around the call in `{finding.via}`: move the call out of it")
    if finding.confidence in (Confidence.CONDITIONAL, Confidence.POSSIBLE):
        raise Declined("the code breaks only in some calls, and a helper would split the graph in all of them")


def _classes_around(context: RewriteContext, function: cst.FunctionDef) -> list[str]:
    names: list[str] = []
    for one in context.around(function):
        if isinstance(one, cst.FunctionDef | cst.Lambda):
            raise Declined("the function is nested in another function")
        if isinstance(one, cst.ClassDef):
            names.insert(0, one.name.value)
    return names


def _part(context: RewriteContext, function: cst.FunctionDef) -> Statement:
    found: Statement | None = None
    for one in (context.node, *context.around()):
        if one is function:
            break
        if isinstance(one, cst.For | cst.While | cst.Try | cst.TryStar) or (
            isinstance(one, cst.With) and not all(_resumes(context, item.item) for item in one.items)
        ):
            found = one
    if found is None:
        found = context.line()
        if context.finding.place is not Place.PLAIN or m.matches(found, m.SimpleStatementLine([m.Return()])):
            raise Declined("no statement around this code can be moved")
    return found


def _resumes(context: RewriteContext, manager: cst.BaseExpression) -> bool:
    return isinstance(manager, cst.Call) and context.dotted(manager.func) in RESUMABLE


def _movable(context: RewriteContext, function: cst.FunctionDef, part: Statement, in_class: bool, what: str) -> None:
    if function.asynchronous is not None or findall(function, m.Yield() | m.Await()):
        raise Declined("the function is a generator or asynchronous")
    if findall(function, m.Global() | m.Nonlocal() | m.Del(target=m.Name() | m.Tuple())):
        raise Declined("the function uses `global`, `nonlocal` or `del`")
    if any(_own_return(context, part, one) for one in findall(part, m.Return())):
        raise Declined(f"the {what} contains a `return`")
    counting = _counting_frames(context.tree.module)
    for one in findall(part, m.Name()):
        name = cst.ensure_type(one, cst.Name).value
        if name in SEES_ITS_FRAME:
            raise Declined(f"`{name}` depends on the function in which it is used")
        if name == "stacklevel":
            raise Declined("`stacklevel` counts stack frames, and a helper adds one")
        if name in counting:
            raise Declined(f"`{name}` counts stack frames, and a helper adds one")
        if in_class and name.startswith("__") and not name.endswith("__"):
            raise Declined(f"`{name}` has a different meaning outside its class")
    if not any(
        name.evaluated_name.split(".")[0] == "torch" if isinstance(small, cst.Import) else _from_torch(small)
        for line in context.tree.module.body
        if isinstance(line, cst.SimpleStatementLine)
        for small in line.body
        if isinstance(small, cst.Import | cst.ImportFrom)
        for name in (small.names if isinstance(small, cst.Import) else [cst.ImportAlias(cst.Name("_"))])
    ):
        raise Declined("torch is not imported at the top of the file")


def _from_torch(node: cst.Import | cst.ImportFrom) -> bool:
    return isinstance(node, cst.ImportFrom) and m.matches(
        node, m.ImportFrom(relative=[], module=m.Name("torch") | m.Attribute(value=m.Name("torch")))
    )


@lru_cache(maxsize=1)
def _counting_frames(module: cst.Module) -> set[str]:
    """The functions of the file that look at the frames of their callers, themselves or by others of the file."""
    functions = [one for one in findall(module, m.FunctionDef()) if isinstance(one, cst.FunctionDef)]
    inside = [
        (one.name.value, {cst.ensure_type(n, cst.Name).value for n in findall(one.body, m.Name())}) for one in functions
    ]
    found: set[str] = set()
    while more := {name for name, names in inside if not names.isdisjoint(LOOKS_AT_FRAMES | found)} - found:
        found |= more
    return found


def _own_return(context: RewriteContext, part: Statement, node: cst.CSTNode) -> bool:
    for one in context.around(node):
        if isinstance(one, cst.FunctionDef):
            return False
        if one is part:
            return True
    return False


def _parsed(
    context: RewriteContext, function: cst.FunctionDef, part: Statement
) -> tuple[ast.FunctionDef, list[tuple[Sequence[ast.stmt], int]]]:
    """The function as an `ast` node, and the blocks on the way to the part."""
    line = context.tree.span(function)[0]
    functions = (one for one in ast.walk(context.tree.syntax) if isinstance(one, ast.FunctionDef))
    found = next(one for one in functions if one.lineno == line)
    path = _path(found.body, context.tree.span(part)[0])
    if path is None:
        raise Declined("the statement is in a `match`")
    return found, path


def _path(block: Sequence[ast.stmt], line: int) -> list[tuple[Sequence[ast.stmt], int]] | None:
    for position, one in enumerate(block):
        if one.lineno == line:
            return [(block, position)]
        if one.lineno < line <= (one.end_lineno or line) and isinstance(one, ast.If | ast.With):
            for inner in (one.body, one.orelse) if isinstance(one, ast.If) else (one.body,):
                if (below := _path(inner, line)) is not None:
                    return [(block, position), *below]
    return None


def _closures(function: ast.FunctionDef, part: ast.stmt, bound_behind: frozenset[str], what: str) -> None:
    """Declines if an inner function would no longer share a variable with the code around it."""
    inside = set(ast.walk(part))
    bound_inside = stored(part)
    for one in ast.walk(function):
        if one is not function and isinstance(one, ast.Lambda | ast.FunctionDef | ast.GeneratorExp):
            changed = bound_behind if one in inside else bound_inside
            if shared := [name for name in loaded(one) if name in changed]:
                raise Declined(f"an inner function shares the variable `{shared[0]}` with the {what}")


def _computes_outside(context: RewriteContext, function: cst.FunctionDef, part: Statement) -> bool:
    return any(
        context.fact(node).is_tensor or (isinstance(node, cst.Call) and context.fact(node.func).kind == "module")
        for node in _expressions(function.body, part)
    )


def _expressions(node: cst.CSTNode, part: Statement) -> Iterator[cst.CSTNode]:
    for child in children(node):
        if child is not part:
            if isinstance(child, cst.Call | cst.BinaryOperation | cst.UnaryOperation | cst.Subscript):
                yield child
            yield from _expressions(child, part)


def _calls_python(context: RewriteContext, part: Statement) -> bool:
    """Whether code outside torch may run in a part, which Dynamo would compile separately."""
    return any(not _is_plain(context, cst.ensure_type(one, cst.Call)) for one in findall(part, m.Call()))


def _is_plain(context: RewriteContext, node: cst.Call) -> bool:
    name = context.dotted(node.func) or ""
    if name.startswith("torch."):
        return name.startswith("torch.nn.functional.") or not name.startswith(OTHER_PYTHON)
    builtin = isinstance(node.func, cst.Name) and node.func.value in TRACES_NOTHING
    return builtin or context.method(node) is not None


def _name(context: RewriteContext, function: cst.FunctionDef, part: Statement, classes: list[str], what: str) -> str:
    """``_forward_loop``, with the class if another function has that name, and a number if there are several."""
    own = function.name.value
    alike = [one for one in findall(context.tree.module, m.FunctionDef()) if _named(one, own)]
    if len([one for one in alike if _class_of(context, one) == classes]) > 1:
        raise Declined(f"several functions are named `{own}`")
    kinds = next(kind for kind, word in WORDS if word == what)
    several = list(_compound(function.body, kinds))
    if what == "step":
        several = [one for one in several if _called(one) == _called(part)]
    words = [*([_snake(one) for one in classes] if len(alike) > 1 else []), own.strip("_")]
    words.append((_called(part) or what) if what == "step" else what)
    if len(several) > 1 and part in several:
        words.append(str(several.index(part) + 1))
    taken = {cst.ensure_type(one, cst.Name).value for one in findall(context.tree.module, m.Name())}
    name = "_" + "_".join(words)
    if name in taken:
        raise Declined(f"the name `{name}` is already used")
    return name


def _called(part: cst.CSTNode) -> str:
    """The last name of the first function that a statement calls: ``lstm`` of ``out, _ = self.lstm(x)``."""
    for one in findall(part, m.Call()):
        func = cst.ensure_type(one, cst.Call).func
        if isinstance(name := func.attr if isinstance(func, cst.Attribute) else func, cst.Name):
            return name.value.strip("_")
    return ""


def _named(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.FunctionDef) and node.name.value == name


def _class_of(context: RewriteContext, function: cst.CSTNode) -> list[str]:
    return [one.name.value for one in context.around(function) if isinstance(one, cst.ClassDef)][::-1]


def _snake(name: str) -> str:
    made = "".join(
        f"_{letter.lower()}" if i and letter.isupper() and not name[i - 1].isupper() else letter.lower()
        for i, letter in enumerate(name)
    )
    return made.strip("_")


def _compound(node: cst.CSTNode, kinds: type[cst.CSTNode] | tuple[type[cst.CSTNode], ...]) -> Iterator[cst.CSTNode]:
    """The statements of some types, without nested ones."""
    for child in children(node):
        if isinstance(child, kinds):
            yield child
        else:
            yield from _compound(child, kinds)
