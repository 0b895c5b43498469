"""Remedies: what to do about a break, a function that is not compiled, calls that ran eager, or a failed export."""

from __future__ import annotations

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.context import package_of
from breakscan.explanation.exports import ExportFailure, failure_advice
from breakscan.explanation.frames import RAISES_OVER_LIMIT, UncompiledFrame
from breakscan.explanation.libraries import Against, known_for_library
from breakscan.explanation.recompile_remedies import recompile_limit
from breakscan.model.findings import Mode, Origin, Verdict
from breakscan.model.problem import Caller
from breakscan.model.remedy import DYNAMO, Remedy, RemedyKind, Setting
from breakscan.model.words import place
from breakscan.recording.parsers.break_text import is_asked_for
from breakscan.rulebook.remedies import rule_remedies

Remedies = tuple[Remedy, ...]
_WANTED = Remedy(RemedyKind.NOTHING, "wanted-by-torch", "change nothing: torch wants it so")
_KEEP_OUTSIDE = Remedy(
    RemedyKind.REGION,
    "outside",
    "keep the call that leads here out of the compiled code, or leave it: torch wants it so",
)
_RUN_OUTSIDE = Remedy(
    RemedyKind.REGION,
    "run-outside",
    "run that code before the compiled call and keep its result, or keep it out with torch.compiler.disable",
)


def break_remedies(site: BreakSite) -> Remedies:
    """The remedies for a break, the best first: in the user's code those of the rule."""
    if is_torchs_wish(site):
        return (_WANTED,)
    mode = Mode.FULLGRAPH if site.verdict is Verdict.RAISES else Mode.DEFAULT
    of_rule = rule_remedies(site.rule, mode, site.remedies) if site.rule else ()
    if site.logging_method is not None:
        return (ignored_logging(site.logging_method), *(of_rule if site.origin is Origin.USER else ()))
    if site.origin is Origin.FRAMEWORK:
        return of_rule or (_KEEP_OUTSIDE,)
    if site.origin is Origin.LIBRARY:
        return _in_library(site.site.path, place(site.site), of_rule)
    if site.is_causal is not None:
        return (plain_flag(site.is_causal),)
    return (enabled(site.disabled, site.code or ""),) if site.disabled else of_rule


def ignored_logging(method: str) -> Remedy:
    """``method`` is an expression, such as ``logging.getLogger('a.b').info``."""
    setting = Setting(DYNAMO, "ignore_logging_functions", f"{{{method}}}")
    text = f"call {DYNAMO}.ignore_logging_functions.add({method}) before the first compiled call: it is then left out"
    return Remedy(RemedyKind.SETTING, "ignore-logging", text, (setting,))


def enabled(function: Caller, code: str) -> Remedy:
    """Of a function that is disabled; ``code`` is the line that calls it, or whose module has it as a hook."""
    name = function.function or ""
    named = f"{name} ({place(function)})"
    text = f"remove torch.compiler.disable from {named}, or call {name} outside the compiled code"
    if name.rpartition(".")[2] not in code:
        text = f"remove torch.compiler.disable from the hook {named}, or register it only where it is needed"
    return Remedy(RemedyKind.CONSTRUCT, "enable", f"{text}; a custom operator stays in the graph")


def plain_flag(test: str) -> Remedy:
    """Of an attention with ``is_causal=test``: the comparison of a size that is left open is no bool."""
    text = f"write is_causal=True if {test} else False: of a size that is left open, {test} alone is no bool"
    return Remedy(RemedyKind.CONSTRUCT, "plain-flag", text)


def is_torchs_wish(site: BreakSite) -> bool:
    """Return whether torch's own code asks for the break."""
    return site.rule is None and site.origin is Origin.FRAMEWORK and is_asked_for(site.gb_type)


def of_authors(found: BreakSite | UncompiledFrame) -> bool:
    """Return whether the code is a library's, and its user can do nothing but leave it out."""
    path = found.site.path if isinstance(found, BreakSite) else found.failed_at.path if found.failed_at else ""
    if package_of(path) is None or known_for_library(path, Against.CODE) is not None:
        return False
    return isinstance(found, UncompiledFrame) or (
        found.origin is Origin.LIBRARY and found.logging_method is None and not is_torchs_wish(found)
    )


def _in_library(path: str, at: str, of_rule: Remedies) -> Remedies:
    """The remedies for the user of a library in whose code it is; ``of_rule`` are for its authors."""
    package = package_of(path)
    if package is None:
        return of_rule
    if (known := known_for_library(path, Against.CODE)) is not None:
        return (Remedy(RemedyKind.REGION, f"library-{package}", known),)
    outside = f"this is code of {package}: compile a part of the model that does not call it"
    return (
        Remedy(RemedyKind.REGION, "part-without-library", outside),
        Remedy(
            RemedyKind.NOTHING,
            "report-to-library",
            f"report it to {package}: breakscan explain --repro {at} writes the text, with a program that shows it",
        ),
    )


def frame_remedies(frame: UncompiledFrame) -> Remedies:
    """The remedies for a function that is not compiled; where a library's code cannot be compiled, what helps against
    that."""
    known = known_for_library(frame.failed_at.path, Against.CODE) if frame.failed_at else None
    if known is not None and frame.failed_at:
        return (Remedy(RemedyKind.REGION, f"library-{package_of(frame.failed_at.path)}", known),)
    if frame.raised_inside:
        return (_RUN_OUTSIDE,)
    if frame.reason == RAISES_OVER_LIMIT:
        return (recompile_limit("N", "the number of versions that it needs"),)
    return rule_remedies(frame.rule, Mode.FULLGRAPH) if frame.rule else ()


OF_STANCES = {
    "force_eager": Remedy(RemedyKind.REGION, "outside-stance", "call it outside of this stance, if it is to be fast"),
    "eager_on_recompile": Remedy(
        RemedyKind.REGION,
        "warm-up-before-stance",
        "call it with such inputs before the stance is set, or with sizes marked by torch._dynamo.mark_dynamic, so "
        "that one version fits",
    ),
}


def export_remedies(failure: ExportFailure) -> Remedies:
    """None where only torch has hints."""
    if failure.rule:
        return rule_remedies(failure.rule, Mode.EXPORT_STRICT)
    advice = failure_advice(failure)
    return (Remedy(RemedyKind.CONSTRUCT, f"export-{failure.problem.value}", advice),) if advice else ()
