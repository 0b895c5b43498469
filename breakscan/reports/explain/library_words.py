"""What the user of a library can do where the code at hand is the library's, and cannot be rewritten."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources

from breakscan.findings import Origin
from breakscan.runtime.explain.explanation import BreakSite, Recompile, UncompiledFrame
from breakscan.runtime.parsers.break_text import is_asked_for

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_INSTALLED = re.compile(r"(?:site|dist)-packages/([^/]+?)(?:\.py)?(?:/|$)")
_BATCH = "0"
"""The dimension of a batch, by convention."""
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
    known = _libraries().get(package, {}).get("module")
    return known or _of_package(package, site.advice)


def is_torchs_wish(site: BreakSite) -> bool:
    """Whether torch's own code asks for the break."""
    return site.rule is None and site.origin is Origin.FRAMEWORK and is_asked_for(site.gb_type)


def failure_advice(frame: UncompiledFrame) -> str | None:
    """What helps where a library's code cannot be compiled, and the library is known; else None."""
    package = package_of(frame.failed_at.path) if frame.failed_at else None
    return _libraries().get(package, {}).get("module") if package else None


def size_advice(recompile: Recompile) -> str | None:
    """What keeps a size constant that a known library passes to the compiled code; else None."""
    trigger, advice = recompile.trigger, recompile.advice
    if trigger is None or advice is None or not advice.dimension or trigger.origin is not Origin.LIBRARY:
        return None
    known = _libraries().get(package_of(trigger.path) or "", {})
    return known.get("batch_size" if advice.dimension == _BATCH else "length")


def package_of(path: str) -> str | None:
    """The package that an installed file belongs to; None for a file that is not installed."""
    found = _INSTALLED.search(path)
    return found[1] if found else None


def _of_package(package: str, advice: str | None) -> str:
    outside = f"this is code of {package}: compile a part of the model that does not call it"
    return f"{outside}, or ask its authors to change it ({advice})" if advice else outside


@cache
def _libraries() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((resources.files(__package__) / "libraries.toml").read_text(encoding="utf-8"))
