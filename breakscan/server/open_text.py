"""The text of an open file: where its lines are in the documents of the editor."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec

from breakscan.findings import Site


@dataclass(frozen=True, slots=True)
class TextPart:
    """A document of the editor.  ``first`` is the line of the text, from 1, that its first line is."""

    uri: str
    version: int | None
    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenText:
    """The Python text of an open file, in its parts, by their lines."""

    path: Path
    text: str
    parts: tuple[TextPart, ...]
    codec: PositionCodec = field(compare=False)

    def range_of(self, site: Site) -> tuple[TextPart, types.Range]:
        """Where a site of the text is, in the units of the client."""
        part = self.parts[max(bisect_right(self.parts, site.line, key=lambda one: one.first) - 1, 0)]
        last = len(part.lines) - 1
        lines = [min(max(line - part.first, 0), last) for line in (site.line, site.end_line)]
        start, end = types.Position(lines[0], site.column - 1), types.Position(lines[1], site.end_column - 1)
        return part, self.codec.range_to_client_units(list(part.lines), types.Range(start, end))

    def part(self, uri: str) -> TextPart:
        """The part that is a document."""
        return next(part for part in self.parts if part.uri == uri)


def text_of_file(uri: str, path: Path, version: int | None, text: str, codec: PositionCodec) -> OpenText:
    """A file that is one document; line ends in its text are plain."""
    return OpenText(path, text, (TextPart(uri, version, 1, tuple(text.split("\n"))),), codec)
