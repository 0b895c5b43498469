"""The changes to verify: rewrites of the code that the program ran, a patch, or settings of the compiler."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.fix.planner import WantedRewrites, place_of
from breakscan.fix.repair import repair_found
from breakscan.fix.result import Refused, Repair
from breakscan.fix.source_map import SourceMap
from breakscan.model.findings import CheckResult, Site
from breakscan.prove.candidate import Candidate, Label, RewriteLabel, SetLabel
from breakscan.prove.protocol import CONFIGURATIONS
from breakscan.rulebook.config import FileSettings


@dataclass(frozen=True, slots=True)
class Planned:
    """The planned rewrites.

    ``alone`` are the single rewrites, ``dependent`` those that need others first. ``unreached`` are rewrites of code
    that does not run, and ``declined`` findings in code that runs and that no rewrite fixes.
    """

    alone: tuple[Candidate, ...]
    dependent: tuple[Candidate, ...]
    unreached: tuple[Label, ...]
    declined: tuple[Refused, ...]


@dataclass(frozen=True)
class Rewrites:
    """Plans rewrites of files, given by absolute paths."""

    files: tuple[Path, ...]
    settings: FileSettings
    wanted: WantedRewrites

    def plan(self, executed: Mapping[str, Collection[int]], sites: Sequence[Site]) -> Planned:
        """Plans the rewrites. ``executed`` are lines by absolute path, ``sites`` those where the program breaks
        the graph.
        """
        repair = self._repair(self.wanted)
        alone: list[Candidate] = []
        dependent: list[Candidate] = []
        unreached: list[Label] = []
        declined: list[Refused] = []
        for file in repair.files:
            lines = set(executed.get(str(file.path), ()))
            for one in file.applied:
                site = one.finding.site
                label = RewriteLabel(Path(site.path).name, (site.line,), one.rewrite)
                if lines.isdisjoint(range(site.line, site.end_line + 1)):
                    unreached.append(label)
                    continue
                hit = tuple(broken for broken in sites if broken.shares_line_with(site))
                candidate = Candidate(
                    label,
                    finding=one.finding,
                    rewrite=one.rewrite,
                    differences=one.differences,
                    targets=hit,
                )
                texts, origins = self._texts([candidate])
                same = next((number for number, other in enumerate(alone) if other.texts == texts), None)
                if not texts:
                    dependent.append(candidate)
                elif same is None:
                    alone.append(replace(candidate, texts=texts, lines=origins))
                else:
                    alone[same] = _merged(alone[same], candidate)
            for refused in file.refused:
                at = refused.finding.site
                if not lines.isdisjoint(range(at.line, at.end_line + 1)):
                    declined.append(refused)
        return Planned(tuple(alone), tuple(dependent), tuple(unreached), tuple(declined))

    def together(self, rewrites: Sequence[Candidate], label: SetLabel) -> Candidate | None:
        """Combines several of the planned rewrites. Returns None if they change nothing without the others."""
        texts, lines = self._texts(rewrites)
        if not texts:
            return None
        return Candidate(
            label,
            texts=texts,
            differences=tuple(dict.fromkeys(difference for one in rewrites for difference in one.differences)),
            members=tuple(one.label for one in rewrites),
            targets=tuple(dict.fromkeys(site for one in rewrites for site in one.targets)),
            lines=lines,
        )

    def _texts(self, rewrites: Sequence[Candidate]) -> tuple[dict[str, tuple[str, str]], dict[str, SourceMap]]:
        """Returns the texts of the files with these rewrites only, and where the new lines come from."""
        places = {place_of(one.finding): one.rewrite for one in rewrites if one.finding and one.rewrite}
        repair = self._repair(replace(self.wanted, places=places))
        changed = [file for file in repair.files if file.changed]
        return (
            {str(file.path): (file.before, file.after) for file in changed},
            {str(file.path): file.lines for file in changed},
        )

    def _repair(self, wanted: WantedRewrites) -> Repair:
        return repair_found(self._found, self.settings, wanted, jobs=1)

    @cached_property
    def _found(self) -> CheckResult:
        return check_paths(self.files, self.settings, jobs=1, on_purpose=True)


def _merged(one: Candidate, other: Candidate) -> Candidate:
    """Merges two rewrites with the same resulting text, such as a decorator that fixes two findings: ``net.py:5+9
    where``.
    """
    assert isinstance(one.label, RewriteLabel)
    assert other.finding is not None
    return replace(
        one,
        label=replace(one.label, lines=(*one.label.lines, other.finding.site.line)),
        targets=tuple(dict.fromkeys([*one.targets, *other.targets])),
    )


def of_texts(texts: Mapping[str, tuple[str, str]], label: str) -> Candidate:
    """The change of the texts of files, each before and after, by absolute path."""
    return Candidate(label, texts=texts, lines={path: SourceMap.of_change(*pair) for path, pair in texts.items()})


class SettingError(ValueError):
    """A setting is not of the form that is wanted.  Says what is."""


def settings_of(words: Sequence[str]) -> dict[str, object]:
    """Settings ``key=value`` by their whole names (``dynamo.capture_scalar_outputs``).  Raises SettingError."""
    return dict(map(_setting, words))


def _setting(word: str) -> tuple[str, object]:
    key, equals, text = word.partition("=")
    key = key.strip().removeprefix("torch.").removeprefix("_")
    room, _, name = key.partition(".")
    name = name.removeprefix("config.") if room in CONFIGURATIONS else name
    if room not in CONFIGURATIONS:
        room, name = "dynamo", key
    if not equals or not all(part.isidentifier() for part in name.split(".")):
        raise SettingError(
            f"{word!r} is not of the form key=value, such as capture_scalar_outputs=True or inductor.max_autotune=True"
        )
    try:
        return f"{room}.{name}", ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return f"{room}.{name}", text.strip()


def of_settings(words: Sequence[str]) -> Candidate:
    """Returns settings ``key=value`` as one change. Raises SettingError."""
    settings = settings_of(words)
    return Candidate(", ".join(f"{key}={value!r}" for key, value in settings.items()), settings=settings)


def diff_of(candidate: Candidate, shown: Mapping[str, str]) -> str:
    """Returns the unified diff of a change; ``shown`` holds the paths that it names."""
    parts: list[str] = []
    for path, (before, after) in candidate.texts.items():
        name = shown.get(path, path).removeprefix("/")
        lines = difflib.unified_diff(before.split("\n"), after.split("\n"), f"a/{name}", f"b/{name}", lineterm="")
        parts += lines
    return "\n".join(parts) + "\n" if parts else ""
