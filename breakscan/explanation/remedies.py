"""Remedies: what to do about a break, a function that is not compiled, or calls that ran eager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.context import package_of
from breakscan.explanation.frames import UncompiledFrame
from breakscan.model.findings import Mode, Origin, Verdict
from breakscan.model.problem import Caller
from breakscan.model.remedy import Remedy, RemedyKind
from breakscan.model.words import place
from breakscan.recording.parsers.frames import is_asked_for, is_call_of_hook
from breakscan.rulebook.remedies import NESTED, remedy, rule_remedies
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
