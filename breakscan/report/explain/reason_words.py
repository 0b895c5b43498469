"""Why a function is not compiled, what to do about that, and why a dynamic size became a constant."""

from __future__ import annotations

import re

from breakscan.explain.compiled import CompiledFrame, ConstantReason
from breakscan.explain.explanation import UncompiledFrame
from breakscan.explain.reasons import OverLimit, Quoted, RaisedInTrace, Reason
from breakscan.record.parsers.frames import Skip
from breakscan.report.explain.library_words import failure_advice

_SKIPS = {
    Skip.NO_TENSOR: "it was called without a tensor",
    Skip.NO_OPERATION: "it holds no tensor operation to compile",
    Skip.FILE: "its file is one that the compiler does not trace",
    Skip.DISPATCH_MODE: "a torch dispatch mode is active, under which nothing is compiled",
    Skip.SWITCHED_OFF: "torch.compile is switched off",
}
_CONSTANTS = {
    ConstantReason.NUMBER: "the code needs it as a Python number",
    ConstantReason.COMPARED: "the code compares it with a number, and goes on as the comparison said",
    ConstantReason.OTHER: "the code depends on it",
}

_RESTARTS = {
    "fail_and_restart_analysis": "a graph break, for which torch gives no reason",
    "UnspecializeRestartAnalysis": "a module is traced again as one that may change",
    "CompileCollectiveRestartAnalysis": "the ranks have exchanged what they know of sizes",
    "TensorifyScalarRestartAnalysis": "a Python float must be a constant of the graph",
}


def restarts_in_words(frame: CompiledFrame) -> list[str]:
    """Why Dynamo began to trace a function anew: torch gives a sentence, or the name of an exception."""
    return [_RESTARTS.get(_last_name(reason), reason) for reason in frame.restarts]


def _last_name(text: str) -> str:
    return next(iter(re.findall(r"\w+", text)[-1:]), "")


def reason_words(reason: Reason) -> str:
    """``its file is one that the compiler does not trace``."""
    match reason:
        case Quoted(text):
            return text or "the compiler passed it over, and does not say why"
        case Skip():
            return _SKIPS[reason]
        case OverLimit(limit, raises):
            if limit is None:
                after = "which is an error here" if raises else "so further variants run eager"
                return f"it was recompiled more often than torch allows, {after}"
            setting = f"which is the limit (torch._dynamo.config.{limit.setting})"
            return f"{limit.value} versions of it are compiled, {setting}, so further variants run eager"
        case RaisedInTrace(path, line, error):
            return f"while Dynamo traced {path.rpartition('/')[2]}:{line}, this was raised: {error}"


def constant_words(reason: ConstantReason) -> str:
    """Why a dynamic size became a constant."""
    return _CONSTANTS[reason]


def frame_advice(frame: UncompiledFrame) -> str | None:
    """The advice of the rule or of torch; of what was raised while Dynamo traced, what helps against that."""
    if (known := failure_advice(frame)) is not None:
        return known
    if isinstance(frame.reason, RaisedInTrace):
        return "run that code before the compiled call and keep its result, or keep it out with torch.compiler.disable"
    return frame.advice
