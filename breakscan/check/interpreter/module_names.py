"""The values of names at the top level of files, of attributes of instances, and of imported names."""

import ast
import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from breakscan.check.interpreter import values as av
from breakscan.check.project.imports import Project
from breakscan.check.project.index import BUILTINS, ClassInfo, FunctionInfo, GlobalName, ModuleIndex, canonical
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.torch_facts.table import DTYPE_CLASS, TorchApi


@dataclass(slots=True)
class DynamoConfig:
    """``flags`` are settings that are switched on, ``off`` those that are switched off, ``ignored_callees`` functions
    that Dynamo leaves out of graphs."""

    flags: set[str] = field(default_factory=set)
    off: set[str] = field(default_factory=set)
    ignored_callees: set[str] = field(default_factory=set)

    def read_call(self, index: ModuleIndex, call: ast.Call) -> None:
        """Reads ``torch._dynamo.config.patch(...)``, ``….ignore_logging_functions.add(print)`` and similar calls."""
        name = index.dotted(call.func) or ""
        if name == "torch._dynamo.config.patch":
            for keyword in call.keywords:
                self._read(keyword.arg or "", keyword.value)
        if name.startswith("torch._dynamo.config.") and name.endswith("_logging_functions.add") and call.args:
            self.ignored_callees.add(index.dotted(call.args[0]) or "")

    def read_assignment(self, index: ModuleIndex, node: ast.Assign | ast.AnnAssign) -> None:
        """Reads ``torch._dynamo.config.capture_scalar_outputs = True`` and similar assignments."""
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            name = index.dotted(target) or ""
            if name.startswith("torch._dynamo.config."):
                self._read(name.rsplit(".", 1)[-1], node.value)

    def _read(self, name: str, value: ast.expr | None) -> None:
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            (self.flags if value.value else self.off).add(name)


Store = tuple[ClassInfo, str, av.Value]


class ClassAttributes:
    """The attributes of the classes that one program reaches.  ``read_class`` interprets the body and ``__init__`` of a
    class, ``read_method`` one of its other methods: both call :meth:`store`."""

    def __init__(
        self,
        project: Project,
        api: TorchApi,
        read_class: Callable[[ClassInfo], None],
        read_method: Callable[[FunctionInfo], None],
    ) -> None:
        self._project = project
        self._api = api
        self._read_class = read_class
        self._read_method = read_method
        self._values: dict[tuple[ClassInfo, str], av.Value] = {}
        self._classes_read: set[ClassInfo] = set()
        self._readers: dict[tuple[ClassInfo, str], dict[FunctionInfo, None]] = {}
        self._set_later: dict[tuple[ClassInfo, str], bool] = {}
        self._subclasses: dict[ClassInfo, list[ClassInfo]] = {}
        self._makes_parameters: dict[ClassInfo, bool] = {}
        self.recorders: list[list[Store]] = []
        """Lists for code that runs once, while it is read. The last list takes what the code stores."""
        self.reader: FunctionInfo | None = None
        """The function under interpretation."""
        self.woken: dict[FunctionInfo, None] = {}
        """Functions that read an attribute which has been found to hold more since."""

    def read(self, owner: ClassInfo) -> None:
        """Reads the body and ``__init__`` of a class and its bases for the attributes that they set, once."""
        if owner in self._classes_read:
            return
        for info in self._project.bases_of(owner):
            if info not in self._classes_read:
                self._classes_read.add(info)
                self._read_class(info)

    def store(self, owner: ClassInfo, name: str, value: av.Value) -> None:
        """Adds to what an attribute of a class's instances can hold."""
        if isinstance(value, av.Tensor):
            if value.intermediate or value.optional is not None:
                doubted = Condition(ConditionKind.TENSOR, f"self.{name}") if av.doubt(value) else None
                value = replace(value, intermediate=False, optional=doubted)
        elif isinstance(value, av.Constant) and (value.literal is not None or value.by_default):
            # Another method may set another constant.
            value = replace(value, literal=None, by_default=False)
        if self.recorders:
            self.recorders[-1].append((owner, name, value))
        key = owner, name
        known = self._values.get(key)
        merged = value if known is None else av.join(known, value)
        if merged != known:
            self._values[key] = merged
            self.woken |= self._readers.get(key, {})

    def stored(self, owner: ClassInfo, name: str) -> av.Value | None:
        """The value of an attribute of the class's instances, if anything is known of it."""
        self.read(owner)
        for base in self._project.bases_of(owner):
            known = self._stored_in(owner, base, name)
            if known is not None:
                return known
        return None

    def find(self, owner: ClassInfo, name: str) -> FunctionInfo | av.Value | None:
        """The method that instances of a class have under a name, or what the attribute holds."""
        self.read(owner)
        for base in self._project.bases_of(owner):
            found = base.methods.get(name) or self._stored_in(owner, base, name)
            if found is not None:
                return found
        if self._is_set_later(owner, name):
            return self.stored(owner, name)
        return self._set_in_subclass(owner, name)

    def matching(self, owner: ClassInfo, pattern: str) -> list[FunctionInfo | av.Value]:
        """The methods and attributes of the class whose names match, and what is stored under such a name."""
        self.read(owner)
        chain = self._project.bases_of(owner)
        names = {name for info, name in self._values if info in chain} | {n for info in chain for n in info.methods}
        listed = sorted({pattern, *fnmatch.filter(names, pattern)})
        found = [base.methods.get(name) or self._stored_in(owner, base, name) for name in listed for base in chain]
        return [one for one in found if one is not None]

    def _set_in_subclass(self, owner: ClassInfo, name: str) -> av.Value | None:
        """The value of an attribute that only the subclasses in the same file set, and not the class itself."""
        if owner not in self._subclasses:
            others = owner.index.classes.values()
            self._subclasses[owner] = [c for c in others if c is not owner and owner in self._project.bases_of(c)]
        values: list[av.Value] = []
        for one in self._subclasses[owner]:
            self.read(one)
            value = self._stored_in(one, one, name)
            if value is not None:
                values.append(value)
        return av.at_most(av.join_all(values), av.Sure.LIKELY) if values else None

    def _stored_in(self, owner: ClassInfo, base: ClassInfo, name: str) -> av.Value | None:
        key = base, name
        if self.reader is not None:
            self._readers.setdefault(key, {})[self.reader] = None
        value = self._values.get(key)
        if isinstance(value, av.NoneValue) and self._is_set_later(owner, name):
            chain = self._project.bases_of(owner)
            value = next(self._values[b, name] for b in chain if (b, name) in self._values)
        return value

    def _is_set_later(self, owner: ClassInfo, name: str) -> bool:
        """True if a method other than ``__init__`` sets an attribute; reads those methods, if so."""
        if (owner, name) not in self._set_later:
            methods = [m for info in self._project.bases_of(owner) for m in _setters_in(info).get(name, ())]
            self._set_later[owner, name] = bool(methods)
            for method in methods:
                self._read_method(method)
        return self._set_later[owner, name]

    def base_instance(self, owner: ClassInfo) -> av.Value:
        """Returns the value of ``super()`` in a method of a class: an instance of the first base in the project, else
        an unknown module or object."""
        bases = self._project.bases_of(owner)[1:]
        if bases:
            return av.instance_of(bases[0])
        return av.Module(av.Sure.LIKELY) if self._project.is_module(owner) else av.UNKNOWN

    def makes_parameters(self, owner: ClassInfo) -> bool:
        if owner not in self._makes_parameters:
            self._makes_parameters[owner] = False  # for a class that holds an instance of itself
            self.read(owner)
            chain = self._project.bases_of(owner)
            held = [value for (info, _), value in list(self._values.items()) if info in chain]
            self._makes_parameters[owner] = any(map(self._holds_parameters, held))
        return self._makes_parameters[owner]

    def _holds_parameters(self, value: av.Value) -> bool:
        if isinstance(value, av.Tensor):
            return value.parameter
        if not isinstance(value, av.ClassOrObject | av.Namespace):
            return False
        if value.name in self._api.modules_with_parameters:
            return True
        return isinstance(value, av.Module) and value.info is not None and self.makes_parameters(value.info)

    def dataclass_fields(self, owner: ClassInfo) -> list[str]:
        """The fields of a dataclass or a ``NamedTuple``, in order; empty for another class."""
        is_dataclass = any(d.rsplit(".", 1)[-1] == "dataclass" for d in owner.decorators)
        if not is_dataclass and "typing.NamedTuple" not in owner.bases:
            return []
        self.read(owner)
        return [n.target.id for n in owner.node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]


def _setters_in(info: ClassInfo) -> dict[str, list[FunctionInfo]]:
    """The methods of a class, other than ``__init__``, that set each attribute."""
    if info.setters is None:
        info.setters = {}
        for method in info.methods.values():
            for name in method.own_attributes if method.name != "__init__" else ():
                info.setters.setdefault(name, []).append(method)
    return info.setters


_NUMBERS = frozenset({"inf", "nan", "pi", "e"})


class ModuleNames:
    """The global names of the files that one program reaches. ``read`` interprets the top level of a file: it fills the
    names given and returns those that hold in any program."""

    def __init__(
        self, project: Project, read: Callable[[ModuleIndex, dict[str, av.Value]], dict[str, av.Value]]
    ) -> None:
        self._project = project
        self._read = read
        self._assigned: dict[ModuleIndex, dict[str, av.Value]] = {}
        self._imported: dict[tuple[ModuleIndex, str], av.Value] = {}

    def assigned(self, index: ModuleIndex) -> dict[str, av.Value]:
        """The values of the names that the top level of a file assigns."""
        known = self._assigned.get(index)
        if known is None:
            known = self._assigned[index] = {}
            names = self._read(index, known)
            for name, value in names.items():
                # In compiled code, any code may assign another constant later, and no tensor is its own.
                if isinstance(value, av.Tensor) and value.intermediate:
                    value = replace(value, intermediate=False)
                elif isinstance(literal := av.literal_of(value), bool):
                    value = replace(av.CONSTANT, optional=Condition(ConditionKind.FLAG, name, not literal))
                elif literal is not None:
                    value = av.CONSTANT
                known[name] = value
        return known

    def look_up(self, name: str, index: ModuleIndex) -> av.Value:
        """The value of a name at the top level of a file."""
        if name in index.assigned:
            value = self.assigned(index).get(name)
            stands_in = isinstance(value, av.NoneValue) or (isinstance(value, av.Namespace) and value.name == "object")
            if value is not None and not (stands_in and name in index.imports):
                return value
        if name in index.functions:
            return av.Function(info=index.functions[name])
        if name in index.classes:
            return av.Class(info=index.classes[name], name=name)
        dotted = index.imports.get(name)
        if dotted is None and index.stars:
            dotted = self._project.star(index, name)
        if dotted is not None:
            return self.imported(dotted, index)
        return av.Namespace(name=name) if name in BUILTINS else av.UNKNOWN

    def imported(self, dotted: str, index: ModuleIndex) -> av.Value:
        """The value of a dotted name from another file, as a file sees it."""
        key = index, dotted
        if key not in self._imported:
            self._imported[key] = av.Namespace(name=dotted)  # for imports that lead back here
            self._imported[key] = self._import(dotted, index)
        return self._imported[key]

    def _import(self, dotted: str, index: ModuleIndex) -> av.Value:
        dotted = canonical(dotted)
        head, _, last = dotted.rpartition(".")
        if head in ("torch", "math", "numpy") and (last in DTYPE_CLASS or last in _NUMBERS):
            return av.CONSTANT
        found = self._project.find(dotted, index) if head or dotted in index.imports.values() else None
        if isinstance(found, FunctionInfo):
            return av.Function(info=found)
        if isinstance(found, ClassInfo):
            return av.Class(info=found, name=found.qualname)
        if isinstance(found, GlobalName):
            value = self.assigned(found.index).get(found.name, av.UNKNOWN)
            return value if not isinstance(value, av.Unknown) else av.Namespace(name=dotted)
        return av.Namespace(name=dotted)
