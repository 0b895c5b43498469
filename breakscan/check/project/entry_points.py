"""The functions at which the compiler starts, and those that it never enters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.model.findings import Assumption, Mode, Region
from breakscan.rulebook.torch_facts.not_measured import RETURN_THE_MODULE
from breakscan.source.outline import without_locals
from breakscan.source.walking import walk

# Modules that only prepare data for a model, in the workers that load it: nobody compiles them.


_TRANSFORMS = "torchvision.transforms."
_LIBRARIES = (_TRANSFORMS, "PIL.", "cv2.", "albumentations.", "skimage.")


def prepares_data(project: Project, owner: ClassInfo) -> bool:
    """True if a module without layers is a transform of torchvision, uses a library for images, or is in a file or
    folder that is named for augmentation."""
    chain = project.bases_of(owner)
    derived = any(base.startswith(_TRANSFORMS) for base in project.outside_bases(owner)) or _is_for_augmentation(owner)
    if not derived and not any(_imports_library(project, index) for index in {info.index: None for info in chain}):
        return False
    methods = [method for info in chain for method in info.methods.values()]
    if any(_uses_layers(method) for method in methods):
        return False
    if derived:
        return True
    names = {name for info in chain for name in info.methods}
    computing = [method for method in methods if method.name != "__init__"]
    return any(_uses_library(method) for method in computing) and not any(_calls_part(m, names) for m in computing)


def _is_for_augmentation(info: ClassInfo) -> bool:
    return any(part.startswith("augment") for part in info.index.name.split("."))


def _imports_library(project: Project, index: ModuleIndex) -> bool:
    def find() -> bool:
        return any(f"{name}.".startswith((*_LIBRARIES, "torchvision.")) for name in index.imports.values())

    return project.once(("library", index), index, find)


def _uses_library(method: FunctionInfo) -> bool:
    calls = (node for node in method.own_nodes if isinstance(node, ast.Call))
    return any((method.index.dotted(call.func) or "").startswith(_LIBRARIES) for call in calls)


def _uses_layers(method: FunctionInfo) -> bool:
    """True if a method creates a layer or a parameter."""
    names = (method.index.dotted(node.func) or "" for node in method.own_nodes if isinstance(node, ast.Call))
    return any(name.startswith("torch.nn.") and name.count(".") == 2 for name in names)


def _calls_part(method: FunctionInfo, own: set[str]) -> bool:
    """True if a method calls something that the object holds, as a module calls its layers."""
    called = (node.func for node in method.own_nodes if isinstance(node, ast.Call))
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == method.first_parameter
        and node.attr not in own
        for node in called
    )


_COMPILES = tuple(re.compile(rf"{word}(?<=\b{word})\b") for word in ("compile", "export", "optimize"))
"""Each begins with its letters: a search for those is many times as fast as one that begins with ``\\b``."""
_OTHER_COMPILERS = frozenset({"re.compile", "regex.compile"})
COMPILE = "torch.compile"
EXPORT = "torch.export.export"
COMPILERS = frozenset({COMPILE, EXPORT, "torch._dynamo.optimize"})
_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in COMPILERS)
_DISABLING = frozenset({"torch.compiler.disable", "torch._dynamo.disable"})
_OPERATORS = frozenset({"torch.library.custom_op", "torch.library.impl", "torch.library.register_fake", "triton.jit"})
"""Decorators of operators, which no compiler looks into."""
_UNTRACED = (
    _DISABLING
    | _OPERATORS
    | {
        "torch._disable_dynamo",
        "torch.compiler.assume_constant_result",
        "torch.compiler.allow_in_graph",
        "torch._dynamo.allow_in_graph",
        "torch._dynamo.nonstrict_trace",
        "torch.compiler.nonstrict_trace",
    }
)
"""Decorators that keep Dynamo out of a function."""
# Methods that run while a model is built, saved or shown, not while it computes.
_NEVER_COMPILED = frozenset(
    "__init__ __new__ __repr__ __str__ __len__ __del__ __getstate__ __setstate__ __reduce__ __init_subclass__ "
    "extra_repr reset_parameters _init_weights init_weights from_pretrained save_pretrained state_dict "
    "load_state_dict _load_from_state_dict setUp tearDown".split()
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A function that the compiler is handed, and how.  ``receiver`` is the class whose instance it is a method of,
    which may have inherited it; ``compiled`` means that the file itself passes it to the compiler.  ``mode`` is how the
    code exports it, None where it does not."""

    function: FunctionInfo
    region: Region
    receiver: ClassInfo | None = None
    compiled: bool = True
    mode: Mode | None = None


def is_untraced(info: FunctionInfo, mode: Mode = Mode.DEFAULT) -> bool:
    """True if a decorator keeps the compiler out of the function.  A plain export runs what Dynamo is kept out of."""
    names = _OPERATORS if mode is Mode.EXPORT else _UNTRACED
    return any(name in names or name.endswith((".custom_op", ".register_kernel")) for name in info.decorators)


def disabling_decorator(info: FunctionInfo) -> str | None:
    """The decorator by which the function, when traced code calls it, ends the graph; None without one."""
    return next((name for name in info.decorators if name in _DISABLING), None)


def find_entries(project: Project, index: ModuleIndex, regions: str, mode: Mode) -> list[Entry]:
    """The entries of a file.

    ``auto`` takes what the file itself compiles, else every ``nn.Module.forward`` but those that prepare data or train.
    ``roots`` takes the first of the two, ``modules`` every ``forward``, ``all`` every function that could be compiled.
    What the file exports counts where ``mode`` is one of exports, or where the file compiles nothing else.
    """
    roots = list(_Roots(project, index).find()) if regions != "modules" and _may_compile(index) else []
    exported = [entry for entry in roots if entry.mode is not None]
    compiled = [entry for entry in roots if entry.mode is None]
    roots = _unique(exported if mode.exports or not compiled else compiled, mode)
    if regions == "roots" or (regions == "auto" and roots):
        return roots
    if regions == "all":
        return _unique([*roots, *_everything(project, index), *_inherited(project, index)], mode)
    found = _unique(_forwards(project, index), mode)
    if regions == "modules":
        return found
    return [
        entry
        for entry in found
        if not _makes_optimizer(entry.function)
        and (entry.receiver is None or not prepares_data(project, entry.receiver))
    ]


def named_entries(index: ModuleIndex, compiled: Mapping[str, bool]) -> list[Entry]:
    """The functions of a file that have these qualified names, without ``<locals>``; the value is true if the
    compiler was handed the function itself, and did not get there from another one."""
    path = index.module.display
    return _unique(
        Entry(info, Region(path, info.node.lineno, "run", info.qualname), info.owner, compiled[name])
        for info in index.all_functions.values()
        if (name := without_locals(info.qualname)) in compiled
    )


def observed_entries(project: Project, index: ModuleIndex, mode: Mode) -> list[Entry]:
    """The functions of a file that a recorded run shows the compiler to have been in, unless the code keeps it out now:
    a rewrite may have been applied since."""
    seen, path = project.seen_in(index), index.module.display
    return [
        Entry(info, Region(path, info.node.lineno, "run", info.qualname, recorded=True), info.owner, one.compiled)
        for info in index.all_functions.values()
        if (one := seen.get(info.qualname)) is not None and not is_untraced(info, mode)
    ]


def _makes_optimizer(function: FunctionInfo) -> bool:
    """True if a function creates an optimizer, as a training loop does."""
    if "optim" not in function.index.module.text:
        return False
    calls = (node for node in function.own_nodes if isinstance(node, ast.Call))
    return any((function.index.dotted(call.func) or "").startswith("torch.optim.") for call in calls)


def _may_compile(index: ModuleIndex) -> bool:
    return any(pattern.search(index.module.text) for pattern in _COMPILES)


def _unique(entries: Iterator[Entry] | list[Entry], mode: Mode = Mode.DEFAULT) -> list[Entry]:
    found: dict[tuple[FunctionInfo, ClassInfo | None], Entry] = {}
    for entry in entries:
        if not is_untraced(entry.function, entry.mode or mode):
            found.setdefault((entry.function, entry.receiver), entry)
    return list(found.values())


def _forwards(project: Project, index: ModuleIndex) -> Iterator[Entry]:
    for owner in index.classes.values():
        forward = project.method(owner, "forward")
        if forward is not None and project.is_module(owner):
            yield _assumed(forward, Assumption.FORWARD, owner)


def _everything(project: Project, index: ModuleIndex) -> Iterator[Entry]:
    for info in index.all_functions.values():
        if info.nested:
            continue
        # An object that is no module is made of tensors in traced code, too: a distribution, or a batch.
        makes_object = info.name == "__init__" and info.owner is not None and not project.is_module(info.owner)
        if makes_object or info.name not in _NEVER_COMPILED:
            yield _assumed(info, Assumption.FUNCTION)


def _inherited(project: Project, index: ModuleIndex) -> Iterator[Entry]:
    """The methods that the classes of a file inherit and that call a method which they define anew."""
    for owner in index.classes.values():
        defined = {name for name in owner.methods if not name.startswith("__")}
        known = set(owner.methods)
        for base in project.bases_of(owner)[1:] if defined else ():
            for name, info in base.methods.items():
                if name not in known and name not in _NEVER_COMPILED and not defined.isdisjoint(_calls_of(info)):
                    yield _assumed(info, Assumption.FUNCTION, owner)
            known |= base.methods.keys()


def _calls_of(method: FunctionInfo) -> set[str]:
    """The methods of its own object that a method calls."""
    receiver = None if method.is_static else method.first_parameter
    return {
        node.func.attr
        for node in method.own_nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == receiver
    }


def _assumed(info: FunctionInfo, why: Assumption, receiver: ClassInfo | None = None) -> Entry:
    region = Region(info.index.module.display, info.node.lineno, "", info.qualname, why)
    return Entry(info, region, receiver or info.owner, compiled=False)


def is_compiler(index: ModuleIndex, decorator: ast.expr) -> bool:
    """True if a decorator is ``torch.compile``, with or without arguments, or a partial of it."""
    if isinstance(decorator, ast.Call):
        name = index.dotted(decorator.func)
        if name == "functools.partial" and decorator.args:
            return index.dotted(decorator.args[0]) == COMPILE
        return name == COMPILE and not decorator.args
    return index.dotted(decorator) == COMPILE


def _spelling(node: ast.Call) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:39] + "…"


_Named = ClassInfo | FunctionInfo


class _Roots:
    """Finds what a file hands to the compiler, in it or in another file."""

    def __init__(self, project: Project, index: ModuleIndex) -> None:
        self.project = project
        self.index = index
        self.variables: dict[str, _Named] = {}

    def find(self) -> Iterator[Entry]:
        for info in self.index.all_functions.values():
            yield from self.decorated(getattr(info.node, "decorator_list", []), info, info.owner)
        for owner in self.index.classes.values():
            yield from self.decorated(owner.node.decorator_list, self.project.method(owner, "forward"), owner)
        calls = [node for node in walk(self.index.tree) if isinstance(node, ast.Call) and self.may_compile(node)]
        if calls:
            self.read_variables()
        for call in calls:
            mode = self.mode_of_export(call)
            for info, receiver in self.compiled_by(call):
                yield replace(self.entry(info, call, _spelling(call), receiver), mode=mode)

    def may_compile(self, node: ast.Call) -> bool:
        """True if a call is worth a closer look: to resolve its arguments, the whole file must be read."""
        func = node.func
        if isinstance(func, ast.Call):
            return is_compiler(self.index, func)
        if isinstance(func, ast.Attribute):
            if func.attr == "compile":
                return self.index.dotted(func) not in _OTHER_COMPILERS
            return func.attr in _LAST_NAMES and self.index.dotted(func) in COMPILERS
        return self.index.dotted(func) in COMPILERS

    def mode_of_export(self, call: ast.Call) -> Mode | None:
        """The mode in which a call exports; None for one that compiles."""
        if self.index.dotted(call.func) != EXPORT:
            return None
        strict = next((keyword.value for keyword in call.keywords if keyword.arg == "strict"), None)
        is_strict = isinstance(strict, ast.Constant) and strict.value is True
        return Mode.EXPORT_STRICT if is_strict else Mode.EXPORT

    def entry(self, info: FunctionInfo, node: ast.expr, how: str, owner: ClassInfo | None) -> Entry:
        return Entry(info, Region(self.index.module.display, node.lineno, how, info.qualname), owner)

    def decorated(
        self, decorators: list[ast.expr], info: FunctionInfo | None, owner: ClassInfo | None
    ) -> Iterator[Entry]:
        for decorator in decorators:
            if info is not None and is_compiler(self.index, decorator):
                yield self.entry(info, decorator, "@torch.compile", owner)

    def compiled_by(self, node: ast.Call) -> Iterator[tuple[FunctionInfo, ClassInfo | None]]:
        """The functions that a call hands to the compiler, each with the class that it is a method of."""
        target: ast.expr | None = None
        if self.index.dotted(node.func) in COMPILERS:
            keywords = {k.arg: k.value for k in node.keywords}
            target = node.args[0] if node.args else keywords.get("model", keywords.get("mod"))
        elif isinstance(node.func, ast.Call) and is_compiler(self.index, node.func) and node.args:
            target = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "compile":
            # `model.compile()`; re.compile and the like name no module of the project.
            found = self.resolve(node.func.value)
            if isinstance(found, ClassInfo) and self.project.is_module(found):
                yield from self.called(found)
            return
        found = self.resolve(target) if target is not None else None
        if isinstance(found, FunctionInfo):
            yield found, found.owner
        elif found is not None:
            yield from self.called(found)

    def called(self, owner: ClassInfo) -> Iterator[tuple[FunctionInfo, ClassInfo]]:
        """The function that runs when an instance of a class is called."""
        function = self.project.method(owner, "forward") or self.project.method(owner, "__call__")
        if function is not None:
            yield function, owner

    def read_variables(self) -> None:
        """Names and ``self`` attributes that hold an instance of a class of the project, or a function."""
        for info in self.index.all_functions.values():
            given = info.node.args
            for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                owner = self.promised(self.index, argument.annotation)
                if owner is not None:
                    self.variables.setdefault(argument.arg, owner)
        for node in walk(self.index.tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                key = ast.unparse(node.targets[0]) if isinstance(node.targets[0], ast.Name | ast.Attribute) else ""
                value = self.resolve(node.value)
                if key and value is not None:
                    self.variables.setdefault(key, value)

    def resolve(self, node: ast.expr) -> _Named | None:
        """The class (of an instance) or function that an expression refers to."""
        if isinstance(node, ast.IfExp):
            return self.resolve(node.body) or self.resolve(node.orelse)
        if isinstance(node, ast.Call):
            return self.resolve_call(node)
        if isinstance(node, ast.Name):
            return self.index.functions.get(node.id) or self.variables.get(node.id) or self.imported(node)
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if text in self.variables:
                return self.variables[text]
            owner = self.resolve(node.value)
            if isinstance(owner, ClassInfo):
                return self.project.method(owner, node.attr)
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                candidates = [c.methods[node.attr] for c in self.index.classes.values() if node.attr in c.methods]
                return candidates[0] if len(candidates) == 1 else None
            return self.imported(node)
        return None

    def resolve_call(self, node: ast.Call) -> _Named | None:
        if self.index.dotted(node.func) in COMPILERS and node.args:
            return self.resolve(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr in RETURN_THE_MODULE:
            return self.resolve(node.func.value)
        dotted = self.index.dotted(node.func)
        owner = self.index.class_named(dotted) if dotted else None
        if owner is not None:
            return owner
        maker = self.resolve(node.func)
        return self.made_by(maker) if isinstance(maker, FunctionInfo) else None

    def made_by(self, maker: FunctionInfo) -> ClassInfo | None:
        """The class of what a factory returns: as it is annotated, or as its ``return`` constructs it."""
        owner = self.promised(maker.index, getattr(maker.node, "returns", None))
        if owner is not None:
            return owner
        made: dict[str, ClassInfo] = {}
        for node in maker.own_nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                owner = self.promised(maker.index, node.value.func)
                if owner is not None:
                    made |= {target.id: owner for target in node.targets if isinstance(target, ast.Name)}
        for node in maker.own_nodes:
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
                return self.promised(maker.index, node.value.func)
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and node.value.id in made:
                return made[node.value.id]
        return None

    def promised(self, index: ModuleIndex, annotation: ast.expr | None) -> ClassInfo | None:
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return index.class_named(annotation.value)
        dotted = index.dotted(annotation) if annotation is not None else None
        return index.class_named(dotted) if dotted else None

    def imported(self, node: ast.expr) -> FunctionInfo | None:
        dotted = self.index.dotted(node)
        return self.index.function_named(dotted) if dotted and "." in dotted else None
