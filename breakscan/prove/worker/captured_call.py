"""A captured call and a captured callable: what the program passed to what ``torch.compile`` returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from breakscan.prove.worker.protocol import StateDigests
from breakscan.prove.worker.state_snapshot import StateSnapshot
from breakscan.prove.worker.torch_modes import Modes

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(slots=True)
class CapturedCall:
    """One call: its arguments, the values in them, and the modes that it ran in.

    ``state`` is the state that the call found beside its inputs, kept for a first call only: later calls often find
    another one.  ``has_returned`` says that the program has its result, ``backward`` that the program ran the backward
    pass of it.
    """

    args: tuple[object, ...]
    kwargs: dict[str, object]
    inputs: StateSnapshot
    rng: dict[str, Tensor]
    modes: Modes
    state: StateSnapshot | None = None
    has_returned: bool = False
    backward: bool = False


@dataclass(slots=True)
class CapturedCallable:
    """One compiled callable.

    ``original`` is what was compiled, ``compiled`` what ``torch.compile`` returned for it.  ``state`` is what its last
    captured call could reach beside its inputs.
    """

    name: str
    original: Callable[..., object]
    compiled: Callable[..., object]
    calls: list[CapturedCall] = field(default_factory=list)
    state: StateSnapshot | None = None
    start: StateDigests = field(default_factory=StateDigests)
    """Digests of what the first call could reach."""
    context: Callable[..., Callable[..., object]] | None = None
    """The arguments of ``torch.compile``, as Dynamo keeps them."""
    module: Any = None
    """The module that ``torch.compile`` returned, if it was given one."""
    passed: bool = False
    """It is not waited for: there are too many callables, or it runs within another one."""

    @property
    def entry(self) -> Callable[..., object]:
        """What the program calls.  A module around ``compiled`` takes time as well."""
        if self.module is None:
            return self.compiled
        self.module.forward = self.compiled
        module: Callable[..., object] = self.module
        return module

    @property
    def backward(self) -> bool:
        """Whether the program runs the backward pass of its results.  After the last captured call it is stopped."""
        return any(call.backward for call in self.calls)

    @property
    def may_run_backward(self) -> bool:
        """Whether only later calls show if the program runs the backward pass of its only captured call."""
        if len(self.calls) != 1:
            return False
        call = self.calls[0]
        return call.modes.grad and not call.modes.inference and not call.has_returned

    def snapshots(self) -> list[StateSnapshot]:
        """All of its snapshots, in an order that is the same in all processes."""
        assert self.state is not None
        own = [call.state for call in self.calls if call.state is not None]
        return [self.state, *own, *(call.inputs for call in self.calls)]

    def snapshots_of(self, call: CapturedCall) -> tuple[StateSnapshot, StateSnapshot]:
        """The state and the inputs of one of its calls."""
        state = call.state or self.state
        assert state is not None
        return state, call.inputs
