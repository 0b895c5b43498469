"""Advice about a break, a function that is not compiled, or a recompile, also where the code is a library's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from importlib import resources

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.context import package_of
from breakscan.explanation.frames import UncompiledFrame
from breakscan.explanation.recompiles import AdviceKind, Recompile
from breakscan.model.findings import Origin
from breakscan.recording.parsers.break_text import is_asked_for
from breakscan.source.toml_text import parse_toml

_CHANGE_NOTHING = "change nothing: torch wants it so"
_KEEP_OUTSIDE = "keep the call that leads here out of the compiled code, or leave it: torch wants it so"


def break_advice(site: BreakSite) -> str | None:
    """The advice at a break: in the user's code that of the rule."""
    if site.origin is Origin.USER:
        return site.advice
    if site.logging_method is not None:
        method = site.logging_method
        return f"call torch._dynamo.config.ignore_logging_functions.add({method}) before the first compiled call"
    if is_torchs_wish(site):
        return _CHANGE_NOTHING
    if site.origin is Origin.FRAMEWORK:
        return site.advice or (_KEEP_OUTSIDE if site.rule is None else None)
    package = package_of(site.site.path)
    if package is None:
        return site.advice
    return _known(site.site.path, Against.CODE) or _of_package(package, site.advice)


def is_torchs_wish(site: BreakSite) -> bool:
    """Return whether torch's own code asks for the break."""
    return site.rule is None and site.origin is Origin.FRAMEWORK and is_asked_for(site.gb_type)


def of_authors(found: BreakSite | UncompiledFrame) -> bool:
    """Return whether the code is a library's, and its user can do nothing but leave it out."""
    path = found.site.path if isinstance(found, BreakSite) else found.failed_at.path if found.failed_at else ""
    if package_of(path) is None or _known(path, Against.CODE) is not None:
        return False
    return isinstance(found, UncompiledFrame) or (
        found.origin is Origin.LIBRARY and found.logging_method is None and not is_torchs_wish(found)
    )


def passing_advice(recompile: Recompile) -> str | None:
    """The advice about a recompile over what a library passes to compiled code; None where no library passes it, or
    nothing is to be said of that."""
    trigger, advice = recompile.trigger, recompile.advice
    if trigger is None or advice is None or trigger.origin is not Origin.LIBRARY:
        return None
    package = package_of(trigger.path) or "a library"
    if advice.kind is AdviceKind.ARGUMENTS:
        known = _known(trigger.path, Against.ARGUMENTS)
        return known or f"change nothing if it happens only once: the call is in code of {package}"
    if not advice.dimension:
        return None
    known = _known(trigger.path, Against.SIZE, recompile.subject, advice.dimension)
    if known is None and advice.kind is not AdviceKind.BREAK_IN_CALLER:
        return f"compile with torch.compile(..., dynamic=True), or give {package} data of one size"
    return known


def compiled_code_advice(recompile: Recompile, advice: str | None) -> str | None:
    """The advice about a recompile that a library's own code causes; ``advice`` is for its authors."""
    package = package_of(recompile.site.path)
    if package is None or recompile.origin is not Origin.LIBRARY:
        return advice
    return _known(recompile.site.path, Against.CODE) or (
        f"change nothing if it happens only once, or ask the authors of {package} to change it"
        f"{f' ({advice})' if advice else ''}"
    )


def _of_package(package: str, advice: str | None) -> str:
    outside = f"this is code of {package}: compile a part of the model that does not call it"
    return f"{outside}, or ask its authors to change it ({advice})" if advice else outside


class Against(Enum):
    """The subject of an entry of the table."""

    SIZE = "size"
    ARGUMENTS = "arguments"
    CODE = "code"


def _known(path: str, against: Against, subject: str = "", dimension: str = "") -> str | None:
    """The advice of the first entry for the library that fits, if any does."""
    for entry in libraries().get(package_of(path) or "", ()):
        if (
            entry["against"] == against.value
            and entry.get("within", "") in path
            and entry.get("of", "") in subject
            and entry.get("dimension", dimension) == dimension
        ):
            return entry["advice"]
    return None


@cache
def libraries() -> Mapping[str, Sequence[Mapping[str, str]]]:
    """The table: its entries by the name of the package."""
    return parse_toml((resources.files(__package__) / "libraries.toml").read_text(encoding="utf-8"))


def recompile_advice(recompile: Recompile) -> str | None:
    """The advice for the case at hand, else what the rule says; where a library is at work, what its user can do."""
    if (passing := passing_advice(recompile)) is not None:
        return passing
    advice = recompile.advice
    if advice is None:
        return compiled_code_advice(recompile, recompile.rule.instead if recompile.rule else None)
    return compiled_code_advice(recompile, advice.text) if advice.kind is AdviceKind.VIEW else advice.text


def frame_advice(frame: UncompiledFrame) -> str | None:
    """The advice of the rule or of torch; where a library's code cannot be compiled, what helps against that."""
    known = _known(frame.failed_at.path, Against.CODE) if frame.failed_at else None
    return frame.advice if known is None else known
