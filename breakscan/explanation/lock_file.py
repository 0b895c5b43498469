"""The lock: the breaks that a program is allowed, in a file that is committed and only shrinks by itself."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscan.explanation.explanation import Explanation
from breakscan.model.findings import Verdict
from breakscan.model.problem import AROUND_COMPILER, Problem, ProblemKind
from breakscan.model.torch_versions import minor_version
from breakscan.source import code_match
from breakscan.source.code_match import Matched, identity
from breakscan.source.toml_text import quoted
from breakscan.source.writing import is_count, is_text, not_ours, read_committed, table_values

LOCKED = tuple(kind for kind in AROUND_COMPILER if kind is not ProblemKind.EAGER_CALLS)
"""Kinds of problems that the compiler does not report, and a lock holds: that they are there, not how often."""
SEVERITIES = (Verdict.SPLITS, Verdict.EAGER, Verdict.RAISES)
"""The verdicts of breaks, from the mildest to the worst."""
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
        """The words for the problem."""
        return next((kind.words for kind in LOCKED if kind.value == self.type), self.verdict.words)


def known_breaks(explanation: Explanation, folder: str) -> list[KnownBreak]:
    """The problems of a run that count as breaks (see :attr:`Problem.counts_as_break`), and those of the kinds of
    :data:`LOCKED`.

    Paths are relative to ``folder``, an absolute path; those of the explanation to the working directory.
    """
    problems = (one for one in explanation.problems if one.counts_as_break or one.kind in LOCKED)
    return merged(known_break(problem, folder) for problem in problems)


def portable_path(path: str, folder: str | None) -> str:
    """A path as it is on every machine: of an installed file from ``site-packages`` on, of others relative to a folder,
    or unchanged where that is None.

    ``path`` is absolute or relative to the working directory.
    """
    if installed := _INSTALLED.fullmatch(path.replace(os.sep, "/")):
        return installed[1]
    if folder is None or path.startswith("<"):
        return path
    try:
        return os.path.relpath(path, folder).replace(os.sep, "/")
    except ValueError:  # on another drive
        return path.replace(os.sep, "/")


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


@dataclass(frozen=True, slots=True)
class Judgement:
    """A run compared with its lock: ``new`` breaks, ``worse`` ones in pairs of the allowed and the found, the numbers
    of entries that are gone, milder, or on an edited line, and the lock that follows from the run."""

    new: tuple[KnownBreak, ...]
    worse: tuple[tuple[KnownBreak, KnownBreak], ...]
    gone: int
    milder: int
    edited: int
    follows: Lock

    @property
    def is_kept(self) -> bool:
        """Return whether the run breaks nothing that the lock does not allow."""
        return not self.new and not self.worse


def program_of(argv: Sequence[str], folder: str) -> str:
    """The program that a lock in a folder belongs to, without its arguments."""
    if argv[0] == "-m":
        return f"-m {argv[1]}"
    return argv[0] if argv[0] in ("-", "-c") else os.path.relpath(argv[0], folder).replace(os.sep, "/")


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
    return Judgement(tuple(found.new), tuple(worse), len(found.gone), milder, edited, follows)


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


def lock_text(lock: Lock) -> str:
    """The content of a lock file."""
    parts = [_HEADER, f"version = {VERSION}\nprogram = {quoted(lock.program)}\ntorch = {quoted(lock.torch)}\n"]
    for one in lock.breaks:
        values = {**{key: getattr(one, key) for key in _TEXTS}, "verdict": one.verdict.value}
        texts = [f"{key} = {quoted(value)}" for key, value in values.items() if value is not None]
        parts.append("\n".join(["\n[[break]]", *texts, f"count = {one.count}", ""]))
    return "".join(parts)
