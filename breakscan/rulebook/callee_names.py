"""The names of callees in rules of a project that are mistyped: such a rule would silently find nothing."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from breakscan.rulebook.document import OWN, Rule
from breakscan.rulebook.events import EventKind

_FILE = Path(__file__).parent / "torch_facts/data/names/callables.json"


@cache
def callables() -> dict[str, frozenset[str]]:
    """By namespace, what any supported version has there; the builtins under the empty name."""
    listed = json.loads(_FILE.read_text(encoding="utf-8"))
    own = {"": frozenset(name for name, value in vars(builtins).items() if callable(value))}
    return {name: frozenset(text.split()) for name, text in listed.items()} | own


_NEAR = 0.75
_NEAR_NAMESPACE = 0.9
_NEAR_IN_NUMPY = 0.85
"""The similarity, from 0 to 1, from which one name counts as the other mistyped."""


def unknown_callees(rules: Iterable[Rule]) -> Iterator[tuple[Rule, str, str | None]]:
    """The callees that no supported torch or NumPy has, each with its rule and the nearest name that there is.

    Of other libraries nothing is known, of torch not every namespace, and of NumPy not what older versions had.
    """
    for rule in rules:
        calls = [pattern for pattern in rule.match if pattern.event is EventKind.CALL and rule.family == OWN]
        for name in dict.fromkeys(callee for pattern in calls for callee in pattern.callee):
            namespace, dot, last = name.rpartition(".")
            known = callables()
            if "*" in name or last.startswith("__") or last in known.get(namespace, ()):
                continue
            if namespace in known:
                is_numpy = namespace.startswith("numpy")
                near = get_close_matches(last, known[namespace], 1, _NEAR_IN_NUMPY if is_numpy else _NEAR)
                if near or not is_numpy:
                    yield rule, name, f"{namespace}{dot}{near[0]}" if near else None
            elif owner := _mistyped_namespace(namespace, last):
                yield rule, name, f"{owner}.{last}"


def _mistyped_namespace(namespace: str, last: str) -> str | None:
    """The namespace that is nearly called so, and has the name; not one that the other may be a part of."""
    holding = [one for one, names in callables().items() if last in names and not f"{namespace}.".startswith(f"{one}.")]
    return next(iter(get_close_matches(namespace, holding, 1, _NEAR_NAMESPACE)), None)
