"""What to do about a recompile."""

from __future__ import annotations

from breakscan.explain.explanation import AdviceKind, Recompile, RecompileAdvice
from breakscan.report.explain.library_words import compiled_code_advice, package_of, passing_advice

_KEEP_SIZE = "keep the size constant, as by padding or drop_last=True"


def recompile_advice(recompile: Recompile) -> str | None:
    """The advice for the case at hand, else what the rule says; where a library is at work, what its user can do."""
    if (passing := passing_advice(recompile)) is not None:
        return passing
    advice = recompile.advice
    if advice is None:
        return compiled_code_advice(recompile, recompile.rule.instead if recompile.rule else None)
    if advice.kind is AdviceKind.VIEW:
        return compiled_code_advice(recompile, _words(advice))
    return _words(advice)


def _words(advice: RecompileAdvice) -> str:
    name, place = advice.name, f"{advice.path.rpartition('/')[2]}:{advice.line}"
    mark = f"torch._dynamo.mark_dynamic({{}}, {advice.dimension}) before the first call"
    match advice.kind:
        case AdviceKind.BREAK_IN_CALLER:
            remove = "see what helps against" if package_of(advice.path) else "first remove"
            return f"{remove} the break at {place}: it makes {name} run eager, and compile this on its own"
        case AdviceKind.VALUE_ACROSS_BREAK:
            return f"remove the break at {place}: the code after it is compiled for the values that cross it"
        case AdviceKind.ATTRIBUTE:
            return f"set {name} to {advice.value} before the first compiled call"
        case AdviceKind.ARGUMENTS:
            return "pass the same arguments in each call, by the same names and in the same order"
        case AdviceKind.NUMBER_AS_INDEX:
            return (
                "as an index, a tensor of one number is compiled in as that number; "
                "table.index_select(0, t.reshape(1)) in place of table[t] keeps it in the graph"
            )
        case AdviceKind.FROZEN_PARAMETER:
            return "freeze and unfreeze parameters before the first compiled call: what changed is one of them"
        case AdviceKind.PARAMETER:
            return "convert the model before its first compiled call: what changed is one of its parameters"
        case AdviceKind.GRADIENT:
            return (
                "change nothing if it happens only once: inputs that require a gradient are compiled separately from "
                f"those that do not. If no gradient has to pass through {name}, call {name}.detach() before the call"
            )
        case AdviceKind.LEARNING_RATE:
            return "give the optimizer its learning rate as a tensor: lr=torch.tensor(1e-3)"
        case AdviceKind.VIEW:
            return f"pass {name}.clone() in each call: of a view, the tensor behind it is compiled in as well"
        case AdviceKind.SIZE_0_OR_1:
            return (
                "change nothing if it happens only once: sizes 0 and 1 are compiled separately, with dynamic=True as "
                "well"
            )
        case AdviceKind.SIZE_OF_POSITIONAL:
            return f"call {mark.format('t')}, with t what is passed as {name}, or {_KEEP_SIZE}"
        case AdviceKind.SIZE_OF_PARAMETER:
            return f"call {mark.format(name)}, or {_KEEP_SIZE}"
        case AdviceKind.SIZE:
            return f"compile with torch.compile(..., dynamic=True), or {_KEEP_SIZE}"
