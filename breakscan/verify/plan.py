"""What is to be verified: rewrites of the code that the program ran, a patch, or settings of the compiler."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakscan.arms.arm import Change
from breakscan.config import Settings
from breakscan.findings import Finding, Site
from breakscan.repair.plan import Wanted, place_of
from breakscan.repair.repair import repair_paths
from breakscan.repair.result import Applied, Repair
from breakscan.verify.patch import Patched

ROOMS = ("dynamo", "inductor")
"""The compiler's configurations, as keys of settings name them."""


class SettingError(ValueError):
    """A setting is not of the form that is wanted.  Says what is."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change that is to be proved.  ``texts`` holds each file as it is and as it would be."""

    label: str
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    finding: Finding | None = None
    rewrite: str | None = None
    difference: str | None = None
    members: tuple[str, ...] = ()
    targets: tuple[Site, ...] = ()
    """What is to break no more."""

    @property
    def change(self) -> Change:
        """What an arm needs."""
        return Change({path: after for path, (_, after) in self.texts.items()}, self.settings)


@dataclass(frozen=True, slots=True)
class Planned:
    """``alone`` are the rewrites one by one; ``unreached`` those of code that does not run, ``declined`` findings of
    code that runs and that no rewrite mends, both in words."""

    alone: tuple[Candidate, ...]
    unreached: tuple[str, ...]
    declined: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Plans rewrites of files, given by absolute paths."""

    files: tuple[Path, ...]
    settings: Settings
    wanted: Wanted

    def plan(self, executed: Mapping[str, Collection[int]], broken: Iterable[Site]) -> Planned:
        """``executed`` are lines by absolute path, ``broken`` the sites where the program breaks the graph."""
        repair = self._repair(self.wanted)
        alone: list[Candidate] = []
        unreached: list[str] = []
        declined: list[str] = []
        sites = list(broken)
        for file in repair.files:
            lines = set(executed.get(str(file.path), ()))
            for one in file.applied:
                label = _label(one)
                if lines.isdisjoint(range(one.finding.site.line, one.finding.site.end_line + 1)):
                    unreached.append(label)
                    continue
                candidate = self.only([one], label)
                if candidate is not None:
                    hit = tuple(site for site in sites if site.shares_line_with(one.finding.site))
                    alone.append(replace(candidate, targets=hit))
            for refused in file.refused:
                at = refused.finding.site
                if not lines.isdisjoint(range(at.line, at.end_line + 1)):
                    why = "; ".join(f"{one.rewrite}: {one.text}" for one in refused.reasons if one.near)
                    declined.append(f"{at.path}:{at.line} {refused.finding.rule}: {why}")
        return Planned(tuple(alone), tuple(unreached), tuple(declined))

    def only(self, rewrites: Sequence[Applied], label: str) -> Candidate | None:
        """These rewrites and no others; None where they change nothing without the others."""
        places = frozenset(place_of(one.finding) for one in rewrites)
        repair = self._repair(replace(self.wanted, places=places))
        texts = {str(file.path): (file.before, file.after) for file in repair.files if file.changed}
        if not texts:
            return None
        if len(rewrites) > 1:
            return Candidate(label, texts)
        (one,) = rewrites
        return Candidate(label, texts, finding=one.finding, rewrite=one.rewrite, difference=one.difference)

    def together(self, alone: Sequence[Candidate], label: str) -> Candidate | None:
        """Several of the planned ones at once."""
        rewrites = [Applied(one.finding, one.rewrite or "", None) for one in alone if one.finding is not None]
        found = self.only(rewrites, label)
        if found is None:
            return None
        targets = tuple(dict.fromkeys(site for one in alone for site in one.targets))
        differences = "; ".join(dict.fromkeys(one.difference for one in alone if one.difference)) or None
        return replace(found, members=tuple(one.label for one in alone), targets=targets, difference=differences)

    def _repair(self, wanted: Wanted) -> Repair:
        return repair_paths(self.files, self.settings, wanted, jobs=1)


def of_patch(files: Sequence[Patched], label: str) -> Candidate:
    """A patch as one change."""
    return Candidate(label, {str(file.path): (file.before, file.after) for file in files})


def of_settings(words: Sequence[str]) -> Candidate:
    """Settings ``key=value``, as one change.  Raises SettingError."""
    settings = dict(map(_setting, words))
    return Candidate(", ".join(f"{key}={value!r}" for key, value in settings.items()), settings=settings)


def diff_of(candidate: Candidate, shown: Mapping[str, str]) -> str:
    """The unified diff of a change; ``shown`` are the paths that it names."""
    parts: list[str] = []
    for path, (before, after) in candidate.texts.items():
        name = shown.get(path, path).removeprefix("/")
        lines = difflib.unified_diff(before.split("\n"), after.split("\n"), f"a/{name}", f"b/{name}", lineterm="")
        parts += lines
    return "\n".join(parts) + "\n" if parts else ""


def _setting(word: str) -> tuple[str, Any]:
    key, equals, text = word.partition("=")
    key = key.strip().removeprefix("torch.").removeprefix("_")
    room, _, name = key.partition(".")
    name = name.removeprefix("config.") if room in ROOMS else name
    if room not in ROOMS:
        room, name = "dynamo", key
    if not equals or not all(part.isidentifier() for part in name.split(".")):
        raise SettingError(
            f"{word!r} is not of the form key=value, such as capture_scalar_outputs=True or inductor.max_autotune=True"
        )
    try:
        return f"{room}.{name}", ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return f"{room}.{name}", text.strip()


def _label(one: Applied) -> str:
    site = one.finding.site
    return f"{Path(site.path).name}:{site.line} {one.rewrite}"
