"""A function that breaks at several lines → the same under ``@torch.compiler.disable``.

Each break splits the graph of the caller; a disabled function splits it only once.  Values, side effects and exceptions
stay.  What the function computes is no longer compiled, so it must not contain costly operations.  The planner tries it
for every graph break that no other rewrite removes."""

import builtins

import libcst as cst

from breakscan.fix.result import differs
from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import Declined, Edit, RewriteContext
from breakscan.fix.support.operators import called, what_costs
from breakscan.fix.support.walking import findall, nodes_of, written
from breakscan.model.findings import Confidence, Kind, Mode

FEWEST_BREAKS = 2
ENTRIES = frozenset({"forward", "__call__"})
_LIBRARY = frozenset(
    "collections copy datetime functools itertools json logging math numpy operator os pathlib random re string sys "
    "time torch traceback typing warnings".split()
)
_BUILTINS = frozenset(dir(builtins))


def rewrite(context: RewriteContext) -> Edit:
    """The decorator, nearest to the function."""
    if context.finding.mode is not Mode.DEFAULT:
        raise Declined("neither fullgraph=True nor torch.export allows code outside the graph")
    unsure = (Confidence.CONDITIONAL, Confidence.POSSIBLE)
    found = [one for one in context.others if one.kind is Kind.GRAPH_BREAK and one.confidence not in unsure]
    breaks = {one.site.line for one in found}
    if context.finding.site.line not in breaks or len(breaks) < FEWEST_BREAKS:
        raise Declined("the function breaks only once, and a call that is not compiled breaks the graph as well")
    function = context.function
    name = function.name.value
    region = context.finding.region
    starts = region is not None and region.entry == context.finding.function
    called_here = m.Call(func=m.Name(name) | m.Attribute(attr=m.Name(name)))
    if name in ENTRIES or (starts and not findall(context.tree.module, called_here)):
        raise Declined(f"`{name}` is the function that is compiled")
    if any(isinstance(one, cst.FunctionDef | cst.Lambda) for one in context.around(function)):
        raise Declined("the function is nested in another function")
    if function.asynchronous is not None or findall(function, m.Yield() | m.Await()):
        raise Declined("the function yields or awaits")
    for decorator in function.decorators:
        made = decorator.decorator
        named = made.func if isinstance(made, cst.Call) else made
        if "torch" in (context.dotted(named) or context.code(made)):
            raise Declined(f"the function is decorated with `@{context.code(decorator.decorator)}`")
    if (costly := what_costs(context, function.body)) is not None:
        raise Declined(f"`{costly}` would no longer be compiled")
    for call in nodes_of(function.body, cst.Call):
        if not _is_plain_call(context, call):
            runs = f"`{context.code(call.func)}` may run tensor operations, which would no longer be compiled"
            raise Declined(f"{runs}: move the break to a function")
    disable = cst.Decorator(context.imported("torch.compiler.disable"))
    disabled = function.with_changes(decorators=[*function.decorators, disable])
    return Edit({function: disabled}, [differs(f"`{name}` is no longer compiled")])


def _is_plain_call(context: RewriteContext, node: cst.Call) -> bool:
    """True if a call runs no code that could be compiled except one torch function, or Python's library."""
    function, method = called(context, node)
    if method is not None:
        return True
    if isinstance(node.func, cst.Name) and node.func.value in written(context.function):
        return False
    package, _, name = (function or "").partition(".")
    if package == "builtins":
        return name in _BUILTINS
    if function is not None and package in _LIBRARY:
        return function != "torch.compile" and not function.startswith(("torch.nn.modules", "torch.func"))
    owner = node.func.value if isinstance(node.func, cst.Attribute) else None
    return owner is not None and context.fact(owner).kind in ("constant", "container", "number", "shape", "drawn")
