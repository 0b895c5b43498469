"""Remedies: what to do about a break, a function that is not compiled, calls that ran eager, and recompiles.  Those for
recompiles are made from what changed, from what holds it, and from how the function is compiled."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.context import package_of
from breakscan.explanation.frames import UncompiledFrame
from breakscan.explanation.recompiles import APART, Recompile, changes_of, is_of_one_object
from breakscan.model.findings import ChangeKind, Holder, Mode, Origin, Site, Verdict
from breakscan.model.problem import Caller, SharedCode, ValueChange
from breakscan.model.remedy import NewLine, Remedy, RemedyKind
from breakscan.model.torch_versions import version_key
from breakscan.model.words import grouped, place
from breakscan.recording.parsers.frames import is_asked_for, is_call_of_hook
from breakscan.rulebook.remedies import INTEGERS_OPEN, NESTED, remedy, rule_remedies
from breakscan.source.toml_text import parse_toml

Remedies = tuple[Remedy, ...]
ISOLATED = "isolate_recompiles"


def break_remedies(site: BreakSite) -> Remedies:
    """The remedies for a break, the best first: in the user's code those of the rule."""
    within = (remedy("compile-within"),) if site.checkpointed else ()
    return in_its_thread((*_break_remedies(site), *within), site.in_thread)


def in_its_thread(remedies: Remedies, is_another: bool) -> Remedies:
    """The remedies; in another thread than the main one, in which a command would set them, settings are set there."""
    kept = [not is_another or one.kind is not RemedyKind.SETTING or one.name == ISOLATED for one in remedies]
    there = "in the thread that makes the call, since each has settings of its own"
    moved = (replace(one, text=f"{there}: {one.text}", settings=()) for one in remedies)
    return tuple(one if stays else new for one, new, stays in zip(remedies, moved, kept, strict=True))


def _break_remedies(site: BreakSite) -> Remedies:
    if site.fails or is_torchs_wish(site):
        return (remedy("raises-anyway" if site.fails else "wanted-by-torch"),)
    mode = Mode.FULLGRAPH if site.verdict is Verdict.RAISES else Mode.DEFAULT
    nested = (remedy(NESTED),) if NESTED in site.remedies and mode is Mode.DEFAULT else ()
    of_rule = rule_remedies(site.rule, mode, site.remedies) if site.rule else nested
    if site.logging_method is not None:
        return (remedy("ignore-logging", method=site.logging_method), *(of_rule if site.origin is Origin.USER else ()))
    users_hook = site.disabled is not None and site.disabled.origin is Origin.USER
    if site.origin is Origin.FRAMEWORK and not users_hook:
        return of_rule or (remedy("outside"),)
    if site.origin is Origin.LIBRARY:
        return _in_library(site.site.path, place(site.site), of_rule)
    if site.is_causal is not None:
        return (remedy("plain-flag", test=site.is_causal),)
    if site.is_whole and site.rule and site.rule.id == "BRK615":
        return (remedy("step-alone"),)
    if site.disabled and site.keeps:
        return (remedy("kept-outside", function=site.disabled.function, at=place(site.disabled)),)
    return (enabled(site.disabled, site.code or ""), *nested) if site.disabled else of_rule


def enabled(function: Caller, code: str) -> Remedy:
    """Of a function that is disabled; ``code`` is the line that calls it, or whose module has it as a hook."""
    name = function.function or ""
    last = name.rpartition(".")[2]
    # Python calls special methods, as of a class or a with block, and torch the method ``forward``.
    is_named = last in code or last == "forward" or (last.startswith("__") and last.endswith("__"))
    is_hook = not is_named or is_call_of_hook(code)
    return remedy("enable-hook" if is_hook else "enable", function=name, at=place(function))


def is_torchs_wish(site: BreakSite) -> bool:
    """Return whether torch's own code asks for the break."""
    return site.rule is None and site.origin is Origin.FRAMEWORK and is_asked_for(site.gb_type)


def _in_library(path: str, at: str, of_rule: Remedies) -> Remedies:
    """The remedies for a library's user, in whose code it is; ``of_rule`` without settings is for its authors."""
    package = package_of(path)
    if package is None:
        return of_rule
    settings = (one for one in of_rule if one.kind is RemedyKind.SETTING)
    outside = (remedy("part-without-library", package=package), remedy("report-to-library", package=package, at=at))
    return known_for_library(path, "code") or (*settings, *outside)


def frame_remedies(frame: UncompiledFrame) -> Remedies:
    """The remedies for a function that is not compiled, unless a break causes that, which has them; where a library's
    code cannot be compiled, what helps against that."""
    if frame.break_site is not None:
        return ()
    if frame.failed_at and (known := known_for_library(frame.failed_at.path, "code")):
        return known
    if frame.helps:
        return (remedy(frame.helps, what="versions that it needs", number="N"),)
    return rule_remedies(frame.rule, Mode.FULLGRAPH) if frame.rule else ()


AGAINST = {"size": RemedyKind.SHAPES, "arguments": RemedyKind.NOTHING, "code": RemedyKind.REGION}
"""The subjects of entries of the table, each with the kind of its remedies."""


def known_for_library(path: str, against: str, subject: str = "", dimension: str = "") -> Remedies:
    """The remedy of the first entry for the library that fits, if any does."""
    package = package_of(path) or ""
    for entry in libraries().get(package, ()):
        if (
            entry["against"] == against
            and entry.get("within", "") in path
            and entry.get("of", "") in subject
            and entry.get("dimension", dimension) == dimension
        ):
            return (Remedy(AGAINST[against], f"library-{package}", entry["advice"]),)
    return ()


@cache
def libraries() -> Mapping[str, Sequence[Mapping[str, str]]]:
    """The entries of ``libraries.toml``, by the name of the package."""
    return parse_toml((resources.files(__package__) / "libraries.toml").read_text(encoding="utf-8"))


_LEARNING_RATE = re.compile(r"\.param_groups\[\d+\]\['lr'\]$")
_STATE = re.compile(r"\b(?:self|args\[0\])\.state\b")  # the state of an optimizer, whose ``step`` torch wraps
_MOMENTUM = re.compile(r"\.param_groups\[\d+\]\['(?:betas|momentum)'\]")
_INTEGERS = re.compile(r"-?\d+")
_LITERAL = re.compile(r"'[^']*'|-?\d+(?:\.\d+)?|True|False")
_ITEM = re.compile(r"(.+)\[\d+\]")
_SIZES = (ChangeKind.SIZE, ChangeKind.BRANCH_ON_SIZE)
_HELD = (Holder.ATTRIBUTE, Holder.MODULE, Holder.CLOSURE, Holder.DEFAULT, Holder.GLOBAL)
_FEW = 3  # values for each of which a version is no loss
_OF_RULE = {
    ChangeKind.TYPE, ChangeKind.TENSOR_TYPE, ChangeKind.FUNCTION, ChangeKind.ALIAS, ChangeKind.BACKEND,
    ChangeKind.LENGTH,
}  # fmt: skip
"""Changes about which the rule says all that there is to do."""
_OF_OBJECTS = {ChangeKind.NUMBER, ChangeKind.FLAG, ChangeKind.SET_LATER, ChangeKind.TYPE}
"""Changes of values that a compiled function can be given in place of the object."""
_OWN = _OF_OBJECTS | {ChangeKind.LENGTH, ChangeKind.KEYS, ChangeKind.LAYOUT}
_NAMES = {
    ChangeKind.BRANCH_ON_SIZE: "test-outside",
    ChangeKind.TRAINING: "both-modes",
    ChangeKind.GRAD_MODE: "both-modes",
    ChangeKind.GLOBAL_STATE: "one-state",
    ChangeKind.REQUIRES_GRAD: "with-gradient",
    ChangeKind.RANK: "one-rank",
    ChangeKind.INFERENCE: "no-inference-mode",
}
_NAMES_OF_FEW = {
    ChangeKind.EQUAL_SIZES: "equal-sizes",
    **dict.fromkeys((ChangeKind.RANK, ChangeKind.DTYPE, ChangeKind.DEVICE), "both-kinds"),
    **dict.fromkeys((ChangeKind.TYPE, ChangeKind.TENSOR_TYPE), "both-kinds"),
}
OF_LIMIT = (ISOLATED, "recompile_limit")  # the names of remedies with which all versions are compiled


def limit_remedies(first: Recompile, shared: SharedCode) -> Remedies:
    """The remedies where all versions are needed, and there are more than the limit allows."""
    is_isolated = first.how.calls > 1 and version_key(first.how.torch) >= (2, 13)
    number = _more_than(shared, first.how.calls)
    isolated = (remedy("isolate_recompiles"),) if is_isolated else ()
    if is_isolated and number is None:
        return isolated
    limit = remedy("recompile_limit", what="objects" if number else "versions", number=number or "N")
    return (*isolated, *in_its_thread((limit,), first.in_thread))


def with_shared_causes(recompiles: Sequence[Recompile]) -> list[Recompile]:
    """The recompiles, where those of a function that the same change would remove have one cause."""
    known: dict[object, int] = {}
    numbers: dict[int, int] = {}
    for cause, group in grouped((recompile.cause, recompile) for recompile in recompiles).items():
        first = group[0]
        kept = recompile_remedies(group)
        is_kept = not kept or kept[0].kind is RemedyKind.NOTHING
        about = (first.function, kept, first.subject if is_kept else None)
        numbers[cause] = known.setdefault(about if kept else cause, len(known))
    return [replace(recompile, cause=numbers[recompile.cause]) for recompile in recompiles]


def recompile_remedies(group: Sequence[Recompile]) -> Remedies:
    """The remedies for recompiles of one cause, the best first."""
    return in_its_thread(_recompile_remedies(group), group[0].in_thread)


def _recompile_remedies(group: Sequence[Recompile]) -> Remedies:
    first = group[0]
    changes = changes_of(group)
    if (of_library := _of_library(group, changes[0])) is not None:
        return of_library
    remedies, owner = _own_remedies(group, changes), package_of(first.site.path)
    is_held = changes[0].holder in _HELD and "param_groups" not in changes[0].subject
    if owner in (None, "torch") or not (is_held or first.alone_for):
        return remedies
    # The user does not write what the library's functions and objects hold, or pass to each other.
    left_out = (RemedyKind.EDIT, RemedyKind.CONSTRUCT)
    kept = tuple(one for one in remedies if one.kind not in left_out and one.name != "fixed-size")
    if not (kept or is_held) and first.alone_for:
        return _without_break("remove-break-inside", first.alone_for, first.function)
    return kept or _not_the_users(owner, group)


def _not_the_users(package: str, group: Sequence[Recompile]) -> Remedies:
    if len(group) > 1 and group[0].how.calls:
        # It is what the user compiles.
        return ()
    return (remedy("code-of-library" if len(group) == 1 else "part-without-library", package=package),)


def _own_remedies(group: Sequence[Recompile], changes: Sequence[ValueChange]) -> Remedies:
    """The remedies where the user's code passes or holds what changed."""
    first, change, shared = group[0], changes[0], group[0].shared
    is_past = first.hit_limit or (shared is not None and shared.limit is not None)
    differs = first.is_elsewhere or any(one.objects > 1 for one in changes)
    # A branch on a size that crosses a break is there without the break as well.
    if change.holder is Holder.RESULT and change.kind is not ChangeKind.BRANCH_ON_SIZE:
        return _without_break("remove-break", change.switched_at or first.site)
    # What the same line passes would be passed without the break as well, and a mode would change.
    if first.made_by and change.kind is not ChangeKind.GRAD_MODE and (differs or change.kind is ChangeKind.NUMBER):
        at, function = first.made_by
        return _without_break("remove-break-above", at, function)
    growing = next(filter(_grows, changes), None)
    sizes = {value for one in changes if one.kind is ChangeKind.SIZE for value in one.values}
    looked_up = [one for one in changes if one.kind is ChangeKind.KEYS and one.holder is not Holder.ARGUMENT]
    if memos := [one for one in looked_up if sizes & {*re.findall(r"\d+", one.subject.partition(" in ")[0])}]:
        return (remedy("no-memo", kept=f"what {memos[0].owner} keeps"),)
    if growing is not None:
        return (remedy("written-outside", owner=growing.owner),)
    if any(one.is_memo for one in group):
        return (remedy("no-memo", **_facts(first, change)),)
    if change.kind is ChangeKind.SET_LATER and {*change.values} == {"None", "missing"}:
        return (remedy("set-always", **_facts(first, change)),)
    if first.selected is not None and change.kind is ChangeKind.NUMBER and len(change.values) > 2:
        index, select = first.selected
        number = _number_of_objects(first, change, shared)
        others = _of_objects(first, change, number, is_past=is_past) if change.objects > 1 else ()
        made = remedy("select-of-module" if change.holder is Holder.MODULE else "select", index=index, select=select)
        return (made, *(one for one in others if one.name != INTEGERS_OPEN))
    own = next((one for one in changes if one.objects > 1 and (one.is_parameter or one.kind in _OWN)), None)
    if differs and first.alone_for is not None:
        return _without_break("remove-break-inside", first.alone_for, first.function)
    if own is not None and (is_past or own.kind is not ChangeKind.TYPE):
        is_known = own == change or first.how.calls > 1
        number = _number_of_objects(first, own, shared) if is_known else None
        # What has its own sizes cannot be given the values of another one.
        has_sizes = any(one.is_parameter or one.kind is ChangeKind.SIZE for one in changes)
        left_out = {*(["hoist"] if has_sizes else []), *([] if _are_open_integers(changes) else [INTEGERS_OPEN])}
        kept = (one for one in _of_objects(first, own, number, is_past=is_past) if one.name not in left_out)
        return (*kept, *_open_parameters(changes, first.shared))
    functions = [one.subject for one in changes if one.kind in (ChangeKind.FUNCTION, ChangeKind.OBJECT)]
    if functions and len(changes) > 1:
        return (remedy("own-version", subject=functions[0]),)
    is_open = change.kind is ChangeKind.NUMBER and change.holder is Holder.ARGUMENT and first.unrolled is None
    if first.how.dynamic == "False" and (is_open or change.kind is ChangeKind.SIZE):
        at_limit = ["recompile_limit"] if first.hit_limit else []
        names = ["dynamic-false", *at_limit, *([] if is_open else ["one-size"])]
        names += [name] if (name := _name(first, changes, once=len(group) == 1)) == "tensor-number" else []
        return tuple(remedy(one, **_facts(first, change), what="versions", number="N") for one in names)
    if change.kind is ChangeKind.SIZE:
        return _of_sizes(group, changes)
    if change.kind is ChangeKind.FREED and first.how.calls > 1:
        return limit_remedies(first, shared) if shared and is_past else (remedy("once"),)
    if first.unrolled is not None and shared is not None:
        return (remedy("loop-outside", at=place(first.unrolled)),)
    has_own = any(one.search(change.subject) for one in (_LEARNING_RATE, _MOMENTUM))
    if change.kind is ChangeKind.NUMBER and first.hit_limit and change.holder is Holder.ATTRIBUTE and not has_own:
        return (remedy("counted-outside", **_facts(first, change)),)
    name = _name(first, changes, once=len(group) == 1)
    if name == "apart":
        return _apart(first, changes)
    if name == "number-open":
        return _of_open_number(group, changes)
    if name is not None:
        limit = ("recompile_limit",) if name == "one-rank" and first.hit_limit else ()
        return tuple(remedy(one, **_facts(first, change), what="versions", number="N") for one in (name, *limit))
    if first.rule is None:
        return ()
    if change.kind is ChangeKind.NUMBER and change.holder is Holder.MODULE and _are_integers(change):
        return rule_remedies(first.rule, Mode.DEFAULT, (INTEGERS_OPEN,))
    return rule_remedies(first.rule, Mode.DEFAULT) if change.kind in _OF_RULE else ()


def _without_break(name: str, at: Site | Caller, function: str | None = None) -> Remedies:
    """The remedy of that name against a break; of one in code that is not the user's, the break has its own."""
    package = package_of(at.path)
    return (remedy("break-of-library" if package else name, at=place(at), function=function, package=package),)


def _of_library(group: Sequence[Recompile], change: ValueChange) -> Remedies | None:
    """The remedies where a library passes what changed, or where all is in its code; else None."""
    first = group[0]
    trigger = first.trigger
    if trigger is not None and trigger.origin is Origin.LIBRARY:
        package = package_of(trigger.path) or "a library"
        if first.guard.of_signature:
            return known_for_library(trigger.path, "arguments") or (remedy("call-of-library", package=package),)
        if change.kind is ChangeKind.SIZE:
            if known := known_for_library(trigger.path, "size", first.subject, str(change.dimension)):
                return known
            if first.opened and change.holder is Holder.ARGUMENT:
                source = [remedy("dynamic-sources", owner=change.owner)] if change.owner.isidentifier() else []
                return (remedy("dynamic"), *source, remedy("one-size"))
    owner = package_of(first.site.path)
    old, new = change.values[:1], change.values[1:]
    is_late = change.holder in (Holder.ATTRIBUTE, Holder.MODULE) and old == ("None",)
    if owner and is_late and "." in change.subject and new and _LITERAL.fullmatch(new[0]):
        return (remedy("set-before", subject=change.subject, new=new[0]),)
    if owner is None or first.origin is not Origin.LIBRARY or first.made_by is not None:
        return None
    if known := known_for_library(first.site.path, "code"):
        return known
    is_users_call = trigger is not None and trigger.origin is Origin.USER
    if first.guard.of_signature and not first.how.calls:
        is_users_call = False
    return None if is_users_call or change.holder is Holder.RESULT else _not_the_users(owner, group)


def _number_of_objects(first: Recompile, change: ValueChange, shared: SharedCode | None) -> int | None:
    """The number of objects with a value of their own, those too for which there is no version; None if not known."""
    if first.how.calls > 1:
        return _more_than(shared, first.how.calls)
    if first.hit_limit and change.kind not in _OWN:
        return None
    return _more_than(shared, max(change.objects, len({*change.values, *(shared.eager_values if shared else ())})))


def _more_than(shared: SharedCode | None, number: int) -> int | None:
    """The number of objects, where one version for each of them is enough; None if more may be needed: other values
    change as well, or the program ended at the limit."""
    is_enough = shared is None or (number > shared.versions and len(shared.subjects) < 2)
    has_ended = shared is not None and shared.limit is not None and not shared.eager_calls
    return number if is_enough and not has_ended else None


def _of_objects(first: Recompile, change: ValueChange, number: int | None, *, is_past: bool) -> Remedies:
    """The remedies where each object of a class has its own value, and all of them share the code of a function."""
    names = ["compile-container"] if first.container and first.how.calls > 1 else []
    if change.holder is Holder.MODULE and _are_integers(change):
        names.append(INTEGERS_OPEN)
    if first.how.calls > 1 and version_key(first.how.torch) >= (2, 13):
        names.append("isolate_recompiles")
    if is_past:
        names.append("recompile_limit")
    if change.kind in _OF_OBJECTS and any(map(_LITERAL.fullmatch, change.values)):
        # A text picks something, which need not be compiled for each.
        names.insert(0 if change.values[0].startswith("'") else len(names), "hoist")
    if not is_past:
        names.append("own-version")
    facts = {**_facts(first, change), "container": first.container}
    facts |= {"what": "objects" if number else "versions that it needs", "number": number or "N"}
    return tuple(remedy(name, **facts) for name in names)


def _of_open_number(group: Sequence[Recompile], changes: Sequence[ValueChange]) -> Remedies:
    """The remedies for numbers that torch leaves open from their second value on, each on its own."""
    numbers = [one for one in changes if one.kind is ChangeKind.NUMBER]
    is_single = len(group) == 1
    items = {found[1] for one in numbers if (found := _ITEM.fullmatch(one.subject))}
    names = ["number-open"] if is_single or not group[0].opened else []
    if group[0].opened and group[0].how.dynamic != "True":
        names.append("dynamic-numbers")
    if len(items) == 1 and not is_single:
        names.append("one-tensor")
    return tuple(remedy(name, owner=next(iter(items), "")) for name in names)


def _open_parameters(changes: Sequence[ValueChange], shared: SharedCode | None) -> Remedies:
    """The setting that leaves sizes of parameters open, where nothing but sizes differs, and more than two versions of
    the code were compiled: the second one leaves them open."""
    is_of_sizes = any(one.is_parameter and one.kind is ChangeKind.SIZE for one in changes)
    has_others = any(one.kind in _OF_OBJECTS for one in changes)
    return (remedy("open-parameters"),) if is_of_sizes and not has_others and shared is not None else ()


def _grows(change: ValueChange) -> bool:
    """Return whether a container that is no argument had more items each time."""
    is_kept = change.kind is ChangeKind.LENGTH and change.holder is not Holder.ARGUMENT
    lengths = [int(value) for value in change.values] if is_kept and _are_integers(change) else []
    return len(lengths) > _FEW and lengths == sorted(lengths) and not _STATE.search(change.subject)


def _are_integers(change: ValueChange) -> bool:
    return all(_INTEGERS.fullmatch(value) for value in change.values)


def _are_open_integers(changes: Sequence[ValueChange]) -> bool:
    """Return whether nothing but ints of modules and sizes of arguments differs: left open from the second on."""
    others = [one for one in changes if one.kind is not ChangeKind.SIZE or one.holder is not Holder.ARGUMENT]
    are_ints = all(one.kind is ChangeKind.NUMBER and one.holder is Holder.MODULE for one in others)
    is_given = not any(one.is_parameter for one in changes)
    return are_ints and is_given and all(_are_integers(one) and len({*one.values} - APART) > 2 for one in others)


def _facts(first: Recompile, change: ValueChange) -> dict[str, Any]:
    return {
        "subject": change.subject,
        "owner": change.subject if change.holder is Holder.CLOSURE else change.owner or change.subject,
        "kept": change.owner if change.dimension is not None else change.subject,
        "items": change.subject.removeprefix("len(").removesuffix(")"),
        "view": first.guard.view,
        "count": len(change.values),
        "at": place(change.asked_at or first.site),
        "stored": f" ({place(change.switched_at)} sets it)" if change.switched_at else "",
        "switched": f" ({place(change.switched_at)} switches it)" if change.switched_at else "",
    }


def _name(first: Recompile, changes: Sequence[ValueChange], *, once: bool) -> str | None:
    """The name of the remedy for a change of anything but a size; None where the rule has it, or none is known."""
    change = changes[0]
    subject, kind, holder = change.subject, change.kind, change.holder
    new_sizes = [set(one.values[1:]) for one in changes if one.kind in _SIZES]
    if kind in (ChangeKind.LENGTH, ChangeKind.KEYS) and _STATE.search(subject):
        return "first-step"
    if first.guard.of_signature:
        return "same-arguments"
    if first.guard.view is not None:
        return "clone-view"
    if subject.endswith(".item()"):
        return "index-select"
    if _LEARNING_RATE.search(subject):
        return "tensor-lr"
    if _MOMENTUM.search(subject):
        return "cycle-momentum"
    match kind:
        # A size that became 0 or 1 changes strides, too.
        case ChangeKind.BRANCH_ON_SIZE | ChangeKind.LAYOUT if any(new and new <= APART for new in new_sizes):
            return "apart"
        case ChangeKind.BRANCH_ON_SIZE if once:
            return "both-sides"
        case ChangeKind.BRANCH_ON_SIZE if package_of(first.site.path):
            return "one-size"
        case ChangeKind.LAYOUT if holder is Holder.ARGUMENT and change.owner.isidentifier():
            return "contiguous"
        case ChangeKind.DTYPE | ChangeKind.DEVICE if change.is_parameter:
            return "convert-before"
        case ChangeKind.REQUIRES_GRAD if change.is_parameter:
            return "frozen-sets"
        case ChangeKind.LAYOUT if change.is_parameter:
            return "own-sizes"
        case ChangeKind.LAYOUT if once:
            return "once"
        case ChangeKind.FUNCTION if once and holder is Holder.ATTRIBUTE:
            return "once"
        case ChangeKind.OBJECT | ChangeKind.FREED if change.objects < 2:
            return "made-once"
        case ChangeKind.KEYS:
            return "filled-once" if once and holder is Holder.ATTRIBUTE else "same-keys"
        case ChangeKind.NUMBER if holder is Holder.MODULE and _are_integers(change):
            return None
        case ChangeKind.NUMBER if once or (first.opened and not subject.endswith("']")):
            return "number-open"
        case ChangeKind.NUMBER if holder in (Holder.GLOBAL, Holder.CLOSURE):
            return "argument"
        case ChangeKind.NUMBER if holder is Holder.ARGUMENT and subject.endswith("']"):
            return "tensor-number"
        case ChangeKind.NUMBER | ChangeKind.FLAG if len(change.values) <= _FEW:
            return "few-values"
        case ChangeKind.SET_LATER | ChangeKind.LENGTH if once:
            return "once"
        case ChangeKind.LENGTH if holder is Holder.ARGUMENT:
            return "one-length"
    return (_NAMES_OF_FEW.get(kind) if once or len(change.values) <= _FEW else None) or _NAMES.get(kind)


def _apart(first: Recompile, changes: Sequence[ValueChange]) -> Remedies:
    """The remedies for sizes that are 0 or 1 in some calls; a mark is for code that is to serve all of them."""
    expanded = [one for one in changes if one.kind is ChangeKind.LAYOUT and one.values[-1] == "0"]
    known = {one.dimension if one.kind in _SIZES else None for one in changes if one not in expanded}
    if first.how.dynamic == "True" and len(known) == 1 and None not in known:
        names = " and ".join(f"{one.owner}.contiguous()" for one in expanded)
        layout = f", and pass {names} in place of what expand() returns" if expanded else ""
        return (remedy("apart"), remedy("unbacked", dimension=changes[0].dimension, layout=layout))
    is_first = changes[0].kind is ChangeKind.SIZE and changes[0].values[0] in APART
    return (remedy("apart"), *([remedy("one-size")] if is_first else []))


def _of_sizes(group: Sequence[Recompile], changes: Sequence[ValueChange]) -> Remedies:
    first, change = group[0], changes[0]
    if len(change.values) == 2 and APART & {*change.values}:
        return _apart(first, changes)
    if not change.owner.isidentifier() and is_of_one_object(first, change):
        fixed = remedy("fixed-size", owner=change.owner)
        return (*_open_parameters(changes, first.shared), fixed, *([remedy("dynamic")] if first.opened else []))
    then, now = (dict(objects).get("self") for objects in first.objects)
    if any(one.is_parameter for one in changes) or (None not in (then, now) and then != now):
        return (remedy("own-sizes"), *_open_parameters(changes, first.shared))
    # Code behind a break may fix a size that the code before it leaves open.
    opened = [one.opened for one in group if one.guard.kind is ChangeKind.SIZE and one.new not in APART]
    if 2 * sum(opened) < len(opened) or not any(one.opened for one in group):
        return (remedy("one-size"),) if change.owner.isidentifier() else ()
    sizes = [one for one in changes if one.kind is ChangeKind.SIZE and one.dimension is not None]
    marked = {one.subject for one in sizes if one.owner in first.passed}
    # A mark does not reach what is compiled behind a graph break.
    others = any(one.kind in (ChangeKind.NUMBER, ChangeKind.SIZE) and one not in sizes for one in changes)
    is_marked = marked == {one.subject for one in group}.union(one.subject for one in sizes) and not others
    if (call := first.trigger) is None or not is_marked:
        return (remedy("dynamic"), remedy("one-size"))
    code = "; ".join(f"torch._dynamo.mark_dynamic({first.passed[one.owner]}, {one.dimension})" for one in sizes)
    return (remedy("mark-dynamic", NewLine(call.path, call.line, code), code=code, at=place(call)), remedy("one-size"))
