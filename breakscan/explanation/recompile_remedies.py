"""Remedies for recompiles: made from what changed, from what holds it, and from how the function is compiled."""

from __future__ import annotations

import re
from collections.abc import Sequence

from breakscan.explanation.context import package_of
from breakscan.explanation.libraries import Against, known_for_library
from breakscan.explanation.recompiles import Recompile, changes_of
from breakscan.model.findings import Mode, Origin
from breakscan.model.problem import ChangeKind, Holder, SharedCode, ValueChange
from breakscan.model.remedy import COMPILE, DYNAMO, NewLine, Remedy, RemedyKind, Setting
from breakscan.model.torch_versions import version_key
from breakscan.model.words import place
from breakscan.rulebook.remedies import INTEGERS_OPEN, rule_remedies, with_setting

Remedies = tuple[Remedy, ...]
_ARGUMENTS = re.compile(r"^(?:len\((?:kw)?args\)|(?:not )?'\w+' in kwargs|list\(kwargs\)\[\d+\])$")
_LEARNING_RATE = re.compile(r"\.param_groups\[\d+\]\['lr'\]$")
_STATE = re.compile(r"\bself\.state\b")
"""The state of an optimizer."""
_MOMENTUM = re.compile(r"\.param_groups\[\d+\]\['(?:betas|momentum)'\]")
_INTEGERS = re.compile(r"-?\d+")
_LITERAL = re.compile(r"'[^']*'|-?\d+(?:\.\d+)?|True|False")
_APART = {"0", "1"}
"""Sizes that are compiled separately from all others."""
_FEW = 3
"""Values for each of which a version is no loss."""
_OF_RULE = {
    ChangeKind.TYPE,
    ChangeKind.TENSOR_TYPE,
    ChangeKind.FUNCTION,
    ChangeKind.ALIAS,
    ChangeKind.BACKEND,
    ChangeKind.LENGTH,
}
"""Changes about which the rule says all that there is to do."""
_OF_OBJECTS = {ChangeKind.NUMBER, ChangeKind.FLAG, ChangeKind.SET_LATER}
"""Changes of values that a compiled function can be given in place of the object."""


def recompile_remedies(group: Sequence[Recompile], shared: SharedCode | None) -> Remedies:
    """The remedies for recompiles of one cause, the best first; ``shared`` is the function, if it has many versions."""
    first = group[0]
    changes = changes_of(group)
    change = changes[0]
    of_library = _of_library(first, change)
    if of_library is not None:
        return of_library
    if first.made_by is not None:
        at, function = first.made_by
        text = f"remove the break at {place(at)}: it makes {function} run eager, and compile this on its own"
        return _construct("remove-break", text)
    if change.holder is Holder.RESULT:
        where = place(change.switched_at or first.site)
        text = f"remove the break at {where}: the code after it is compiled for the values that cross it"
        return _construct("remove-break", text)
    own = next((one for one in changes if one.objects > 1 and (one.is_parameter or one.kind in _OF_OBJECTS)), None)
    if own is not None:
        return _of_objects(first, own, _number_of_objects(first, own, shared) if own == change else None)
    functions = [one.subject for one in changes if one.kind in (ChangeKind.FUNCTION, ChangeKind.OBJECT)]
    if functions and len(changes) > 1:
        return _nothing("own-version", f"each object that {functions[0]} was is compiled once")
    return _of_named(first, change) or _of_kind(group, change)


def _of_library(first: Recompile, change: ValueChange) -> Remedies | None:
    """The remedies where a library passes what changed, or where the code is a library's; else None."""
    trigger = first.trigger
    if trigger is not None and trigger.origin is Origin.LIBRARY:
        package = package_of(trigger.path) or "a library"
        if _ARGUMENTS.match(first.subject):
            known = known_for_library(trigger.path, Against.ARGUMENTS)
            text = known or f"change nothing if it happens only once: the call is in code of {package}"
            return (Remedy(RemedyKind.NOTHING, f"library-{package}", text),)
        if change.kind is ChangeKind.SIZE:
            known = known_for_library(trigger.path, Against.SIZE, first.subject, str(change.dimension))
            if known is not None:
                return (Remedy(RemedyKind.SHAPES, f"library-{package}", known),)
            if first.opened:
                return (
                    _DYNAMIC,
                    *_sources(change),
                    Remedy(RemedyKind.SHAPES, "one-size", f"give {package} data of one size"),
                )
    owner = package_of(first.site.path)
    old, new = change.values[:1], change.values[1:]
    if owner and "." in change.subject and old == ("None",) and new and _LITERAL.fullmatch(new[0]):
        return _construct("set-before", f"set {change.subject} to {new[0]} before the first compiled call")
    if owner is None or first.origin is not Origin.LIBRARY or first.made_by is not None:
        return None
    known = known_for_library(first.site.path, Against.CODE)
    if known is not None:
        return (Remedy(RemedyKind.REGION, f"library-{owner}", known),)
    return (
        Remedy(
            RemedyKind.NOTHING, "report-to-library", f"change nothing if it happens only once: it is code of {owner}"
        ),
    )


_DYNAMIC = Remedy(
    RemedyKind.SHAPES,
    "dynamic",
    "compile with torch.compile(..., dynamic=True): one version for all sizes",
    (Setting(COMPILE, "dynamic", "True"),),
)


def _sources(change: ValueChange) -> Remedies:
    """The setting that leaves all sizes of an argument open, where the call is in code that is not the user's."""
    if change.holder is not Holder.ARGUMENT or not change.owner.isidentifier():
        return ()
    setting = Setting("torch.compiler.config", "dynamic_sources", repr(f"L['{change.owner}']"))
    return (
        Remedy(
            RemedyKind.SHAPES,
            "dynamic-sources",
            f"set {setting}: the sizes of {change.owner} are then left open",
            (setting,),
        ),
    )


def _number_of_objects(first: Recompile, change: ValueChange, shared: SharedCode | None) -> int | None:
    """The number of objects with a value of their own, those too for which there is no version; None if not known."""
    if first.how.calls > 1:
        return first.how.calls
    if first.hit_limit and change.kind not in _OF_OBJECTS:
        return None
    return max(change.objects, len({*change.values, *(shared.eager_values if shared else ())}))


def _of_objects(first: Recompile, change: ValueChange, number: int | None) -> Remedies:
    """The remedies where each object of a class has its own value, and all of them share the code of a function."""
    remedies = []
    if change.holder is Holder.MODULE and _are_integers(change):
        remedies.append(with_setting(INTEGERS_OPEN))
    if first.how.calls > 1 and version_key(first.how.torch) >= (2, 13):
        setting = Setting(COMPILE, "isolate_recompiles", "True")
        text = f"{setting} keeps the versions of the objects apart, so that they share no limit"
        remedies.append(Remedy(RemedyKind.SETTING, "isolate_recompiles", text, (setting,)))
    if first.hit_limit:
        remedies.append(recompile_limit(str(number or "N"), "the number of objects"))
    if change.kind in _OF_OBJECTS:
        text = f"keep {change.subject} out of the compiled code: pass in what it selects"
        remedies.append(Remedy(RemedyKind.CONSTRUCT, "hoist", text))
    if not first.hit_limit:
        remedies += _nothing(
            "own-version", f"each of the {change.objects} objects is compiled once, for its own {change.subject}"
        )
    return tuple(remedies)


def recompile_limit(number: str, of: str) -> Remedy:
    """Raise the limit of versions of a function to a number, which is "N" where it is not known."""
    setting = Setting(DYNAMO, "recompile_limit", number)
    settings = (setting,) if number.isdigit() else ()
    return Remedy(RemedyKind.SETTING, "recompile_limit", f"set {setting}, {of}: none runs eager then", settings)


def _are_integers(change: ValueChange) -> bool:
    return all(_INTEGERS.fullmatch(value) for value in change.values)


def _of_named(first: Recompile, change: ValueChange) -> Remedies:
    """The remedies for what torch's text names: arguments, views, indices, numbers of optimizers."""
    view = first.guard.view
    if change.kind is ChangeKind.LENGTH and _STATE.search(change.subject):
        return _nothing(
            "first-step", "an optimizer makes its state in its first step, and is compiled again once for that"
        )
    if _ARGUMENTS.match(change.subject):
        return _construct(
            "same-arguments", "pass the same arguments in each call, by the same names and in the same order"
        )
    if view is not None:
        return _construct("clone-view", f"pass {view}.clone() in each call: of a view, its base is compiled in as well")
    if change.subject.endswith(".item()"):
        return _construct(
            "index-select",
            "as an index, a tensor of one number is compiled in as that number; "
            "table.index_select(0, t.reshape(1)) in place of table[t] keeps it in the graph",
        )
    if _LEARNING_RATE.search(change.subject):
        return _construct("tensor-lr", "give the optimizer its learning rate as a tensor: lr=torch.tensor(1e-3)")
    if _MOMENTUM.search(change.subject):
        return _construct(
            "cycle-momentum",
            "give the scheduler cycle_momentum=False: it changes a number of the optimizer in each step",
        )
    return ()


def _construct(name: str, text: str) -> Remedies:
    return (Remedy(RemedyKind.CONSTRUCT, name, text),)


def _nothing(name: str, text: str) -> Remedies:
    return (Remedy(RemedyKind.NOTHING, name, f"change nothing: {text}"),)


def _of_kind(group: Sequence[Recompile], change: ValueChange) -> Remedies:
    first, once = group[0], len(group) == 1
    owner = change.owner or change.subject
    switched = f" ({place(change.switched_at)} switches it)" if change.switched_at else ""
    match change.kind:
        case ChangeKind.SIZE:
            return _of_sizes(group, change)
        case ChangeKind.BRANCH_ON_SIZE if once and change.values[-1] in _APART:
            return _nothing("apart", "sizes 0 and 1 are compiled separately from all others, once")
        case ChangeKind.BRANCH_ON_SIZE if once:
            return _nothing("both-sides", "each side of the test is compiled once")
        case ChangeKind.BRANCH_ON_SIZE:
            at = f" at {place(change.asked_at)}" if change.asked_at else ""
            return _construct("test-outside", f"take the test{at} out of the compiled code, or pad to a few sizes")
        case ChangeKind.TRAINING | ChangeKind.GRAD_MODE:
            return _nothing("both-modes", f"there is one version for each mode, and both are kept{switched}")
        case ChangeKind.GLOBAL_STATE:
            return _construct("one-state", f"set {change.subject} once, before the first compiled call{switched}")
        case ChangeKind.OBJECT | ChangeKind.FREED if change.objects < 2:
            return _construct("made-once", f"make {change.subject} once, and pass the same object in each call")
        case ChangeKind.EQUAL_SIZES if once:
            return _nothing("equal-sizes", "sizes that are equal are compiled separately from others, once")
        case ChangeKind.LAYOUT if change.holder is Holder.ARGUMENT and owner.isidentifier():
            return _construct("contiguous", f"pass {owner}.contiguous() in each call, of the same number of dimensions")
        case ChangeKind.DTYPE | ChangeKind.DEVICE | ChangeKind.REQUIRES_GRAD if change.is_parameter:
            return _construct("convert-before", "convert, move or freeze the model before its first compiled call")
        case ChangeKind.RANK | ChangeKind.DTYPE | ChangeKind.DEVICE | ChangeKind.TYPE | ChangeKind.TENSOR_TYPE if once:
            return _nothing("both-kinds", f"a version for each kind of {owner} is kept")
        case ChangeKind.REQUIRES_GRAD:
            return _nothing("with-gradient", "inputs that require a gradient are compiled separately from others")
        case ChangeKind.INFERENCE:
            text = f"make {owner} under torch.no_grad() in place of torch.inference_mode(), or clone it outside of that"
            return _construct("no-inference-mode", text)
        case ChangeKind.KEYS if not once or change.holder is not Holder.ATTRIBUTE:
            return _construct(
                "same-keys", f"give {owner} the same keys in each call, those that are not used with a neutral value"
            )
        case ChangeKind.KEYS:
            return _nothing(
                "filled-once", f"{owner} gets its entry in the first call; a call before it is compiled would make it"
            )
        case ChangeKind.NUMBER if change.holder is Holder.MODULE and _are_integers(change):
            return rule_remedies(first.rule, Mode.DEFAULT, (INTEGERS_OPEN,)) if first.rule else ()
        case ChangeKind.NUMBER if not once and change.holder in (Holder.GLOBAL, Holder.CLOSURE):
            return _construct(
                "argument", f"pass {change.subject} as an argument: torch leaves a number open that is one"
            )
        case ChangeKind.NUMBER if once:
            text = "change nothing if it happens only once: torch leaves a number open that changes, where it can"
            return (Remedy(RemedyKind.NOTHING, "number-open", text),)
        case ChangeKind.NUMBER if change.holder is Holder.ARGUMENT and change.subject.endswith("']"):
            return _construct("tensor-number", f"keep {change.subject} as a tensor, if it is only computed with")
        case ChangeKind.NUMBER | ChangeKind.FLAG if len(change.values) <= _FEW:
            return _nothing("few-values", f"a version for each of {len(change.values)} values is kept")
        case ChangeKind.SET_LATER | ChangeKind.LENGTH if once:
            return (Remedy(RemedyKind.NOTHING, "once", "change nothing if it happens only once"),)
    return rule_remedies(first.rule, Mode.DEFAULT) if first.rule and change.kind in _OF_RULE else ()


def _of_sizes(group: Sequence[Recompile], change: ValueChange) -> Remedies:
    first = group[0]
    if first.how.dynamic == "False":
        left_out = Remedy(
            RemedyKind.SHAPES,
            "dynamic-false",
            "leave dynamic=False out of torch.compile: with it, each size is compiled",
        )
        return (left_out, *([recompile_limit("N", "for N sizes")] if first.hit_limit else []), _PAD)
    if len(change.values) == 2 and _APART & {*change.values}:
        return _nothing("apart", "sizes 0 and 1 are compiled separately from all others, once")
    if any(one.is_parameter for one in changes_of(group)):
        return _nothing("own-sizes", "sizes of parameters are compiled in, once for each shape")
    if not any(one.opened for one in group):
        return (_PAD,)
    sizes = [one for one in changes_of(group) if one.kind is ChangeKind.SIZE and one.dimension is not None]
    passed = first.passed
    code = "; ".join(f"torch._dynamo.mark_dynamic({passed.get(one.owner)}, {one.dimension})" for one in sizes)
    trigger = first.trigger
    if trigger is None or not all(one.owner in passed for one in sizes):
        return (_DYNAMIC, _PAD)
    text = f"write {code} before the call at {place(trigger)}: then the first version serves all sizes"
    return (Remedy(RemedyKind.SHAPES, "mark-dynamic", text, write=NewLine(trigger.path, trigger.line, code)), _PAD)


_PAD = Remedy(RemedyKind.SHAPES, "one-size", "give all calls one size, as by padding or drop_last=True")
