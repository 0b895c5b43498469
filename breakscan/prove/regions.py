"""Finds the repeated blocks of a module, which can be compiled by themselves, as ``block.compile()`` does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from breakscan.prove.capture import CapturedCallable, subject_of
from breakscan.prove.protocol import BlockList, CallableBlocks, OtherPart

if TYPE_CHECKING:
    from torch.nn import Module


@dataclass(slots=True)
class Blocks:
    """The lists of repeated blocks in a module, and the largest parts of it that hold no block, by path.

    Dropout and activations are no part of either: there is nothing to fuse in them alone.
    """

    lists: list[BlockList] = field(default_factory=list)
    rest: dict[str, Module] = field(default_factory=dict)


def blocks_of(module: Module) -> Blocks:
    """The outermost repeated blocks of a module, and the rest of it."""
    found = Blocks()
    return found if _collect("", module, found) else Blocks()


def _collect(path: str, module: Module, found: Blocks) -> bool:
    """Adds the blocks in a module and what is next to them.  Returns whether it holds any."""
    repeated = _repeated(path, module)
    found.lists += [_block_list(path, module, names) for names in repeated]
    blocks = {name for names in repeated for name in names}
    inner = {f"{path}.{name}" if path else name: one for name, one in module.named_children() if name not in blocks}
    others = {its: child for its, child in inner.items() if not _collect(its, child, found)}
    if not blocks and len(others) == len(list(module.children())):
        return False
    for its, child in others.items():
        found.rest.update(_callable_parts(its, child))
    return True


def _repeated(path: str, module: Module) -> list[list[str]]:
    """The names of siblings of one class in a list of modules, for each class with more than one."""
    import torch

    if not isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
        return []
    alike: dict[object, list[str]] = defaultdict(list)
    for name, child in module.named_children():
        if not _is_layer(child):
            alike[_kind(child)].append(name)
    return [names for names in alike.values() if len(names) > 1]


def _kind(module: Module) -> object:
    """A key that is equal for modules that run the same code.  A ``Sequential`` runs that of its parts."""
    import torch

    inner = map(type, module.modules()) if isinstance(module, torch.nn.Sequential) else ()
    return type(module), *inner


def _is_layer(module: Module) -> bool:
    """Return True if it is a single layer of torch: compiled alone, there is little to fuse."""
    return type(module).__module__.startswith("torch.nn.") and not any(True for _ in module.children())


def _callable_parts(path: str, module: Module) -> Iterator[tuple[str, Module]]:
    """A module, or the modules in a list that cannot be called itself."""
    import torch

    if type(module) in (torch.nn.ModuleList, torch.nn.ModuleDict):
        for name, child in module.named_children():
            yield from _callable_parts(f"{path}.{name}", child)
    elif not (_is_layer(module) and not any(True for _ in _tensors(module))):
        yield path, module


def _tensors(module: Module) -> Iterator[object]:
    yield from module.parameters()
    yield from module.buffers()


def _block_list(path: str, module: Module, names: list[str]) -> BlockList:
    children = dict(module.named_children())
    first = children[names[0]]
    is_whole = len(names) == len(module._modules)
    return BlockList(path, type(first).__name__, has_forward_of_torch(first), tuple(names), is_whole)


def has_forward_of_torch(module: Module) -> bool:
    """Return True if the ``forward`` of a module is torch's: Dynamo does not start to trace in torch's files."""
    return str(getattr(type(module).forward, "__module__", "")).startswith("torch.")


def repeated_blocks(callables: Sequence[CapturedCallable]) -> tuple[CallableBlocks, ...]:
    """The parts of each callable that can be compiled by themselves."""
    return tuple(map(_described, callables))


def _described(captured: CapturedCallable) -> CallableBlocks:
    module = _module_of(captured)
    if module is None:
        return CallableBlocks(False)
    found = blocks_of(module)
    rest = tuple(OtherPart(path, has_forward_of_torch(part)) for path, part in found.rest.items())
    return CallableBlocks(True, tuple(found.lists), rest)


def _module_of(captured: CapturedCallable) -> Module | None:
    """The module that was compiled, or a method of which was compiled."""
    import torch

    subject = subject_of(captured.original)
    for one in (subject, getattr(subject, "__self__", None)):
        if isinstance(one, torch.nn.Module):
            return one
    return None
