"""Values that are tensors in some calls only, where ``isinstance(value, torch.Tensor)`` is asked first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import libcst as cst

from breakscan.fix.support.build import call, joined_and
from breakscan.fix.support.called import is_builtin
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined
from breakscan.fix.support.walking import code_children
from breakscan.model.facts import Fact, FileFacts, Source


def doubtful(context: RewriteContext, test: cst.BaseExpression) -> list[cst.Name]:
    """The names of a test, each once, that are tensors only under some condition."""
    found: dict[str, cst.Name] = {}
    for node in _names(test):
        if _is_doubtful(context, node):
            found.setdefault(node.value, node)
    return list(found.values())


def type_test(context: RewriteContext, names: Sequence[cst.Name]) -> cst.BaseExpression:
    """``isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)``."""
    if not is_builtin(context, "isinstance", context.node):
        raise Declined("`isinstance` may have another meaning in this file")
    asked = [call(cst.Name("isinstance"), cst.Name(one.value), context.imported("torch.Tensor")) for one in names]
    return joined_and(asked)


def as_tensors(context: RewriteContext, names: Sequence[cst.Name], within: cst.CSTNode) -> RewriteContext:
    """The context in which names are known to be tensors inside a node, and so is what is computed from them."""
    chosen = {one.value for one in names}
    values = dict(context.tree.facts.values)
    settled: list[cst.CSTNode] = []
    for node in _expressions(within):
        span = context.tree.span(node)
        known = values.get(span)
        inner = {one.value: one for one in _names(node)}
        if known is None or known.kind != "tensor" or not chosen & inner.keys():
            continue
        if all(name in chosen or not _is_doubtful(context, one) for name, one in inner.items()):
            certain = all(name in chosen or _is_certain(context, one) for name, one in inner.items())
            source = Source.INFERRED if certain else known.source
            values[span] = replace(known, optional=False, maybe_none=False, source=source)
            settled.append(node)
    tree = context.tree.with_facts(FileFacts(values, context.tree.facts.names))
    tree.contradicted = dict.fromkeys(settled, False)
    inner_context = RewriteContext(tree, context.finding, context.node, context.torch_version, context.others)
    inner_context.imports = context.imports
    return inner_context


def _known(context: RewriteContext, node: cst.CSTNode) -> Fact | None:
    return context.tree.facts.values.get(context.tree.span(node))


def _is_doubtful(context: RewriteContext, node: cst.Name) -> bool:
    known = _known(context, node)
    return known is not None and known.kind == "tensor" and (known.optional or context.is_contradicted(node))


def _is_certain(context: RewriteContext, node: cst.Name) -> bool:
    known = _known(context, node)
    return known is not None and (known.kind != "tensor" or known.certain)


def _names(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names that code reads."""
    if isinstance(node, cst.Name):
        yield node
    elif isinstance(node, cst.Attribute | cst.Arg):
        yield from _names(node.value)
    elif not isinstance(node, cst.Lambda | cst.BaseComp):
        for child in code_children(node):
            yield from _names(child)


def _expressions(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in code_children(node):
        if isinstance(child, cst.BaseExpression):
            yield child
        yield from _expressions(child)
