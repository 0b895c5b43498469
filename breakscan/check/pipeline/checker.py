"""Checks files one after the other, each under its own settings, and keeps the results for later runs."""

import functools
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from breakscan.check.pipeline.cache import ResultCache, cache_fingerprint
from breakscan.check.pipeline.results import CONFIDENCE_ORDER, FileResult
from breakscan.model.findings import Condition, ConditionKind, Confidence, Finding, Mode, Verdict
from breakscan.model.observations import FunctionSeen, Observations
from breakscan.rulebook.config import FileSettings, Settings, enabled_rules, resolve_target
from breakscan.source.paths import PerFileIgnores

if TYPE_CHECKING:
    from breakscan.check.interpreter.value_log import Notes
    from breakscan.check.pipeline.check_file import FileChecker


class Checker:
    """Checks files with one :class:`.FileChecker` for each configuration, and keeps the results where its settings say.
    It takes files to be as they were when it first read them, until :meth:`refresh` names them. ``observing`` says that
    :meth:`check_file` takes the observations of the settings for true."""

    def __init__(self, settings: FileSettings, *, observing: bool = False) -> None:
        self.settings = settings
        self._observing = observing
        self._observer: Checker | None = None
        self._cwd = str(Path.cwd())
        self._checkers: dict[int, FileChecker] = {}
        """By settings, which each of them keeps alive."""
        self._caches: dict[int, tuple[Settings, ResultCache | None]] = {}

    def of(self, path: Path) -> "FileChecker":
        """The checker of a file at an absolute path."""
        settings = self.settings.of(path)
        known = self._checkers.get(id(settings))
        if known is None:
            from breakscan.check.pipeline.check_file import FileChecker  # slow to import: kept results need none of it

            observations = settings.observations if self._observing else None
            known = self._checkers[id(settings)] = FileChecker(settings, observations)
        return known

    def known(self, path: Path) -> FileResult | None:
        """The result of an earlier run for a file at an absolute path, where it still holds."""
        cache = self._cache_of(path)
        return None if cache is None else cache.get(path)

    def check(self, path: Path) -> FileResult:
        """The result for a file at an absolute path, found anew and kept.  What only a recorded run shows is in it."""
        result = self.check_file(path)
        observations = self.settings.of(path).observations
        if observations is not None and observations.concern(result.depends.values()):
            self._observer = self._observer or Checker(self.settings, observing=True)
            result = with_observed(result, self._observer.check_file(path), observations)
        cache = self._cache_of(path)
        if cache is not None and not result.errors:
            cache.put(path, result)
        return result

    def check_file(self, path: Path, text: str | None = None, notes: "Notes | None" = None) -> FileResult:
        """As :meth:`.FileChecker.check_file`."""
        return self.of(path).check_file(path, text, notes)

    @contextmanager
    def changed(self, path: Path, text: str, roots: Iterable[Path]) -> Iterator[None]:
        """Reads another text in place of a file when files ``roots`` are checked, see :meth:`.Project.changed`."""
        with ExitStack() as stack:
            for checker in {id(one): one for one in map(self.of, roots)}.values():
                stack.enter_context(checker.project.changed(path, text))
            yield

    def forget(self) -> None:
        """Drops the results of interpretation: from now on, more of them are needed."""
        for checker in self._checkers.values():
            checker.project.forget()

    def refresh(self, paths: Collection[Path]) -> None:
        """Reads files again, which may have changed, come or gone, see :meth:`.Project.refresh`."""
        self._caches.clear()
        for checker in self._checkers.values():
            checker.project.refresh(map(str, paths))

    def release(self) -> None:
        """Frees all trees."""
        self.release_observed()
        for checker in self._checkers.values():
            checker.project.release()

    def release_observed(self) -> None:
        """Frees the trees that only the observations of recorded runs needed."""
        if self._observer is not None:
            self._observer.release()

    def _cache_of(self, path: Path) -> ResultCache | None:
        settings = self.settings.of(path)
        if id(settings) not in self._caches:
            cache = None
            if (folder := settings.cache_folder) is not None:
                cache = ResultCache(folder, cache_fingerprint(settings, resolve_target(settings), self._cwd))
            self._caches[id(settings)] = settings, cache
        return self._caches[id(settings)][1]


ON_PURPOSE = ("BRK503", "BRK505")
"""Rules of breaks that the code asks for, by ``graph_break()`` or ``torch.compiler.disable``."""
TRAINING_STEP = ("BRK601", "BRK615")
"""Rules of ``backward`` and optimizers: a step that code compiles asks for them.  A split leaves no part uncompiled."""


class Shown:
    """The findings that are shown, by the settings of files."""

    def __init__(self, settings: FileSettings, on_purpose: bool = True) -> None:
        self._settings = settings
        self._on_purpose = on_purpose
        self._cwd = Path.cwd()
        self._wanted: dict[int, tuple[frozenset[str], frozenset[Confidence], PerFileIgnores]] = {}
        self._in_file = functools.cache(self._read_in_file)

    def shows(self, finding: Finding) -> bool:
        """True if settings select the rule and the confidence of a finding; comments are another matter."""
        rules, confidences = self._in_file(finding.site.path)
        is_asked = finding.rule in ON_PURPOSE and finding.mode is Mode.DEFAULT
        if finding.rule in TRAINING_STEP and finding.region is not None and finding.region.assumed is None:
            is_asked = finding.verdict is Verdict.SPLITS
        if is_asked and not self._on_purpose:
            return finding.rule in rules and Confidence.POSSIBLE in confidences
        return finding.rule in rules and finding.confidence in confidences

    def _read_in_file(self, shown: str) -> tuple[frozenset[str], frozenset[Confidence]]:
        """The rules and confidences that are shown in a file, by the path that findings have."""
        path = self._cwd / shown
        settings = self._settings.of(path)
        library = settings.library
        if id(settings) not in self._wanted:
            confidences = frozenset(CONFIDENCE_ORDER[: CONFIDENCE_ORDER.index(settings.confidence) + 1])
            self._wanted[id(settings)] = enabled_rules(settings, library), confidences, PerFileIgnores(settings)
        rules, confidences, per_file = self._wanted[id(settings)]
        off = {one.id for rule in rules if (one := library.get(rule)) and per_file.covers(path, one.id, one.name)}
        return rules - off, confidences


_UNSEEN = Condition(ConditionKind.UNSEEN, "")


def with_observed(plain: FileResult, observed: FileResult, observations: Observations) -> FileResult:
    """The result for a file: what the code shows, what only the run shows, which says so, and what the run contradicts,
    which is less sure than the code makes it."""
    digests, cwd = {**plain.depends, **observed.depends}, os.getcwd()

    def seen(path: str, name: str | None) -> FunctionSeen | None:
        digest = digests.get(os.path.normpath(os.path.join(cwd, path)), "")
        return observations.files.get(digest, {}).get(name or "")

    def calls(finding: Finding) -> int:
        """In how many calls the values of a finding's function were seen, or those of the one that calls it."""
        places = [(finding.site.path, finding.function)]
        if finding.region is not None:
            places.append((finding.region.path, finding.region.entry))
        return next((one.calls for place in places if (one := seen(*place))), 1)

    def joined(shown: list[Finding], also: list[Finding]) -> Iterator[Finding]:
        ran = {(finding.rule, finding.site): finding for finding in also}
        for finding in shown:
            same = ran.pop((finding.rule, finding.site), None)
            if same is not None:
                surer = CONFIDENCE_ORDER.index(same.confidence) < CONFIDENCE_ORDER.index(finding.confidence)
                yield replace(same, region=finding.region, observed=calls(same)) if surer else finding
            elif seen(finding.site.path, finding.function) is None:
                yield finding
            else:
                confidence = max(finding.confidence, Confidence.CONDITIONAL, key=CONFIDENCE_ORDER.index)
                yield replace(finding, confidence=confidence, conditions=(*finding.conditions, _UNSEEN))
        for finding in ran.values():
            yield replace(finding, observed=calls(finding))

    return replace(
        plain,
        findings=list(joined(plain.findings, observed.findings)),
        suppressed=list(joined(plain.suppressed, observed.suppressed)),
        depends=digests,
        reaches=list(dict.fromkeys([*plain.reaches, *observed.reaches])),
    )
