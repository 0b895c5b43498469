"""The functions at which the compiler starts, and those that it never enters."""

import ast
from collections.abc import Iterator

from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.check.project.roots import Entry, Roots, find_roots, is_test, may_compile
from breakscan.model.findings import Assumption, Mode, Region
from breakscan.source.walking import is_name

# Modules that only prepare data for a model, in the workers that load it: nobody compiles them.
_TRANSFORMS = "torchvision.transforms."
_LIBRARIES = (_TRANSFORMS, "PIL.", "cv2.", "albumentations.", "skimage.")


def prepares_data(project: Project, owner: ClassInfo) -> bool:
    """True if a module creates no layers and is a transform of torchvision, is in a file or folder that is named for
    augmentation, or calls a library for images and no part of its own."""
    chain = project.bases_of(owner)
    derived = any(base.startswith(_TRANSFORMS) for base in project.outside_bases(owner))
    parts = owner.index.name.split(".")
    is_named = derived or any(part.startswith("augment") or "preprocess" in part for part in parts)
    if not is_named and not any(f"{name}.".startswith(_LIBRARIES) for c in chain for name in c.index.imports.values()):
        return False
    methods = {name: method for info in chain for name, method in info.methods.items()}
    calls = [(method, call.func) for method in methods.values() for call in method.own_calls]
    names = [method.index.dotted(func) or "" for method, func in calls]
    makes_layers = any(name.startswith("torch.nn.") and name.count(".") == 2 for name in names)
    if is_named or makes_layers:
        return not makes_layers
    used = [(func, method.first_parameter or "") for method, func in calls if isinstance(func, ast.Attribute)]
    calls_part = any(func.attr not in methods for func, self in used if is_name(func.value, self))
    return not calls_part and any(name.startswith(_LIBRARIES) for name in names)


_DISABLING = frozenset({"torch.compiler.disable", "torch._dynamo.disable"})
_KERNELS = tuple(f"{one}." for one in "torch.library triton tilelang helion numba cutlass taichi warp".split())
"""The modules whose decorators make operators and kernels, which no compiler of torch looks into."""
_UNTRACED = _DISABLING.union(
    "torch._disable_dynamo torch.compiler.assume_constant_result torch.compiler.allow_in_graph "
    "torch._dynamo.allow_in_graph torch._dynamo.nonstrict_trace torch.compiler.nonstrict_trace".split()
)
"""Decorators that keep Dynamo out of a function."""
# Methods that run while a model is built, saved or shown, not while it computes.
_NEVER_COMPILED = frozenset(
    "__init__ __new__ __repr__ __str__ __len__ __del__ __getstate__ __setstate__ __reduce__ __init_subclass__ "
    "extra_repr reset_parameters _init_weights init_weights from_pretrained save_pretrained state_dict "
    "load_state_dict _load_from_state_dict setUp tearDown".split()
)


def is_untraced(info: FunctionInfo, mode: Mode = Mode.DEFAULT) -> bool:
    """True if a decorator keeps the compiler out of the function.  A plain export runs what Dynamo is kept out of."""
    own, ends = () if mode is Mode.EXPORT else _UNTRACED, (".custom_op", ".register_kernel")
    return any(one in own or one.startswith(_KERNELS) or one.endswith(ends) for one in info.decorators)


def disabling_decorator(info: FunctionInfo) -> str | None:
    """The decorator by which the function, when traced code calls it, ends the graph; None without one."""
    return next((name for name in info.decorators if name in _DISABLING), None)


def find_entries(project: Project, index: ModuleIndex, regions: str, mode: Mode) -> tuple[list[Entry], Roots]:
    """The entries of a file, and what it compiles by name. ``auto`` takes what the file itself compiles, else every
    ``nn.Module.forward`` but those that prepare data or train. ``roots`` takes the first of the two, ``modules`` every
    ``forward``, ``all`` every function that could be compiled. What the file exports counts where ``mode`` is one of
    exports, or where the file compiles nothing else."""
    known = find_roots(project, index) if regions != "modules" else Roots()
    exported = [entry for entry in known.entries if entry.mode is not None and entry.mode.exports]
    compiled = [entry for entry in known.entries if entry.mode is None or not entry.mode.exports]
    roots = _unique(exported if mode.exports or not compiled else compiled, mode)
    if regions == "roots" or (regions == "auto" and roots and may_compile(index)):
        return roots, known
    if regions == "all":
        return _unique([*roots, *_everything(project, index), *_inherited(project, index)], mode), known
    modules = {owner: project.method(owner, "forward") for owner in index.classes.values() if project.is_module(owner)}
    found = _unique((_assumed(method, Assumption.FORWARD, owner) for owner, method in modules.items() if method), mode)
    if regions == "modules":
        return found, known
    if is_test(index.module.display):
        return roots, known
    kept = [entry for entry in found if not _makes_optimizer(entry.function)]
    assumed = [entry for entry in kept if entry.receiver is None or not prepares_data(project, entry.receiver)]
    return _unique([*roots, *assumed], mode), known


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
    return any((function.index.dotted(call.func) or "").startswith("torch.optim.") for call in function.own_calls)


def _unique(entries: Iterator[Entry] | list[Entry], mode: Mode = Mode.DEFAULT) -> list[Entry]:
    found: dict[tuple[FunctionInfo, ClassInfo | None], Entry] = {}
    for entry in entries:
        if not is_untraced(entry.function, entry.mode or mode):
            found.setdefault((entry.function, entry.receiver), entry)
    return list(found.values())


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
                called = (call.func for call in info.own_calls)
                own = {f.attr for f in called if isinstance(f, ast.Attribute) and is_name(f.value, info.receiver)}
                if name not in known and name not in _NEVER_COMPILED and not defined.isdisjoint(own):
                    yield _assumed(info, Assumption.FUNCTION, owner)
            known |= base.methods.keys()


def _assumed(info: FunctionInfo, why: Assumption, receiver: ClassInfo | None = None) -> Entry:
    region = Region(info.index.module.display, info.node.lineno, "", info.qualname, why)
    return Entry(info, region, receiver or info.owner, compiled=False)
