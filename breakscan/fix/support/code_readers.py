"""What reads the code of a function instead of calling it: ``inspect.getsource``, ``torch.jit.script``."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.decorators import unplain_decorator
from breakscan.fix.support.import_names import import_name, imported_names, is_within
from breakscan.fix.support.names import read
from breakscan.fix.support.walking import findall, nodes_of
from breakscan.rulebook.torch_facts.not_measured import READS_CODE

MOST_KEPT = 16
"""For how many files it is kept what reads code."""

_OF_PYTHON = frozenset(
    {
        *("inspect.currentframe", "inspect.findsource", "inspect.getclosurevars", "inspect.getsource"),
        *("inspect.getsourcelines", "inspect.stack", "inspect.trace", "sys._getframe", "sys.setprofile"),
        *("sys.settrace", "dis", "linecache", "types.CodeType", "types.FunctionType"),
    }
)
_ATTRIBUTES = frozenset({"__code__", "f_lineno", "f_locals", "tb_lineno", "co_code"})
_OF_VARIABLES = m.Call(
    m.Name("locals") | m.Name("vars") | m.Name("dir"), args=[]
) | m.Call(m.Name("eval") | m.Name("exec"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Reader:
    """``names`` are the functions and classes of the file whose code is read; None if it is not known which."""

    code: str
    names: frozenset[str] | None


def reader_of_code(context: RewriteContext) -> str | None:
    """The code that may read the code around the site; None if there is none."""
    around = [one for one in context.around() if isinstance(one, cst.FunctionDef | cst.ClassDef)]
    for one in around:
        if (decorator := unplain_decorator(context, one)) is not None:
            return context.code(decorator)
    functions = [one for one in around if isinstance(one, cst.FunctionDef)]
    if functions and (found := findall(functions[-1], _OF_VARIABLES)):
        return context.code(found[0])
    top = {one.name.value for one in around[-1:]}
    for reader in _readers(context.tree.module):
        if reader.names is None or reader.names & top:
            return reader.code
    return None


@lru_cache(maxsize=MOST_KEPT)
def _readers(module: cst.Module) -> tuple[_Reader, ...]:
    found: list[_Reader] = []
    defined = {one.name.value: one for one in module.body if isinstance(one, cst.FunctionDef | cst.ClassDef)}
    for one in nodes_of(module, cst.Call, cst.Attribute, cst.SimpleString, cst.FunctionDef, cst.ClassDef):
        if isinstance(one, cst.Call) and _reads(module, one.func):
            found.append(_Reader(module.code_for_node(one.func), _meant(module, defined, one.args)))
        elif isinstance(one, cst.Attribute) and one.attr.value in _ATTRIBUTES:
            found.append(_Reader(module.code_for_node(one), _meant(module, defined, [one.value])))
        elif isinstance(one, cst.SimpleString) and one.value.strip("'\"") in _ATTRIBUTES:
            found.append(_Reader(one.value, None))
        elif isinstance(one, cst.FunctionDef | cst.ClassDef):
            for decorator in one.decorators:
                if _reads(module, decorator.decorator):
                    code = module.code_for_node(decorator.decorator)
                    found.append(_Reader(code, _reached(defined, [one.name.value, *read(one)])))
        if isinstance(one, cst.ClassDef) and any(_reads(module, base.value) for base in one.bases):
            found.append(_Reader(one.name.value, None))
    return tuple(found)


def _reads(module: cst.Module, node: cst.BaseExpression) -> bool:
    name = import_name(module, node)
    return name is not None and is_within(name, (*_OF_PYTHON, *READS_CODE))


def _meant(
    module: cst.Module, defined: Mapping[str, cst.CSTNode], nodes: Iterable[cst.CSTNode]
) -> frozenset[str] | None:
    """The functions and classes that some expressions name; None if they name anything else of the file."""
    given = list(nodes)
    known = {*defined, *imported_names(module), *dir(builtins)}
    if not given or not all(name in known for name in read(given)):
        return None
    return _reached(defined, read(given))


def _reached(defined: Mapping[str, cst.CSTNode], names: Iterable[str]) -> frozenset[str]:
    """The functions and classes of a file with some names, and those that their code names."""
    found = [name for name in dict.fromkeys(names) if name in defined]
    for name in found:
        found += [one for one in read(defined[name]) if one in defined and one not in found]
    return frozenset(found)
