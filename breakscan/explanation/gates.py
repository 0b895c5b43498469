"""The gates of a run: what it must not do, for a pull request to pass."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.explanation.lock_file import Judgement, KnownBreak
from breakscan.model.findings import Site
from breakscan.model.problem import AROUND_COMPILER, ProblemKind
from breakscan.model.words import counted, place, position
from breakscan.rulebook.document import nearest
from breakscan.rulebook.library import Library

_GB = re.compile(r"GB\d{4}")
_FAMILY = re.compile(r"(BRK\d{0,2})X+")


@dataclass(frozen=True, slots=True)
class Selector:
    """A word of ``--fail-on``, and its meaning: ids of rules, or one of PyTorch's; None for everything."""

    word: str
    ids: frozenset[str] | None

    def names(self, rule: str | None, gb_id: str | None) -> bool:
        """Return whether it matches this id of a rule or this one of PyTorch."""
        return self.ids is None or rule in self.ids or gb_id in self.ids


@dataclass(frozen=True, slots=True)
class Gates:
    """The limits of a run; None is no limit."""

    max_breaks: int | None = None
    max_recompiles: int | None = None
    max_eager_calls: int | None = None
    fail_on: tuple[Selector, ...] = ()

    def __bool__(self) -> bool:
        limits = (self.max_breaks, self.max_recompiles, self.max_eager_calls)
        return any(limit is not None for limit in limits) or bool(self.fail_on)


@dataclass(frozen=True, slots=True)
class Unmet:
    """A gate that was not met: the option, the number that it allows and the thing that is counted, the number
    found, and the sites, each once."""

    option: str
    allowed: int
    thing: str
    found: int
    sites: tuple[Site, ...]


def selectors(words: Iterable[str], library: Library) -> tuple[Selector, ...]:
    """The meaning of the words of ``--fail-on``: ids, starts of ids (``BRK2`` or ``BRK2xx``) and names of rules,
    PyTorch's ids (``GB0170``), kinds of problems that the compiler does not report
    (``plain-calls``), ``ALL``.  Raises ValueError, with the nearest known word, for any other."""
    return tuple(_selector(word, library) for word in words)


def _selector(word: str, library: Library) -> Selector:
    upper = word.upper()
    if upper == "ALL":
        return Selector("ALL", None)
    if word in {kind.value for kind in AROUND_COMPILER}:
        return Selector(word, frozenset({word}))
    if upper.startswith("GB"):
        known = _ids_of_torch()
        if not _GB.fullmatch(upper) or (known and upper not in known):
            raise ValueError(f"no graph break of PyTorch's is called {word!r}{nearest(upper, sorted(known))}")
        return Selector(upper, frozenset({upper}))
    family = _FAMILY.fullmatch(upper)
    return Selector(word, frozenset(rule.id for rule in library.select(family[1] if family else word)))


@cache
def _ids_of_torch() -> frozenset[str]:
    """The ids of the installed torch, by the file that it keeps them in; none where there is no such file."""
    spec = importlib.util.find_spec("torch")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        try:
            table = json.loads(Path(folder, "_dynamo", "graph_break_registry.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return frozenset(table)
    return frozenset()


def unmet(gates: Gates, explanation: Explanation) -> list[Unmet]:
    """The gates that a run does not meet, in the order of the options.

    Breaks are counted by site, in the user's code and in libraries, with the functions that fall back to eager without
    a site to blame and what stands against exports.  ``fail_on`` also finds those inside torch, where it names them.
    Recompiles of all functions count: the program causes what changes between calls.
    """
    counted_breaks = [problem for problem in explanation.problems if problem.counts_as_break]
    broken = [problem.site for problem in counted_breaks if problem.kind is ProblemKind.BREAK]
    # A function that raised in one call and ran eager in another is counted once.
    broken += once(problem.site for problem in counted_breaks if problem.kind is not ProblemKind.BREAK)
    recompiled = [recompile.site for recompile in explanation.recompiles]
    eager = [one for one in explanation.around if one.kind is ProblemKind.EAGER_CALLS and one.verdict is not None]
    limits = (
        ("--max-breaks", gates.max_breaks, "break site", len(broken), once(broken)),
        ("--max-recompiles", gates.max_recompiles, "recompile", len(recompiled), once(recompiled)),
        ("--max-eager-calls", gates.max_eager_calls, "eager call", sum(calls.count for calls in eager),
         once(calls.site for calls in eager)),
    )  # fmt: skip
    found = [
        Unmet(f"{option} {most}", most, thing, number, sites)
        for option, most, thing, number, sites in limits
        if most is not None and number > most
    ]
    named = ((f"--fail-on {selector.word}", _named(selector, explanation)) for selector in gates.fail_on)
    found += [Unmet(option, 0, "site", len(sites), sites) for option, sites in named if sites]
    return found


def _named(selector: Selector, explanation: Explanation) -> tuple[Site, ...]:
    """The sites of problems that a word names.  Of what a break explains, it is the break's."""
    return once(
        problem.site
        for problem in explanation.problems
        if problem.verdict is not None or problem.kind in (ProblemKind.EXPORT, *AROUND_COMPILER)
        if problem.cause is not ProblemKind.BREAK
        if (
            problem.id in (selector.ids or ())
            if problem.kind in AROUND_COMPILER
            else selector.names(problem.rule, problem.gb_id)
        )
    )


def once(sites: Iterable[Site]) -> tuple[Site, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(sites))


def nothing_compiled(explanation: Explanation) -> bool:
    """Return whether a run says nothing about the program, because the compiler did not look at anything."""
    tried = any(frame.status is not FrameStatus.PASSED_OVER for frame in explanation.frames)
    return not (explanation.graphs or explanation.breaks or explanation.exports or tried)


MOST_PLACES = 5


def unmet_sentence(gate: Unmet) -> str:
    """``--max-breaks 3 is not met: 5 break sites at vision.py:39:16, vision.py:53:12, …``."""
    found = counted(gate.found, gate.thing)
    return f"{gate.option} is not met: {found} at {places(gate.sites)}"


def places(sites: Sequence[Site]) -> str:
    """The first few, and how many more there are."""
    shown = [position(site) for site in sites[:MOST_PLACES]]
    rest = len(sites) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def lock_sentences(judgement: Judgement, lock: str) -> Iterator[str]:
    """The breaks of a run that its lock, a file of this name, does not allow."""
    for one in judgement.new:
        yield f"not in {lock}: {_described(one)}"
    for allowed, now in judgement.worse:
        change = f"the lock says that it {allowed.verdict.words}"
        if now.verdict is allowed.verdict:
            change = f"met {now.count} times, {allowed.count} in the lock"
        yield f"worse than {lock} allows: {_described(now)}; {change}"


def _described(one: KnownBreak) -> str:
    inside = f" in {one.function}" if one.function else ""
    code = f": {one.code}" if one.code else ""
    return f"{place(one)} {one.words}, {one.kind}{inside}{code}"


def outdated_words(judgement: Judgement) -> str:
    """The excess of a lock over a run: ``2 breaks gone, 1 milder``."""
    parts = [
        counted(judgement.gone, "break") + " gone" if judgement.gone else "",
        f"{judgement.milder} milder or met less often" if judgement.milder else "",
        f"{judgement.edited} on a changed line" if judgement.edited else "",
    ]
    return ", ".join(filter(None, parts))
