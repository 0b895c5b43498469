"""The functions and modules that a file hands to the compiler, wherever they are defined."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache

from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo, FunctionInfo, GlobalName, ModuleIndex, decorator_names
from breakscan.model.findings import Mode, Region
from breakscan.rulebook.torch_facts.not_measured import RETURN_THE_MODULE
from breakscan.source.walking import is_name, own_nodes, reads, root_of, walk

COMPILE = "torch.compile"
EXPORT = "torch.export.export"
COMPILERS = frozenset({COMPILE, EXPORT, "torch._dynamo.optimize"})
PARTIAL = "functools.partial"
_WORDS = {name.rpartition(".")[2] for name in COMPILERS}
_MAY_COMPILE = {word: re.compile(rf"{word}(?<=\b{word})") for word in _WORDS}
"""Each begins with its letters: a search for those is many times as fast as one that begins with ``\\b``."""
_OPTIONS = frozenset({"fullgraph", "dynamic", "backend", "mode", "options", "disable"})
_HOLD = frozenset(
    "torch.nn.ModuleList torch.nn.ModuleDict torch.nn.Sequential torch.nn.DataParallel list tuple dict reversed "
    "enumerate zip iter next sorted copy.deepcopy torch.nn.parallel.DistributedDataParallel functools.partial "
    "torch.distributed.fsdp.FullyShardedDataParallel".split()
)
"""Calls whose result holds their arguments, or is one of them."""
_CONTAINERS = frozenset("torch.nn.ModuleList torch.nn.ModuleDict list tuple dict reversed enumerate zip iter".split())
_PASS_ON = RETURN_THE_MODULE | set("values items get pop unwrap_model".split())
_PARTS = frozenset({"children", "named_children"})
MOST_CALLS_DEEP = 3


Passed = tuple[tuple[str, ClassInfo | type[float]], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A function that the compiler is handed, and how.  ``receiver`` is the class whose instance it is a method of,
    which may have inherited it; ``compiled`` means that code passes it to the compiler.  ``mode`` is how
    that code compiles or exports it, None where it does not say.  ``given`` are the classes of the objects that it is
    called with, as far as all calls in sight show them; ``float`` for a number."""

    function: FunctionInfo
    region: Region
    receiver: ClassInfo | None = None
    compiled: bool = True
    mode: Mode | None = None
    given: Passed = ()


@dataclass(frozen=True, slots=True)
class _Type:
    """A class itself; of an instance, the class alone is known."""

    info: ClassInfo


@dataclass(frozen=True, slots=True)
class Method:
    """A method of an instance of ``receiver``."""

    info: FunctionInfo
    receiver: ClassInfo


@dataclass(frozen=True, slots=True)
class _Unknown:
    """It may be any module."""


_Named = ClassInfo | FunctionInfo | _Type | Method | _Unknown
_Given = tuple[tuple[str, tuple[_Named, ...]], ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """A function, or the top level of a file, and what its parameters are known to be."""

    index: ModuleIndex
    function: FunctionInfo | None = None
    given: _Given = ()


PathLine = str
"""The path and line of a call or function, ``train.py:41``."""


@dataclass(slots=True)
class CompileCalls:
    """The calls that compile, outside tests.  Those in ``name`` compile a function or a module that they name, or what
    a library makes; in ``known`` are all whose target is known.  ``given`` compile a parameter, which other files may
    know, ``any`` may compile any module, ``part`` a part of one.  ``decorated`` are functions that a decorator
    compiles."""

    name: set[PathLine] = field(default_factory=set)
    decorated: set[PathLine] = field(default_factory=set)
    known: set[PathLine] = field(default_factory=set)
    given: set[PathLine] = field(default_factory=set)
    any: set[PathLine] = field(default_factory=set)
    part: set[PathLine] = field(default_factory=set)

    def add(self, other: "CompileCalls") -> None:
        """Adds the calls of another file."""
        for one in fields(self):
            getattr(self, one.name).update(getattr(other, one.name))

    @property
    def unknown(self) -> set[PathLine]:
        """The calls whose target is unknown."""
        return self.any | (self.given - self.known)

    @property
    def name_all(self) -> bool:
        """True if most calls name what they compile, or decorators alone compile: then nothing else counts as compiled.
        One decorated helper does not show that nobody compiles the models."""
        is_open = len(self.unknown)
        return is_open <= len(self.name) if self.name else len(self.decorated) > 1 and not is_open


@dataclass(slots=True)
class Roots:
    """The entries of a file, and its calls that compile."""

    entries: list[Entry] = field(default_factory=list)
    calls: CompileCalls = field(default_factory=CompileCalls)


@lru_cache(maxsize=512)
def may_compile(index: ModuleIndex, words: str = " ".join(_WORDS)) -> bool:
    return any(_MAY_COMPILE[word].search(index.module.text) for word in words.split())


def is_compiler(index: ModuleIndex, decorator: ast.expr) -> bool:
    """True if a decorator is ``torch.compile``, with or without arguments, or a partial of it."""
    if not isinstance(decorator, ast.Call):
        return _compiles_all(index, index.dotted(decorator))
    name, given = index.dotted(decorator.func), decorator.args
    if name == PARTIAL and given:
        return index.dotted(given[0]) == COMPILE
    return not given and _compiles_all(index, name)


def _compiles_all(index: ModuleIndex, name: str | None) -> bool:
    """True for ``torch.compile``, and a function of the project that passes on to it whatever it is given."""
    info = index.function_named(name) if name and name != COMPILE and "compile" in name else None
    if info is None or info.node.args.vararg is None:
        return name == COMPILE
    calls = [call for call in info.own_calls if info.index.dotted(call.func) == COMPILE and call.args]
    rest = info.node.args.vararg.arg
    return any(isinstance(one := call.args[0], ast.Starred) and is_name(one.value, rest) for call in calls)


def find_roots(project: Project, index: ModuleIndex) -> Roots:
    """The functions and modules that a file compiles or exports by name, itself or by functions of other files."""
    finder = RootFinder(project)
    if "compile" in index.module.text:
        for info in index.all_functions.values():
            finder.decorated(getattr(info.node, "decorator_list", []), index, info, info.owner)
        for owner in index.classes.values():
            called = project.method(owner, "forward" if project.is_module(owner) else "__call__")
            finder.decorated(owner.node.decorator_list, index, called, owner)
    for place in _places(index):
        holder = place.function.owner if place.function is not None else None
        if may_compile(index) or holder is None or not project.is_module(holder):
            finder.read(place, deep=0)
    return finder.roots


def _places(index: ModuleIndex) -> tuple[Spot, ...]:
    return Spot(index), *(Spot(index, info) for info in index.all_functions.values())


class RootFinder:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.roots = Roots()
        self._resolved: dict[tuple[ast.expr, Spot], list[_Named]] = {}
        self._bindings: dict[tuple[ModuleIndex, FunctionInfo | None], dict[str, list[ast.expr]]] = {}
        self._callers: dict[ModuleIndex, dict[str, list[tuple[ast.Call, Spot]]]] = {}

    # -- calls that compile ------------------------------------------------------------------------------------

    def decorated(
        self, decorators: list[ast.expr], index: ModuleIndex, info: FunctionInfo | None, owner: ClassInfo | None
    ) -> None:
        if info is None:
            return
        named = Method(info, owner) if owner else info
        for decorator in decorators:
            keywords = self._compiler(decorator, Spot(index))
            if keywords is None:
                self._by_own_decorator(decorator, index, named)
                continue
            self._add(index, decorator, "@torch.compile", keywords, None, [named])
            if not is_test(index.module.display):
                self.roots.calls.decorated.add(f"{index.module.display}:{info.node.lineno}")

    def _by_own_decorator(self, decorator: ast.expr, index: ModuleIndex, named: _Named) -> None:
        """Takes what a decorator of the project compiles: the function that it, or the decorator it makes, is given."""
        [name] = decorator_names(index, [decorator])
        maker = index.function_named(name)
        if maker is None or not may_compile(maker.index, "compile"):
            return
        prefix = f"{maker.qualname}.<locals>."
        inner = [one for one in maker.index.all_functions.values() if one.qualname.startswith(prefix)]
        takers = inner if isinstance(decorator, ast.Call) else [maker]
        given = tuple((one.first_parameter, (named,)) for one in takers if one.first_parameter)
        for one in (maker, *inner):
            self.read(Spot(one.index, one, given), 1)

    def read(self, place: Spot, deep: int) -> None:
        """Takes what the calls in a function, or at the top level of a file, compile."""
        may = may_compile(place.index)
        for call in self._calls(place):
            if may:
                self._compiled(call, place, deep)
            callee = self._callee(call, place) if deep < MOST_CALLS_DEEP else None
            if callee is not None and callee.index is not place.index and self._leads_to_compiler(callee, deep):
                compiles = _compiles(callee)
                given = self._given(call, callee, place, compiles)
                if compiles or any(not isinstance(one, _Type) for _, values in given for one in values):
                    self.read(Spot(callee.index, callee, given), deep + 1)

    def _leads_to_compiler(self, info: FunctionInfo, deep: int) -> bool:
        """True if a function compiles something, or a function of another file that it calls does."""

        def find() -> bool:
            place = Spot(info.index, info)
            callees = (self._callee(call, place) for call in self._calls(place) if deep < MOST_CALLS_DEEP)
            return _compiles(info) or any(one and self._leads_to_compiler(one, deep + 1) for one in callees)

        return self.project.once(("leads to a compiler", info, deep), info.index, find)

    def _compiled(self, call: ast.Call, place: Spot, deep: int) -> None:
        index, func = place.index, call.func
        if isinstance(func, ast.Attribute) and func.attr not in _WORDS:
            return
        dotted = index.dotted(func)
        keywords, mode = call.keywords, None
        if dotted in COMPILERS:
            named = {k.arg: k.value for k in keywords}
            target = call.args[0] if call.args else named.get("model", named.get("mod"))
            if dotted == EXPORT:
                mode = Mode.EXPORT_STRICT if _is_true(named.get("strict")) else Mode.EXPORT
        elif (options := self._compiler(func, place)) is not None and call.args:
            target, keywords = call.args[0], [*options, *keywords]
        elif (
            isinstance(func, ast.Attribute)
            and func.attr == "compile"
            and all(isinstance(a, ast.Starred) for a in call.args)
        ):
            if not {k.arg for k in keywords if k.arg} <= _OPTIONS or self._is_foreign(func.value, place):
                return  # re.compile and the like
            if any(isinstance(one, Method) for one in self.resolve(func, place)):
                return  # what a method of the project compiles is read there
            target = func.value
        else:
            return
        target = target.value if isinstance(target, ast.Starred) else target
        if target is None or isinstance(target, ast.Constant):
            return  # a decorator with arguments
        found = [one for one in self.resolve(target, place) if not isinstance(one, _Type)]
        runs = [info for one in found if (info := self.run_by(one)[0]) is not None]
        of_tests = all(is_test(info.index.module.display) for info in runs)
        in_test = is_test(index.module.display) or bool(place.function and place.function.name.startswith("test"))
        # A test compiles what works under its own settings.
        if runs and (not in_test or (mode is not None and mode.exports) or of_tests):
            text = ast.unparse(call)
            how = text if len(text) <= 40 else text[:39] + "…"
            self._add(index, call, how, keywords, mode, found)
        if (mode is not None and mode.exports) or _is_true(_option(keywords, "disable")) or in_test:
            return
        at = {f"{index.module.display}:{call.lineno}"}
        if at <= self.roots.calls.known and not _is_own(target, found):
            self.roots.calls.name |= at
        takes = place.function.node.args if deep and place.function is not None else None
        passed = (*takes.posonlyargs, *takes.args, *takes.kwonlyargs, takes.vararg) if takes is not None else ()
        is_passed = any(one is not None and is_name(target, one.arg) for one in passed)
        is_open = _Unknown() in found or (not is_passed and self._is_open(target, place))
        if is_open is False:
            self.roots.calls.name |= at
        elif is_open:
            if not deep and isinstance(target, ast.Name):
                self.roots.calls.given |= at
            else:
                self.roots.calls.any |= at
        elif not runs:
            self.roots.calls.part |= at

    def _add(
        self,
        index: ModuleIndex,
        node: ast.expr,
        how: str,
        keywords: Sequence[ast.keyword],
        mode: Mode | None,
        named: Sequence[_Named],
    ) -> None:
        if _is_true(_option(keywords, "disable")):
            return
        if _is_true(_option(keywords, "fullgraph")) or _is_true(_option(keywords, "nopython")):
            mode = mode or Mode.FULLGRAPH
        path = index.module.display
        for one in named:
            info, receiver = self.run_by(one)
            if info is not None and not info.is_generator:  # on its own, a generator is never compiled
                region = Region(path, node.lineno, how, info.qualname)
                calls = [*self._calls_of(info), *self._calls_of_result(node, index)]
                self.roots.entries.append(Entry(info, region, receiver, mode=mode, given=self._objects(info, calls)))
                self.roots.calls.known.add(f"{path}:{node.lineno}")

    def run_by(self, named: _Named) -> tuple[FunctionInfo | None, ClassInfo | None]:
        """The function that runs when something is called, and the class of its object."""
        match named:
            case FunctionInfo():
                return named, named.owner
            case Method(info, receiver):
                return info, receiver
            case ClassInfo():
                return self.project.method(named, "forward") or self.project.method(named, "__call__"), named
        return None, None

    def _compiler(self, func: ast.expr, place: Spot) -> list[ast.keyword] | None:
        """The options of a compiler: ``torch.compile(dynamic=True)``, a partial of it, or a name for one."""
        made = [func]
        if isinstance(func, ast.Name) and may_compile(place.index, "compile"):
            made += self._bound(func.id, place)
        found = (one for one in made if is_compiler(place.index, one))
        return next((one.keywords if isinstance(one, ast.Call) else [] for one in found), None)

    def _is_foreign(self, node: ast.expr, place: Spot) -> bool:
        """True if an expression begins with an imported name that is no function, class or global of the project."""
        name = root_of(node) or ""
        if name not in place.index.imports or any(not reads(value, name) for value in self._bound(name, place)):
            return False  # what is bound to `attend = torch.compile(attend)` is still the import
        return self.project.find(place.index.imports[name], place.index) is None

    def _is_open(self, node: ast.expr, place: Spot, deep: int = 0) -> bool | None:
        """True if an expression that refers to nothing known may be any module, False if a library makes it, None for
        a lambda or a part of a module, such as a layer of a model."""
        if deep > 2 * MOST_CALLS_DEEP:  # names between them count
            return None
        if self._is_foreign(node, place):
            return False
        values: list[tuple[ast.expr, Spot]] = []
        match node:
            case ast.Call() if (dotted := place.index.dotted(node.func)) in _HOLD or dotted in COMPILERS:
                values = [(one, place) for one in node.args]
            case ast.Subscript(value=ast.Call(), slice=ast.Constant()):
                values = [(node.value, place)]
            case ast.Call(func=func):
                makers = [one.info if isinstance(one, Method) else one for one in self.resolve(func, place)]
                for maker in (one for one in makers if isinstance(one, FunctionInfo)):
                    passed = {name: (value, place) for name, value in _passed(node, maker).items()}
                    results = [one.value for one in maker.own_nodes if isinstance(one, ast.Return) and one.value]
                    values += [passed.get(getattr(one, "id", ""), (one, Spot(maker.index, maker))) for one in results]
                if not makers and isinstance(func, ast.Attribute):
                    values = [(func.value, place)]
            case ast.Name(id=name):
                if any(self._asked_for(name, place)):
                    return None
                values = self._values_of(name, place)
            case ast.Attribute(attr=name):
                owners = [one for one in self.resolve(node.value, place) if isinstance(one, ClassInfo)]
                if not owners:
                    return False if self._is_open(node.value, place, deep + 1) is False else None
                values = [pair for owner in owners for pair in self._assigned(owner, name)]
            case _:
                return None
        if not values:
            return None if self.resolve(node, place) else True
        answers = {self._is_open(*one, deep + 1) for one in values}
        return True if True in answers else False if False in answers else None

    # -- what an expression refers to --------------------------------------------------------------------------

    def resolve(self, node: ast.expr, place: Spot) -> list[_Named]:
        """The functions, classes and instances that an expression may refer to; a container counts as what it holds."""
        key = node, place
        known = self._resolved.get(key)
        if known is None:
            self._resolved[key] = []
            known = self._resolved[key] = list(dict.fromkeys(self._resolve(node, place)))
        return known

    def _resolve(self, node: ast.expr, place: Spot) -> Iterator[_Named]:
        match node:
            case ast.IfExp():
                parts: Sequence[ast.expr | None] = [node.body, node.orelse]
            case ast.BoolOp() | ast.Dict():
                parts = node.values
            case ast.List() | ast.Tuple() | ast.Set():
                parts = node.elts
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                parts = [node.elt]
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int() as number)):
                yield from self._of_call(call, place, number)
                return
            case ast.DictComp() | ast.NamedExpr() | ast.Starred() | ast.Subscript():
                parts = [node.value]
            case ast.Call():
                yield from self._of_call(node, place)
                return
            case ast.Name():
                yield from self._of_name(node.id, place)
                return
            case ast.Attribute():
                yield from self._of_attribute(node, place)
                return
            case _:
                return
        for part in parts:
            if part is not None:
                yield from self.resolve(part, place)

    def _of_call(self, node: ast.Call, place: Spot, number: int | None = None) -> Iterator[_Named]:
        func, dotted = node.func, place.index.dotted(node.func)
        if dotted in COMPILERS or self._compiler(func, place) is not None:
            parts = node.args[:1]
        elif dotted in _HOLD:
            # The other options of a wrapper of torch are none of what it holds.
            parts = [*node.args, *(k.value for k in node.keywords if k.arg == "module" or dotted[:6] != "torch.")]
        elif isinstance(func, ast.Attribute) and func.attr in _PASS_ON:
            parts = [func.value]
        elif isinstance(func, ast.Attribute) and func.attr == "prepare":  # of accelerate
            parts = node.args
        else:
            parts = []
        for part in parts:
            yield from self.resolve(part, place)
        if parts:
            return
        if isinstance(func, ast.Attribute) and func.attr in _PARTS:
            for held in self.resolve(func.value, place):
                if isinstance(held, ClassInfo) and not self._is_container(func.value, place):
                    methods = (method for info in self.project.bases_of(held) for method in info.methods.values())
                    for name in sorted({name for method in methods for name in method.own_attributes}):
                        yield from self._stored(held, name)
                else:
                    yield held
            return
        for made in self.resolve(func, place):
            match made:
                case _Type(info):
                    yield info
                case FunctionInfo() | Method():
                    maker = made.info if isinstance(made, Method) else made
                    if isinstance(made, Method) and "classmethod" in maker.decorators:
                        yield from [made.receiver] if self.project.is_module(made.receiver) else []
                    yield from self._returned(maker, self._given(node, maker, place), number)

    def _returned(self, maker: FunctionInfo, given: _Given, number: int | None) -> Iterator[_Named]:
        """The result of a function, or one of several: as it is annotated, or as its ``return`` names it."""
        promised = _promised(maker.index, getattr(maker.node, "returns", None))
        if promised is not None:
            yield promised
            return
        place = Spot(maker.index, maker, given)
        for node in maker.own_nodes:
            if isinstance(node, ast.Return) and node.value is not None:
                several = node.value.elts if isinstance(node.value, ast.Tuple) and number is not None else []
                yield from self.resolve(several[number or 0] if len(several) > (number or 0) else node.value, place)

    def _of_name(self, name: str, place: Spot) -> Iterator[_Named]:
        function = place.function
        given = dict(place.given).get(name, ())
        bound = [one for value in self._bound(name, place) for one in self.resolve(value, place)]
        if given or bound:
            yield from (*given, *bound)
        elif annotated := [one for value in self._bound(f"{name}:", place) if (one := _promised(place.index, value))]:
            yield from annotated
        elif asked := list(self._asked_for(name, place)):
            yield from asked
        elif function is None:
            yield from self._defined(name, place.index)
        elif inner := _qualified(place.index, f"{function.qualname}.<locals>.{name}"):
            yield inner
        elif (argument := function.argument(name)) is None:
            yield from self._of_name(name, self._around(place))
        elif (promised := _promised(place.index, argument.annotation)) is not None:
            yield promised
        elif name == function.first_parameter and function.owner is not None:
            yield function.owner
            for other in place.index.classes.values():
                if other is not function.owner and function.owner in self.project.bases_of(other):
                    yield other
        else:
            for call, caller in self._calls_of(function):
                yield from dict(self._given(call, function, caller)).get(name, ())

    def _asked_for(self, name: str, place: Spot) -> Iterator[_Named]:
        """The classes that ``isinstance`` asks for before a value is used."""
        for node in self._nodes(place):
            if isinstance(node, ast.Call) and is_name(node.func, "isinstance") and is_name(node.args[0], name):
                for asked in self.resolve(node.args[1], place):
                    if isinstance(asked, _Type) and self.project.is_module(asked.info):
                        yield asked.info

    def _defined(self, dotted: str, index: ModuleIndex) -> Iterator[_Named]:
        """The function, class or global that a name or a dotted name in a file refers to."""
        head, _, rest = dotted.partition(".")
        if head in index.imports:
            dotted = index.imports[head] + (f".{rest}" if rest else "")
        if dotted in index.functions:
            yield index.functions[dotted]
        elif dotted in index.classes:
            yield _Type(index.classes[dotted])
        else:
            match self.project.find(dotted, index):
                case FunctionInfo() as info:
                    yield info
                case ClassInfo() as info:
                    yield _Type(info)
                case GlobalName() as named:
                    yield from self._of_name(named.name, Spot(named.index))

    def _of_attribute(self, node: ast.Attribute, place: Spot) -> Iterator[_Named]:
        held = self.resolve(node.value, place)
        dotted = None if held else place.index.dotted(node)
        if dotted is not None and dotted.partition(".")[0] not in ("torch", "self"):
            yield from self._defined(dotted, place.index)
        for owner in held:
            info = owner.info if isinstance(owner, _Type) else owner
            if isinstance(info, ClassInfo):
                method = self.project.method(info, node.attr)
                if method is not None:
                    yield Method(method, info) if not method.is_static else method
                elif isinstance(owner, ClassInfo):
                    yield from self._stored(info, node.attr)

    def _stored(self, owner: ClassInfo, name: str) -> Iterator[_Named]:
        """The values that the methods of a class store in an attribute, or its annotation."""
        for info in self.project.bases_of(owner):
            for node in info.node.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                    promised = _promised(info.index, node.annotation)
                    yield from [promised] if promised is not None else []
        for value, place in self._assigned(owner, name):
            yield from self.resolve(value, place)

    def _assigned(self, owner: ClassInfo, name: str) -> Iterator[tuple[ast.expr, Spot]]:
        """The values that the methods of a class assign to an attribute."""
        for info in self.project.bases_of(owner):
            for method in info.methods.values():
                place = Spot(info.index, method)
                yield from ((value, place) for value in self._bound(f"self.{name}", place))

    def _is_container(self, node: ast.expr, place: Spot) -> bool:
        """True for an attribute that holds a list of modules."""
        if not isinstance(node, ast.Attribute):
            return False
        owners = [one for one in self.resolve(node.value, place) if isinstance(one, ClassInfo)]
        made = [pair for owner in owners for pair in self._assigned(owner, node.attr)]
        return any(isinstance(one, ast.Call) and at.index.dotted(one.func) in _HOLD for one, at in made)

    # -- functions ---------------------------------------------------------------------------------------------

    def _around(self, place: Spot) -> Spot:
        """The place around a function: the function that it is in, or the top level."""
        assert place.function is not None
        outer = place.function.qualname.rpartition(".<locals>.")[0] if place.function.nested else ""
        return Spot(place.index, _qualified(place.index, outer))

    def _nodes(self, place: Spot) -> Sequence[ast.AST]:
        if place.function is not None:
            return place.function.own_nodes
        return self.project.once(("top", place.index), place.index, lambda: tuple(own_nodes(place.index.tree)))

    def _calls(self, place: Spot) -> Sequence[ast.Call]:
        if place.function is not None:
            return place.function.own_calls
        return [node for node in self._nodes(place) if isinstance(node, ast.Call)]

    def _calls_of(self, function: FunctionInfo) -> list[tuple[ast.Call, Spot]]:
        """The calls of a function in its own file."""
        return self._calls_by_name(function.index).get(function.name, [])

    def _calls_by_name(self, index: ModuleIndex) -> dict[str, list[tuple[ast.Call, Spot]]]:
        """The calls in a file of names, and of attributes of ``self``."""
        known = self._callers.get(index)
        if known is None:
            known = self._callers[index] = {}
            for place in _places(index):
                for call in self._calls(place):
                    name = call.func
                    if isinstance(name, ast.Attribute) and is_name(name.value, "self"):
                        known.setdefault(name.attr, []).append((call, place))
                    elif isinstance(name, ast.Name):
                        known.setdefault(name.id, []).append((call, place))
        return known

    def _calls_of_result(self, compiler: ast.expr, index: ModuleIndex) -> list[tuple[ast.Call, Spot]]:
        """The calls of what a call of the compiler is stored as."""
        bound: dict[str, list[ast.expr]] = {}
        for node in walk(index.tree):
            _read_bindings(node, bound)
        holding = (name for name, values in bound.items() if any(compiler in walk(value) for value in values))
        return [pair for name in holding for pair in self._calls_by_name(index).get(name.removeprefix("self."), [])]

    def _objects(self, info: FunctionInfo, calls: Sequence[tuple[ast.Call, Spot]]) -> Passed:
        """The classes of the objects that calls pass to the parameters of a function, where all pass the same."""
        passed: dict[str, set[ClassInfo | type[float] | None]] = {}
        for call, place in calls:
            for name, value in _passed(call, info).items():
                is_one = self._is_one(value, place)
                found = [one for one in self.resolve(value, place) if isinstance(one, ClassInfo)] if is_one else []
                number = float if self._is_number(value, place) else None
                passed.setdefault(name, set()).update(found or [number])
        same = ((name, next(iter(found))) for name, found in passed.items() if len(found) == 1)
        return tuple((name, one) for name, one in same if one is not None)

    def _is_number(self, node: ast.expr, place: Spot) -> bool:
        """True for a parameter of the caller that is annotated as a number."""
        name = node.id if isinstance(node, ast.Name) and place.function is not None else ""
        argument = place.function.argument(name) if place.function is not None else None
        is_number = argument is not None and getattr(argument.annotation, "id", "") in ("bool", "float", "int")
        return is_number and not self._bound(name, place)

    def _is_one(self, node: ast.expr, place: Spot, deep: int = 0) -> bool:
        """True if an expression is an object, and no container of objects."""
        match node:
            case ast.Call():
                return place.index.dotted(node.func) not in _CONTAINERS
            case ast.Name(id=name):
                values = self._values_of(name, place)
                if not values and place.function is not None and place.function.argument(name) is None:
                    around = self._around(place)
                    values = [(one, around) for one in self._bound(name, around)]
                return deep < MOST_CALLS_DEEP and all(self._is_one(*one, deep + 1) for one in values)
            case ast.Attribute():
                return not self._is_container(node, place)
        return False

    def passed_to(self, owner: ClassInfo, init: FunctionInfo, name: str) -> list[ClassInfo]:
        """The classes of what calls of a class in its own file pass for a parameter of ``__init__``."""
        calls = self._calls_by_name(owner.index).get(owner.qualname, [])
        passed = _passed_by(calls, init, name)
        return [one for value, place in passed for one in self.resolve(value, place) if isinstance(one, ClassInfo)]

    def _values_of(self, name: str, place: Spot) -> list[tuple[ast.expr, Spot]]:
        """The values of a name in a place; of a parameter that is not bound again, those that calls pass."""
        values = [(one, place) for one in self._bound(name, place) if not reads(one, name)]
        function = place.function
        if values or function is None or function.argument(name) is None:
            return values
        return _passed_by(self._calls_of(function), function, name)

    def _callee(self, call: ast.Call, place: Spot) -> FunctionInfo | None:
        """The function of the project that a call names."""
        head = call.func
        while isinstance(head, ast.Attribute):
            head = head.value
        if not isinstance(head, ast.Name) or not (call.args or call.keywords):
            return None
        if head.id not in place.index.imports:
            named = isinstance(call.func, ast.Attribute) and "compile" in call.func.attr
            methods = self.resolve(call.func, place) if named else []
            return next((one.info for one in methods if isinstance(one, Method)), None)
        dotted = place.index.dotted(call.func)
        return place.index.function_named(dotted) if dotted and not dotted.startswith(("torch.", "numpy.")) else None

    def _given(self, call: ast.Call, callee: FunctionInfo, place: Spot, unknown: bool = False) -> _Given:
        """The values that a call gives to parameters; with ``unknown``, also those that may be any module."""
        found: list[tuple[str, tuple[_Named, ...]]] = []
        for name, value in _passed(call, callee).items():
            values = self.resolve(value, place)
            if unknown and self._is_open(value, place):
                values = [*values, _Unknown()]
            found.append((name, tuple(values)))
        return tuple((name, values) for name, values in found if values)

    def _bound(self, name: str, place: Spot) -> list[ast.expr]:
        """The expressions that a name, or an attribute of ``self``, is bound to, or whose parts it is bound to."""
        key = place.index, place.function
        known = self._bindings.get(key)
        if known is None:
            known = self._bindings[key] = {}
            for node in self._nodes(place):
                _read_bindings(node, known)
        return known.get(name, [])


def _read_bindings(node: ast.AST, into: dict[str, list[ast.expr]]) -> None:
    match node:
        case ast.Assign():
            pairs: list[tuple[ast.expr, ast.expr | None]] = [(target, node.value) for target in node.targets]
        case ast.AnnAssign() | ast.NamedExpr():
            pairs = [(node.target, node.value)]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                into.setdefault(f"{node.target.id}:", []).append(node.annotation)
        case ast.For() | ast.comprehension():
            pairs = [(node.target, node.iter)]
        case ast.Call(func=ast.Attribute(value=held, attr="append"), args=[added]):
            pairs = [(held, added)]
        case _:
            return
    for target, value in pairs:
        if isinstance(target, ast.Tuple | ast.List):
            values: Sequence[ast.expr | None] | None = None
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                values = value.elts
            elif isinstance(node, ast.Assign) and isinstance(value, ast.Call):
                values = [ast.Subscript(value, ast.Constant(number)) for number in range(len(target.elts))]
            inner = list(zip(target.elts, values or [value] * len(target.elts), strict=True))
        else:
            inner = [(target, value)]
        for part, bound in inner:
            if bound is not None and isinstance(part, ast.Name | ast.Attribute):
                into.setdefault(part.id if isinstance(part, ast.Name) else ast.unparse(part), []).append(bound)


def _passed(call: ast.Call, callee: FunctionInfo) -> dict[str, ast.expr]:
    """The expressions that a call passes to the parameters of a function."""
    arguments = callee.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    is_bound = isinstance(call.func, ast.Attribute) or callee.name == "__init__"
    if callee.owner is not None and not callee.is_static and is_bound:
        names = names[1:]
    names += [arguments.vararg.arg] if arguments.vararg is not None else []
    pairs = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords if k.arg)]
    return {name: value for name, value in pairs if not isinstance(value, ast.Constant)}


def _passed_by(calls: Sequence[tuple[ast.Call, Spot]], callee: FunctionInfo, name: str) -> list[tuple[ast.expr, Spot]]:
    """The expressions that calls pass to a parameter, each with where it stands."""
    return [(one, place) for call, place in calls if (one := _passed(call, callee).get(name)) is not None]


def _promised(index: ModuleIndex, annotation: ast.expr | None) -> ClassInfo | None:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return index.class_named(annotation.value)
    dotted = index.dotted(annotation) if annotation is not None else None
    return index.class_named(dotted) if dotted else None


def _compiles(info: FunctionInfo) -> bool:
    """True if the body of a function calls ``torch.compile``, or a method of that name."""
    if not may_compile(info.index):
        return False
    return any(getattr(c.func, "attr", getattr(c.func, "id", "")) == "compile" for c in info.own_calls)


def _is_own(target: ast.expr, found: Sequence[_Named]) -> bool:
    """True for ``self`` and its methods: that an object compiles itself says nothing of the others."""
    is_method = isinstance(target, ast.Attribute) and any(isinstance(one, Method) for one in found)
    return is_name(target.value if is_method and isinstance(target, ast.Attribute) else target, "self")


def is_test(path: str) -> bool:
    """True if a file holds tests: what it compiles, and the modules that it defines, say nothing of the project."""
    parts = path.split("/")
    return not {"test", "tests", "testing"}.isdisjoint(parts[:-1]) or parts[-1].startswith(("test_", "conftest"))


def _qualified(index: ModuleIndex, qualname: str) -> FunctionInfo | None:
    return next((info for info in index.all_functions.values() if info.qualname == qualname), None)


def _option(keywords: Sequence[ast.keyword], name: str) -> ast.expr | None:
    return next((k.value for k in reversed(keywords) if k.arg == name), None)


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
