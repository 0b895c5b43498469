"""Checks files one after the other, each under its own settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from breakscan.check.interpreter.value_log import Notes
from breakscan.check.pipeline.check_file import FileChecker
from breakscan.check.pipeline.results import FileResult
from breakscan.rulebook.config import FileSettings


class FileCheckers:
    """One checker for the files of each configuration.  ``functions`` are those of :class:`.FileChecker`;
    ``observing`` says that the observations of the settings are taken for true."""

    def __init__(
        self,
        settings: FileSettings,
        functions: Mapping[Path, Mapping[str, bool]] | None = None,
        *,
        observing: bool = False,
    ) -> None:
        self.settings = settings
        self._functions = functions
        self._observing = observing
        self._checkers: dict[int, FileChecker] = {}
        """By settings, which each of them keeps alive."""

    def of(self, path: Path) -> FileChecker:
        """The checker of a file at an absolute path."""
        settings = self.settings.of(path)
        known = self._checkers.get(id(settings))
        if known is None:
            observations = settings.observations if self._observing else None
            known = self._checkers[id(settings)] = FileChecker(settings, self._functions, observations)
        return known

    def check_file(self, path: Path, text: str | None = None, notes: Notes | None = None) -> FileResult:
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
        """Lets go of what was found out by interpreting: from now on, more is asked for."""
        for checker in self._checkers.values():
            checker.project.forget()

    def refresh(self, paths: Collection[Path]) -> None:
        """As :meth:`.Project.refresh`."""
        for checker in self._checkers.values():
            checker.project.refresh(map(str, paths))

    def release(self) -> None:
        """Lets go of all trees."""
        for checker in self._checkers.values():
            checker.project.release()
