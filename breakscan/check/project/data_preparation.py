"""Modules that only prepare data for a model, in the workers that load it: nobody compiles them."""

from __future__ import annotations

import ast

from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex

_TRANSFORMS = "torchvision.transforms."
_LIBRARIES = (_TRANSFORMS, "PIL.", "cv2.", "albumentations.", "skimage.")


def prepares_data(project: Project, owner: ClassInfo) -> bool:
    """Whether a module without layers is a transform of torchvision, uses a library for images, or is in a file or
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
    """Whether a method creates a layer or a parameter."""
    names = (method.index.dotted(node.func) or "" for node in method.own_nodes if isinstance(node, ast.Call))
    return any(name.startswith("torch.nn.") and name.count(".") == 2 for name in names)


def _calls_part(method: FunctionInfo, own: set[str]) -> bool:
    """Whether a method calls something that the object holds, as a module calls its layers."""
    called = (node.func for node in method.own_nodes if isinstance(node, ast.Call))
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == method.first_parameter
        and node.attr not in own
        for node in called
    )
