"""``@torch.compiler.disable`` on a function that compiles → the function without it."""

import libcst as cst

from breakscan.fix.result import assumes
from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.walking import findall


def rewrite(context: RewriteContext) -> Edit:
    """The function that is called at the site, without the decorator."""
    called = context.node.func if isinstance(context.node, cst.Call) else context.node
    name = context.plain(called).rpartition(".")[2]
    found = [cst.ensure_type(one, cst.FunctionDef) for one in findall(context.tree.module, m.FunctionDef(m.Name(name)))]
    marks = [mark for one in found for mark in one.decorators]
    made = [mark.decorator.func if isinstance(mark.decorator, cst.Call) else mark.decorator for mark in marks]
    marks = [mark for mark, one in zip(marks, made, strict=True) if context.plain(one) in _DISABLE]
    if len(found) != 1 or len(marks) != 1:
        raise OtherForm(f"`{name}` is not disabled in this file")
    if isinstance(marks[0].decorator, cst.Call) and any(m.matches(one, _REASON) for one in marks[0].decorator.args):
        raise Declined(f"`{name}` is disabled for a reason that the code states")
    if culprits := findall(found[0].body, _READS):
        raise Declined(f"`{context.plain(culprits[0])}` in `{name}` breaks the graph as well")
    if culprits := findall(found[0].body, _ADDS):
        raise Declined(f"`{context.plain(culprits[0])}` in `{name}` keeps more with each call: each would be compiled")
    return Edit({marks[0]: None}, [assumes(f"`{name}` must compile: what it was disabled for must be gone")])


_READS = m.Attribute(attr=m.Name(m.MatchRegex("item|tolist|numpy|nonzero|unique"))) | m.Name("print") | m.Name("np")
"""Code that mostly breaks the graph: check knows no values in a disabled function."""
_ADDS = m.Attribute(value=m.Attribute(), attr=m.Name(m.MatchRegex("append|appendleft|extend")))
_REASON = m.Arg(keyword=m.Name("reason"))
_DISABLE = ("torch.compiler.disable", "torch._dynamo.disable", "disable")
