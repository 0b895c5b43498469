"""What guards demand, in words, and which of those that failed explains a recompile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from breakscan.explanation.compilations import CompiledFrame
from breakscan.recording.parsers.guards import (
    Demand,
    DemandKind,
    ParsedGuard,
    TensorDemand,
    Within,
    lost_view,
    read_guard,
    with_article,
)
from breakscan.recording.records import Code, FailedGuard, RecompileSeen


def demand_words(demand: Demand | TensorDemand) -> str:
    """What has to hold: ``n is a tensor``."""
    subject = demand.subject
    if isinstance(demand, TensorDemand):
        size, stride = (text.replace("None", "any") for text in (demand.size, demand.stride))
        kind = f"{demand.dtype} {demand.class_} on {demand.device}"
        return f"{subject} is a {kind} of size {size} and stride {stride}, with requires_grad={demand.requires_grad}"
    match demand.kind:
        case DemandKind.HOLDS | DemandKind.QUOTED:
            return demand.code
        case DemandKind.VIEW:
            return f"{subject} is a view of another tensor"
        case DemandKind.TENSOR:
            return f"{subject} is a tensor"
        case DemandKind.CLASS:
            return f"{subject} is {with_article(demand.code) if demand.code else 'of the same type'}"
        case DemandKind.SAME_OBJECT:
            return f"{subject} is the same object"
        case DemandKind.FALSE:
            return f"{subject} is empty or false"
        case DemandKind.IN_MEMORY:
            return f"{subject} is still in memory"
        case DemandKind.UNCHANGED:
            return f"{subject} is unchanged"
        case _:
            return _WITHOUT_SUBJECT[demand.kind]


_WITHOUT_SUBJECT = {
    DemandKind.SAME_BACKEND: "the backend is the same as before",
    DemandKind.DISTINCT: "no two inputs are the same tensor",
    DemandKind.NOTHING: "no guard fails when asked again: two threads may have compiled it at once",
    DemandKind.GLOBAL_STATE: "grad mode, autocast, default dtype and other global settings are as they were",
    DemandKind.FUNCTION_MODES: "the same torch function modes are active",
    DemandKind.DEFAULT_DEVICE: "the default device is as it was",
    DemandKind.SAVED_TENSOR_HOOKS: "the hooks on saved tensors are as they were",
}


def value_words(value: str | Within) -> str:
    """A value that a guard is about."""
    return f"within {value.code}" if isinstance(value, Within) else value


def closest_guards(process: Iterable[RecompileSeen]) -> list[FailedGuard | None]:
    """Of each recompile of a process, in their order.

    A version that failed at the same guard before was replaced then by another one: why that one does not fit is what
    is new.  Of the versions that are left, the one most of whose guards held before one failed.
    """
    known: set[tuple[Code, str, Demand]] = set()
    closest = []
    for seen in process:
        failed = [(guard, (seen.frame, _version(seen, guard), read_guard(guard.text).demand)) for guard in seen.guards]
        fresh = [guard for guard, key in failed if key not in known]
        closest.append(max(fresh or seen.guards, key=lambda guard: guard.executed, default=None))
        known.update(key for _, key in failed)
    return closest


def parsed_guard(seen: RecompileSeen, failed: FailedGuard, compiles: Mapping[str, CompiledFrame]) -> ParsedGuard:
    """What the guard demanded; ``compiles`` are the compiled versions by their ids."""
    version = compiles.get(_version(seen, failed))
    demands = [guard.demand for guard in version.guards] if version else []
    return lost_view(failed.text, demands) or read_guard(failed.text)


def _version(seen: RecompileSeen, guard: FailedGuard) -> str:
    """The unique id of the version that the guard is of: compiled in the same process, after the same reset."""
    prefix = (seen.compile_id or "").rpartition(":")[0]
    return f"{prefix}:{guard.compile_id}" if prefix else guard.compile_id
