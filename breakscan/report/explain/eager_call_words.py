"""Why calls of something compiled ran eager, and what to do about it."""

from __future__ import annotations

from breakscan.explain.explanation import EagerCalls, Explanation
from breakscan.model.words import counted
from breakscan.record.records import DEFAULT_STANCE
from breakscan.report.explain.reason_words import reason_words

_STANCE = 'torch.compiler.set_stance("{}")'
_WHY = {
    "force_eager": "{stance} was in force, under which nothing compiled runs",
    "eager_on_recompile": "no compiled version fitted, and {stance} was in force, under which no other is made",
    "eager_then_compile": "{stance} was in force, under which the first call runs eager",
}
_INSTEAD = {
    "force_eager": "call it outside of this stance, if it is to be fast",
    "eager_on_recompile": "call it with such inputs before the stance is set, or with sizes marked by "
    "torch._dynamo.mark_dynamic, so that one version fits",
}


def eager_calls_reason(found: EagerCalls) -> str:
    """``100 of 101 calls used no compiled code: torch.compiler.set_stance("force_eager") was in force, …``."""
    return f"{_some_of(found)} used no compiled code: {_why(found)}"


def eager_calls_advice(found: EagerCalls) -> str | None:
    """What helps; None where nothing is wrong, or where the report says it of the function."""
    return _INSTEAD.get(found.stance)


def eager_calls_total(explanation: Explanation) -> str | None:
    """``100 of 101 calls ran eager``: those under another stance than the default.  Of the others, it is said which
    functions run eager."""
    eager = sum(found.calls for found in explanation.eager_calls if found.stance != DEFAULT_STANCE)
    return f"{eager} of {counted(sum(one.calls for one in explanation.calls), 'call')} ran eager" if eager else None


def _some_of(found: EagerCalls) -> str:
    if found.calls == found.of:
        return "the only call" if found.of == 1 else f"all {found.of} calls"
    return f"{found.calls} of {found.of} calls"


def _why(found: EagerCalls) -> str:
    if found.reason is not None:
        return reason_words(found.reason)
    stance = _STANCE.format(found.stance)
    return _WHY.get(found.stance, "{stance} was in force").format(stance=stance)
