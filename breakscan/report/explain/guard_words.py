"""What guards demand, in words."""

from __future__ import annotations

from breakscan.record.parsers.guards import Demand, DemandKind, TensorDemand, Within, with_article


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
