"""Compiles the repeated blocks of a module by themselves, as ``block.compile()`` does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from breakscan.prove.worker.capture import subject_of
from breakscan.prove.worker.captured_call import CapturedCallable
from breakscan.prove.worker.compile_hook import CompileHook
from breakscan.prove.worker.protocol import CallableBlocks, OtherPart, RegionalCompile
from breakscan.prove.worker.repeated_blocks import Blocks, blocks_of, has_forward_of_torch

if TYPE_CHECKING:
    from torch.nn import Module


@dataclass(frozen=True, slots=True)
class _Replaced:
    """An attribute that was set, and what was in its place in the object itself."""

    owner: object
    name: str
    value: object
    before: object

    def put_in(self) -> None:
        setattr(self.owner, self.name, self.value)

    def take_out(self) -> None:
        if self.before is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


_ABSENT = object()


class RegionalCompiler:
    """Compiles parts of the captured callables with the program's own arguments of ``torch.compile``."""

    def __init__(self, callables: Sequence[CapturedCallable], hook: CompileHook) -> None:
        self._callables = callables
        self._hook = hook
        self._replaced: list[_Replaced] = []

    def blocks(self) -> tuple[CallableBlocks, ...]:
        """What of each callable can be compiled by itself."""
        return tuple(map(_described, self._callables))

    def compile(self, regional: RegionalCompile) -> None:
        """Compiles parts of each callable that has blocks, and leaves the others compiled as they are."""
        for captured in self._callables:
            module = _module_of(captured)
            found = blocks_of(module) if module is not None else Blocks()
            if not found.blocks:
                continue
            if regional is RegionalCompile.NESTED:
                self._mark(found)
                continue
            parts = {**found.blocks, **(found.rest if regional is RegionalCompile.BLOCKS_AND_REST else {})}
            assert captured.context is not None
            for part in parts.values():
                compiled = self._hook.compile_like(_traceable(part), captured.context)
                self._replace(part, "_compiled_call_impl", compiled)
            # The program would call the module itself.
            captured.compiled, captured.module = captured.original, None

    @contextlib.contextmanager
    def taken_out(self) -> Iterator[None]:
        """Takes all that was compiled out of the modules while the block runs: eager code does not call through it."""
        for one in self._replaced:
            one.take_out()
        try:
            yield
        finally:
            for one in self._replaced:
                one.put_in()

    def _mark(self, found: Blocks) -> None:
        import torch

        mark: Callable[..., object] = torch.compiler.nested_compile_region
        for kind in {type(block): None for block in found.blocks.values()}:
            self._replace(kind, "forward", mark(kind.forward))

    def _replace(self, owner: object, name: str, value: object) -> None:
        one = _Replaced(owner, name, value, vars(owner).get(name, _ABSENT))
        if any((other.owner, other.name) == (owner, name) for other in self._replaced):
            return
        one.put_in()
        self._replaced.append(one)


def has_nested_regions() -> bool:
    """Whether torch can compile a region within a graph once."""
    import torch

    return hasattr(torch.compiler, "nested_compile_region")


def _traceable(part: Module) -> Callable[..., object]:
    """The call of a module as a function in which Dynamo starts to trace."""
    from torch._dynamo.external_utils import wrap_inline

    call: Callable[..., object] = part._call_impl
    return wrap_inline(call) if has_forward_of_torch(part) else call


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
