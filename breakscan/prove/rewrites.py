"""The changes to verify: rewrites of the code that the program ran, a patch, or settings of the compiler."""

import ast
import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.fix.planner import WantedRewrites, place_of
from breakscan.fix.repair import repair_found
from breakscan.fix.result import Refused, Repair, assumes
from breakscan.model.findings import CheckResult, Finding, Site
from breakscan.prove.protocol import CONFIGURATIONS
from breakscan.prove.worker import Candidate
from breakscan.rulebook.config import FileSettings
from breakscan.source.module import SourceProblem, decode_source


@dataclass(frozen=True, slots=True)
class Planned:
    """The planned rewrites: ``alone``, ``dependent`` on others, ``unreached`` where code does not run; ``declined`` are
    findings in code that runs and that no rewrite fixes."""

    alone: tuple[Candidate, ...]
    dependent: tuple[Candidate, ...]
    unreached: tuple[str, ...]
    declined: tuple[Refused, ...]


@dataclass(frozen=True)
class Rewrites:
    """Plans rewrites of files, given by absolute paths."""

    files: tuple[Path, ...]
    settings: FileSettings
    wanted: WantedRewrites

    def plan(self, executed: Mapping[str, Collection[int]], sites: Sequence[Site]) -> Planned:
        """Plans them. ``executed`` are lines by absolute path, ``sites`` those where the program breaks the graph."""
        alone: list[Candidate] = []
        dependent: list[Candidate] = []
        unreached: list[str] = []
        declined: list[Refused] = []
        for file in self._repair(self.wanted).files:
            lines = set(executed.get(str(file.path), ()))
            for one in file.applied:
                site, label = one.finding.site, _label([one.finding], one.rewrite)
                if lines.isdisjoint(range(site.line, site.end_line + 1)):
                    unreached.append(label)
                    continue
                targets = tuple(broken for broken in sites if broken.shares_line_with(site))
                found, rewrite = (one.finding,), one.rewrite
                made = Candidate(label, findings=found, rewrite=rewrite, differences=one.differences, targets=targets)
                texts = self._texts([made])
                same = next((number for number, other in enumerate(alone) if other.texts == texts), None)
                if not texts:
                    dependent.append(made)
                elif same is None:
                    alone.append(replace(made, texts=texts))
                else:
                    alone[same] = _merged(alone[same], made)
            for refused in file.refused:
                at = refused.finding.site
                if not lines.isdisjoint(range(at.line, at.end_line + 1)):
                    declined.append(refused)
        return Planned(tuple(alone), tuple(dependent), tuple(unreached), tuple(declined))

    def together(self, rewrites: Sequence[Candidate], label: str) -> Candidate | None:
        """Combines several of the planned rewrites. Returns None if they change nothing without the others."""
        if not (texts := self._texts(rewrites)):
            return None
        return Candidate(
            label,
            texts=texts,
            differences=tuple(dict.fromkeys(difference for one in rewrites for difference in one.differences)),
            members=tuple(one.label for one in rewrites),
            targets=tuple(dict.fromkeys(site for one in rewrites for site in one.targets)),
        )

    def _texts(self, rewrites: Sequence[Candidate]) -> dict[str, tuple[str, str]]:
        """Returns the texts of the files without and with these rewrites."""
        places = {place_of(one.findings[0]): one.rewrite for one in rewrites if one.rewrite}
        repair = self._repair(replace(self.wanted, places=places))
        return {str(file.path): (file.before, file.after) for file in repair.files if file.changed}

    def _repair(self, wanted: WantedRewrites) -> Repair:
        return repair_found(self._found, self.settings, wanted, jobs=1)

    @cached_property
    def _found(self) -> CheckResult:
        return check_paths(self.files, self.settings, jobs=1, on_purpose=True)


def _merged(one: Candidate, other: Candidate) -> Candidate:
    """Merges two rewrites with the same resulting text, such as a decorator that fixes two findings."""
    findings, targets = (*one.findings, *other.findings), (*one.targets, *other.targets)
    label = _label(findings, one.rewrite or "")
    return replace(one, label=label, findings=findings, targets=tuple(dict.fromkeys(targets)))


def _label(findings: Sequence[Finding], rewrite: str) -> str:
    lines = "+".join(str(one.site.line) for one in findings)
    return f"{Path(findings[0].site.path).name}:{lines} {rewrite}"


class ChangeError(Exception):
    """A setting is not of the form that is wanted; a diff cannot be read, or does not fit the files."""


def _setting(word: str) -> tuple[str, object]:
    key, equals, text = word.partition("=")
    key = key.strip().removeprefix("torch.").removeprefix("_")
    room, _, name = key.partition(".")
    name = name.removeprefix("config.") if room in CONFIGURATIONS else name
    if room not in CONFIGURATIONS:
        room, name = "dynamo", key
    if not equals or not all(part.isidentifier() for part in name.split(".")):
        raise ChangeError(
            f"{word!r} is not of the form key=value, such as capture_scalar_outputs=True or inductor.max_autotune=True"
        )
    try:
        return f"{room}.{name}", ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return f"{room}.{name}", text.strip()


FROZEN = "no weight may change after the first compiled call"
"""The assumption of constant weights in compiled code, which the calls up to a change of them do not show."""
FREEZING = "inductor.freezing"


def of_settings(words: Sequence[str]) -> Candidate:
    """Settings ``key=value`` as one change, by whole names (``dynamo.recompile_limit``).  Raises ChangeError."""
    settings = dict(map(_setting, words))
    label = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return Candidate(label, settings=settings, differences=(assumes(FROZEN),) if settings.get(FREEZING) else ())


def diff_of(candidate: Candidate, shown: Mapping[str, str]) -> str:
    """Returns the unified diff of a change; ``shown`` holds the paths that it names."""
    parts: list[str] = []
    for path, (before, after) in candidate.texts.items():
        name = shown.get(path, path).removeprefix("/")
        lines = difflib.unified_diff(before.split("\n"), after.split("\n"), f"a/{name}", f"b/{name}", lineterm="")
        parts += lines
    return "\n".join(parts) + "\n" if parts else ""


# -- patches --------------------------------------------------------------------------------------

_SIGNATURE = "-- "
"""The line that mail programs put between a diff and the version of git."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(slots=True)
class _Hunk:
    """A hunk of a diff. ``start`` is a line of the old text, from 1."""

    start: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def patched_files(text: str, folder: Path) -> dict[str, tuple[str, str]]:
    """Applies a diff to files below a folder.  Returns old and new texts by absolute path.  Raises ChangeError."""
    return dict(_patched(name, hunks, folder) for name, hunks in _files(text).items())


def _files(text: str) -> dict[str, list[_Hunk]]:
    """The hunks of each file that a diff names."""
    lines = iter(text.split("\n"))
    found: dict[str, list[_Hunk]] = {}
    hunks: list[_Hunk] | None = None
    for line in lines:
        if line.startswith("--- "):
            new = next(lines, "")
            if not new.startswith("+++ "):
                raise ChangeError(f"{line!r} is not followed by a line that begins with +++")
            name = new[4:].split("\t")[0].strip()
            if name == "/dev/null":
                raise ChangeError(f"it deletes {line[4:].strip()}: only changes of files can be verified")
            hunks = found.setdefault(name, [])
        elif head := _HUNK.match(line):
            if hunks is None:
                raise ChangeError("it has a hunk before the name of any file")
            hunks.append(_hunk(lines, head))
        elif hunks and line.startswith(("+", "-")) and not line.startswith(_SIGNATURE):
            # Left out without a word, it would not be verified.
            raise ChangeError(f"the hunk at line {hunks[-1].start} is longer than its first line says: {line!r}")
    if hunks is None:
        raise ChangeError("it is no unified diff: there is no line that begins with ---")
    return found


def _hunk(lines: Iterator[str], head: re.Match[str]) -> _Hunk:
    start, old_size, _, new_size = head.groups()
    wanted = int(old_size or 1), int(new_size or 1)
    hunk = _Hunk(int(start))
    while (len(hunk.old), len(hunk.new)) != wanted:
        line = next(lines, None)
        if line is None or line[:1] not in ("", " ", "-", "+", "\\"):
            raise ChangeError(f"the hunk at line {start} is cut off")
        if line[:1] in ("", " ", "-"):
            hunk.old.append(line[1:])
        if line[:1] in ("", " ", "+"):
            hunk.new.append(line[1:])
    return hunk


def _patched(name: str, hunks: list[_Hunk], folder: Path) -> tuple[str, tuple[str, str]]:
    names = [name.partition("/")[2], name] if name[:2] in ("a/", "b/") else [name]
    path = next((folder / one for one in names if one and (folder / one).is_file()), None)
    if path is None:
        raise ChangeError(f"there is no file {name} below {folder}")
    real = path.resolve()
    if not real.is_relative_to(folder.resolve()):
        remedy = "run verify in a folder that holds it, with a diff that names it relative to that folder"
        raise ChangeError(f"{name} leads to {real}, which is not below {folder}: {remedy}")
    try:
        before = decode_source(path.read_bytes(), name)
    except (OSError, SourceProblem) as error:
        raise ChangeError(f"{name} cannot be read: {error}") from error
    lines = before.split("\n")
    shift = 0
    for hunk in hunks:
        start = hunk.start
        at = _place(lines, hunk.old, start - 1 + shift if hunk.old else start + shift)
        if at is None:
            raise ChangeError(f"{name} is not what the diff was made of: line {start} reads otherwise")
        lines[at : at + len(hunk.old)] = hunk.new
        shift += len(hunk.new) - len(hunk.old)
    return str(path.absolute()), (before, "\n".join(lines))


def _place(lines: list[str], old: list[str], expected: int) -> int | None:
    """Returns the place of the old lines: the one nearest to the expected place."""
    places = [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    return min(places, key=lambda at: abs(at - expected), default=None)
