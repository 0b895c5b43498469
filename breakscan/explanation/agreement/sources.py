"""The files of a run, by the paths that reports show, each parsed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from breakscan.model.findings import Site
from breakscan.source.module import SourceModule, SourceProblem, parse_module
from breakscan.source.outline import Outline
from breakscan.source.source_files import SourceFiles
from breakscan.source.spans import may_be_skipped


class Sources:
    """Parses the files of a run. Files that are not what ran, or cannot be read or parsed, are treated as unknown."""

    def __init__(self, files: SourceFiles) -> None:
        self._run = files
        self._files: dict[str, _File | None] = {}

    def module(self, path: str) -> SourceModule | None:
        """Returns the syntax tree of a file."""
        file = self._file(path)
        return file.module if file else None

    def text(self, site: Site) -> str:
        """Returns the text of a site, or the empty string."""
        module = self.module(site.path)
        return module.segment(site) if module and site.end_line <= len(module.lines) else ""

    def function(self, path: str, line: int) -> str | None:
        """Returns the qualified name, without ``<locals>``, of the function or lambda around a line."""
        file = self._file(path)
        scope = file.outline.function_at(line, lambdas=True) if file else None
        return scope.path if scope else None

    def may_be_skipped(self, site: Site) -> bool:
        """Returns whether the code of a site may be left out when its line runs."""
        module = self.module(site.path)
        return module is None or may_be_skipped(site, module)

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            text = self._run.text(path) if self._run.is_current(path) else None
            try:
                self._files[path] = None if text is None else _File(parse_module(text, Path(path), path))
            except SourceProblem:
                self._files[path] = None
        return self._files[path]


@dataclass
class _File:
    module: SourceModule

    @cached_property
    def outline(self) -> Outline:
        return Outline(self.module.tree)
