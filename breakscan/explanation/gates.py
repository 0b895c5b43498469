"""The gates of a run: what it must not do, for a pull request to pass; and the lock: the breaks that a program is
allowed, in a file that is committed and only shrinks by itself."""

import importlib.util
import json
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.explanation.recompiles import recompile_sentence
from breakscan.model.findings import Site, Verdict
from breakscan.model.problem import AROUND_COMPILER, Problem, ProblemKind
from breakscan.model.torch_versions import minor_version
from breakscan.model.words import counted, first_few, place, position
from breakscan.rulebook.document import GB, nearest
from breakscan.rulebook.library import Library
from breakscan.source import code_match
from breakscan.source.code_match import Matched, identity
from breakscan.source.paths import path_from
from breakscan.source.toml_text import quoted
from breakscan.source.writing import is_count, is_text, not_ours, read_committed, table_values

LOCKED = tuple(kind for kind in AROUND_COMPILER if kind is not ProblemKind.EAGER_CALLS)
"""Kinds of problems that the compiler does not report, and a lock holds: that they are there, not how often."""
_MOST_PLACES = 5
SEVERITIES = (Verdict.SPLITS, Verdict.EAGER, Verdict.RAISES)  # the verdicts of breaks, from the mildest to the worst
_INSTALLED = re.compile(r".*/((?:site|dist)-packages/.*)")


@dataclass(frozen=True, slots=True)
class KnownBreak:
    """All breaks of one kind on lines of one text in a function: ``count`` is how often the compiler met them, ``line``
    the first of the lines, ``verdict`` the worst that happened there.  ``path`` is the same on every machine."""

    path: str
    function: str | None
    rule: str | None
    gb: str | None
    type: str
    code: str
    verdict: Verdict
    count: int
    line: int

    @property
    def kind(self) -> str:
        """The kind of break: the rule, else PyTorch's name."""
        return self.rule or self.type

    @property
    def words(self) -> str:
        return next((kind.words for kind in LOCKED if kind.value == self.type), self.verdict.words)


def known_breaks(explanation: Explanation, folder: str) -> list[KnownBreak]:
    """The problems of a run that count as breaks (see :attr:`Problem.counts_as_break`), and those of the kinds of
    :data:`LOCKED`.  Their paths are relative to ``folder``, an absolute path, and not to the working directory."""
    problems = (one for one in explanation.problems if one.counts_as_break or one.kind in LOCKED)
    return merged(known_break(problem, folder) for problem in problems)


def portable_path(path: str, folder: str | None) -> str:
    """A path as it is on every machine: of an installed file from ``site-packages`` on, of others relative to a folder,
    or unchanged where that is None.  ``path`` is absolute or relative to the working directory."""
    if installed := _INSTALLED.fullmatch(path.replace(os.sep, "/")):
        return installed[1]
    if folder is None or path.startswith("<"):
        return path
    return path_from(folder, path)


def merged(breaks: Iterable[KnownBreak]) -> list[KnownBreak]:
    """Merges breaks that cannot be distinguished, in order."""
    found: dict[Hashable, KnownBreak] = {}
    for site in breaks:
        known = found.setdefault(identity(site), site)
        if known is not site:
            worst = max(known.verdict, site.verdict, key=SEVERITIES.index)
            found[identity(site)] = replace(
                known, verdict=worst, count=known.count + site.count, line=min(known.line, site.line)
            )
    return list(found.values())


def matched(before: Sequence[KnownBreak], after: Sequence[KnownBreak]) -> Matched[KnownBreak]:
    """Pairs what is the same; then what breaks the same line for another reason, as on another torch; then, within a
    function, the same kind of break on a line that was edited."""
    return code_match.matched(before, after, [lambda one: (one.path, one.function, one.code)])


def known_break(problem: Problem, folder: str) -> KnownBreak:
    """A problem as it is on every machine."""
    is_around = problem.kind in LOCKED
    return KnownBreak(
        path=portable_path(problem.site.path, folder),
        function=problem.functions[0] if problem.functions else None,
        rule=problem.rule,
        gb=problem.gb_id,
        type=problem.kind.value
        if is_around
        else problem.gb_type or (problem.reason if problem.kind is ProblemKind.EXPORT else "not compiled"),
        code=problem.code or "",
        verdict=Verdict.SPLITS if is_around else problem.verdict or Verdict.RAISES,
        count=1 if is_around else problem.count,
        line=problem.site.line,
    )


VERSION = 1
_HEADER = """\
# The graph breaks that `breakscan explain --lock` allows the program below.  Commit this file.
# Written by breakscan: breaks that are gone are removed; only --lock-add adds some.
"""
_TEXTS = {"path": True, "function": False, "code": True, "rule": False, "gb": False, "type": True, "verdict": True}
"""The keys of an entry that hold texts, in the order of the file, and whether each must be there."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The content of a lock file: its program, the torch (``2.13``) of the run that it was last written after, what it
    allows.  ``line`` of the breaks is 0: it is not kept."""

    program: str
    torch: str
    breaks: tuple[KnownBreak, ...]

    @property
    def text(self) -> str:
        head = f"version = {VERSION}\nprogram = {quoted(self.program)}\ntorch = {quoted(self.torch)}\n"
        parts = [_HEADER, head]
        for one in self.breaks:
            values = {**{key: getattr(one, key) for key in _TEXTS}, "verdict": one.verdict.value}
            texts = [f"{key} = {quoted(value)}" for key, value in values.items() if value is not None]
            parts.append("\n".join(["\n[[break]]", *texts, f"count = {one.count}", ""]))
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A run compared with its lock: ``new`` breaks, ``worse`` ones in pairs of the allowed and the found, the excess of
    the lock over the run (``2 breaks gone, 1 milder``), and the lock that follows from the run."""

    new: tuple[KnownBreak, ...]
    worse: tuple[tuple[KnownBreak, KnownBreak], ...]
    outdated: str
    follows: Lock

    @property
    def is_kept(self) -> bool:
        """Return whether the run breaks nothing that the lock does not allow."""
        return not self.new and not self.worse

    def sentences(self, lock: str) -> Iterator[str]:
        """The breaks that the lock, a file of this name, does not allow."""
        for one in self.new:
            yield f"not in {lock}: {_described(one)}"
        for allowed, now in self.worse:
            change = f"the lock says that it {allowed.verdict.words}"
            if now.verdict is allowed.verdict:
                change = f"met {now.count} times, {allowed.count} in the lock"
            yield f"worse than {lock} allows: {_described(now)}; {change}"


def program_of(argv: Sequence[str], folder: str) -> str:
    """The program that a lock in a folder belongs to, without its arguments."""
    if argv[0] == "-m":
        return f"-m {argv[1]}"
    return argv[0] if argv[0] in ("-", "-c") else path_from(folder, argv[0])


def lock_of(explanation: Explanation, program: str, folder: str) -> Lock:
    """The lock that allows what a run did and no more.  ``folder`` is that of the lock."""
    breaks = (replace(one, line=0) for one in known_breaks(explanation, folder))
    return Lock(program, minor_version(explanation.torch), tuple(sorted(breaks, key=_order)))


def judge(lock: Lock, explanation: Explanation, folder: str, *, add: bool = False) -> Judgement:
    """Compares a run with its lock; with ``add``, the lock that follows also allows what is new and worse."""
    run = lock_of(explanation, lock.program, folder)
    found = matched(lock.breaks, known_breaks(explanation, folder))
    worse, milder, edited, kept = [], 0, 0, []
    for allowed, now in found.pairs:
        # The break as it is now, as mild and seldom as it was on either side.
        mildest = min(allowed.verdict, now.verdict, key=SEVERITIES.index)
        least = replace(now, verdict=mildest, count=min(allowed.count, now.count), line=0)
        if least != replace(now, line=0):
            worse.append((allowed, now))
        if (least.verdict, least.count) != (allowed.verdict, allowed.count):
            milder += 1
        elif least != allowed:
            edited += 1
        kept.append(replace(now, line=0) if add else least)
    kept += [replace(one, line=0) for one in found.new if add]
    follows = replace(run, breaks=tuple(sorted(kept, key=_order)))
    excess = [
        counted(len(found.gone), "break") + " gone" if found.gone else "",
        f"{milder} milder or met less often" if milder else "",
        f"{edited} on a changed line" if edited else "",
    ]
    return Judgement(tuple(found.new), tuple(worse), ", ".join(filter(None, excess)), follows)


def _order(one: KnownBreak) -> tuple[str, ...]:
    return one.path, one.function or "", one.code, one.kind


def read_lock(path: Path) -> Lock | None:
    """The lock in a file; None where there is no file.  Raises CommittedFileError."""
    data = read_committed(path, VERSION, "lock")
    if data is None:
        return None
    program, torch, entries = data.get("program"), data.get("torch"), data.get("break", [])
    if not isinstance(program, str) or not isinstance(torch, str) or not isinstance(entries, list):
        raise not_ours(path, "lock")
    return Lock(program, torch, tuple(_break(path, entry) for entry in entries))


def _break(path: Path, entry: Any) -> KnownBreak:
    right: dict[str, Callable[[Any], bool]] = {
        key: is_text if needed else lambda value: value is None or is_text(value) for key, needed in _TEXTS.items()
    }
    right |= {"count": is_count, "verdict": set(SEVERITIES).__contains__}
    where = f"{entry.get('path')}: {entry.get('code')}" if isinstance(entry, dict) and entry else "a [[break]]"
    values = table_values(path, where, entry, right)
    return KnownBreak(**{**values, "verdict": Verdict(values["verdict"])}, line=0)


_FAMILY = re.compile(r"(BRK\d{0,2})X+")


@dataclass(frozen=True, slots=True)
class Selector:
    """A word of ``--fail-on``, and its meaning: ids of rules, or one of PyTorch's; None for everything."""

    word: str
    ids: frozenset[str] | None

    def names(self, problem: Problem) -> bool:
        """Return whether it matches a problem; everything is none of those that the compiler does not report."""
        if self.ids is None:
            return problem.kind not in AROUND_COMPILER
        return not self.ids.isdisjoint(filter(None, (problem.id, problem.rule, problem.gb_id)))


@dataclass(frozen=True, slots=True)
class Gates:
    """The limits of a run; None is no limit."""

    max_breaks: int | None = None
    max_recompiles: int | None = None
    max_eager_calls: int | None = None
    no_compile_after: int | None = None
    fail_on: tuple[Selector, ...] = ()

    def __bool__(self) -> bool:
        return self != Gates()


def selectors(words: Iterable[str], library: Library) -> tuple[Selector, ...]:
    """The meaning of the words of ``--fail-on``: ids, starts of ids (``BRK2`` or ``BRK2xx``) and names of rules,
    PyTorch's ids (``GB0170``), kinds of problems that the compiler does not report
    (``plain-calls``), ``ALL``.  Raises ValueError, with the nearest known word, for any other."""

    def selector(word: str) -> Selector:
        upper = word.upper()
        if upper == "ALL":
            return Selector("ALL", None)
        if word in {kind.value for kind in AROUND_COMPILER}:
            return Selector(word, frozenset({word}))
        if upper.startswith("GB"):
            known = _ids_of_torch()
            if not GB.fullmatch(upper) or (known and upper not in known):
                raise ValueError(f"no graph break of PyTorch's is called {word!r}{nearest(upper, sorted(known))}")
            return Selector(upper, frozenset({upper}))
        family = _FAMILY.fullmatch(upper)
        return Selector(word, frozenset(rule.id for rule in library.select(family[1] if family else word)))

    return tuple(map(selector, words))


@cache
def _ids_of_torch() -> frozenset[str]:
    """The ids of the installed torch, by the file that it keeps them in; none where there is no such file."""
    spec = importlib.util.find_spec("torch")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        with suppress(OSError, ValueError):
            return frozenset(json.loads(Path(folder, "_dynamo", "graph_break_registry.json").read_text("utf-8")))
    return frozenset()


def unmet(gates: Gates, explanation: Explanation) -> list[str]:
    """The gates that a run does not meet, in the order of the options, each as ``--max-breaks 3 is not met: 5 break
    sites at vision.py:39:16, vision.py:53:12, …``.  Breaks are counted by site, in the user's code and in libraries,
    with the functions that fall back to eager without a site to blame and what stands against exports.  ``fail_on``
    also finds those inside torch, where it names them. Recompiles of all functions count."""
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
        (f"{option} {most}", counted(number, thing), sites)
        for option, most, thing, number, sites in limits
        if most is not None and number > most
    ]
    named = ((f"--fail-on {selector.word}", _named(selector, explanation)) for selector in gates.fail_on)
    found += [(option, counted(len(sites), "site"), sites) for option, sites in named if sites]
    words = [
        f"{option} is not met: {what} at {first_few([*map(position, sites)], _MOST_PLACES)}"
        for option, what, sites in found
    ]
    return [*words, *_compiled_late(gates.no_compile_after, explanation)]


def _compiled_late(after: int | None, explanation: Explanation) -> Iterator[str]:
    """The compilations after a step, each function once, and why."""
    if after is None:
        return
    if any(one.step is None for one in explanation.compiles):
        yield f"--no-compile-after {after} is not met: the recording does not say in which step anything was compiled"
    late = [one for one in explanation.compiles if one.step is not None and one.step > after]
    recompiles = {one.compile_id: one for one in explanation.recompiles}
    for site in once(one.site for one in late):
        first, *others = (one for one in late if one.site == site)
        again = recompiles.get(first.compile_id)
        how = "recompiled" if again else "compiled"
        why = f", because {recompile_sentence([again])}" if again else ""
        more = f" and {counted(len(others), 'time')} more" if others else ""
        place = f"{first.function} at {position(site)}"
        yield f"--no-compile-after {after} is not met: {place} was {how} in step {first.step}{more}{why}"


def _named(selector: Selector, explanation: Explanation) -> tuple[Site, ...]:
    """The sites of problems that a word names.  Of what a break explains, it is the break's."""
    return once(
        problem.site
        for problem in explanation.problems
        if problem.verdict is not None or problem.kind in (ProblemKind.EXPORT, *AROUND_COMPILER)
        if problem.cause is not ProblemKind.BREAK and selector.names(problem)
    )


def once(sites: Iterable[Site]) -> tuple[Site, ...]:
    return tuple(dict.fromkeys(sites))


def nothing_compiled(explanation: Explanation) -> bool:
    """Return whether a run says nothing about the program, because the compiler did not look at anything."""
    tried = any(frame.status is not FrameStatus.PASSED_OVER for frame in explanation.frames)
    return not (explanation.graphs or explanation.breaks or explanation.exports or tried)


def _described(one: KnownBreak) -> str:
    inside = f" in {one.function}" if one.function else ""
    code = f": {one.code}" if one.code else ""
    return f"{place(one)} {one.words}, {one.kind}{inside}{code}"
