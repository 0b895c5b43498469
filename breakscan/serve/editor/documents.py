"""Open files of the editor: their text, and findings and edits at its lines."""

from __future__ import annotations

import os
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path
from pygls.workspace import PositionCodec, TextDocument

from breakscan.model.findings import Finding, Severity, Site
from breakscan.report.diagnostics import finding_diagnostic
from breakscan.report.printable import printable
from breakscan.rulebook.document import Rule
from breakscan.rulebook.library import Library
from breakscan.serve.editor.checked import CheckedText, TextChecker
from breakscan.source.module import with_plain_line_ends
from breakscan.source.notebook_file import CodeCell
from breakscan.source.python_text import cells_of_text, is_notebook, shown, text_of_cells, with_start_inside
from breakscan.source.suppressions import with_suppressions


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

    def split(self, text: str) -> Iterator[str]:
        """The text of each part, once the text of all is ``text`` after an edit."""
        if is_notebook(self.path):
            yield from (shown(cell.text) for cell in cells_of_text(with_start_inside(text)))
        else:
            yield text


def text_of_file(uri: str, path: Path, version: int | None, text: str, codec: PositionCodec) -> OpenText:
    """A file that is one document; line ends in its text are plain."""
    return OpenText(path, text, (TextPart(uri, version, 1, tuple(text.split("\n"))),), codec)


def text_of_notebook(
    path: Path, notebook: types.NotebookDocument, documents: Mapping[str, TextDocument], codec: PositionCodec
) -> OpenText:
    """A notebook, whose code cells are documents.  Raises SourceProblem where it has no Python text."""
    cells: list[CodeCell] = []
    sources: dict[int, TextDocument] = {}
    for number, cell in enumerate(notebook.cells, 1):
        document = documents.get(cell.document)
        if cell.kind == types.NotebookCellKind.Code and document is not None and document.language_id == "python":
            sources[number] = document
            cells.append(CodeCell(number, with_plain_line_ends(document.source)))
    text = text_of_cells(cells, str(path))
    first = {cell.number: cell.line + 1 for cell in cells_of_text(text)}
    # Those in another language are not in the text.
    parts = (
        TextPart(document.uri, document.version, first[cell.number], tuple(cell.source.split("\n")))
        for cell in cells
        if cell.number in first and (document := sources[cell.number])
    )
    return OpenText(path, text, tuple(parts), codec)


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Lines of a text, from ``first`` (from 0) up to ``last``, that are replaced by ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]


def line_edits(before: str, after: str) -> Iterator[LineEdit]:
    """Yield the edits that turn one text into the other."""
    old, new = before.split("\n"), after.split("\n")
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield LineEdit(first, last, tuple(new[start:end]))


SOURCE = "breakscan"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


def diagnostics_of(opened: OpenText, checked: CheckedText, library: Library) -> dict[str, list[types.Diagnostic]]:
    """Return the diagnostics of an open file, for each of its documents."""
    found: dict[str, list[types.Diagnostic]] = {part.uri: [] for part in opened.parts}
    for finding in checked.findings:
        part, place = opened.range_of(finding.site)
        found[part.uri].append(
            types.Diagnostic(
                place,
                message_words(finding, library.get(finding.rule)),
                _SEVERITIES[finding.severity],
                finding.rule,
                source=SOURCE,
                related_information=_related(opened, finding),
            )
        )
    for error in checked.errors:
        part, place = opened.range_of(Site(error.path, error.line, error.column, error.line, error.column + 1))
        found[part.uri].append(types.Diagnostic(place, error.message, types.DiagnosticSeverity.Error, source=SOURCE))
    return found


def _related(opened: OpenText, finding: Finding) -> list[types.DiagnosticRelatedInformation] | None:
    region = finding.region
    if region is None or region.assumed is not None:
        return None
    path = os.path.abspath(region.path)
    if path == str(opened.path):
        part, place = opened.range_of(Site(region.path, region.line, 1, region.line, 1))
        location = types.Location(part.uri, types.Range(place.start, place.start))
    else:
        line = types.Position(region.line - 1, 0)
        location = types.Location(from_fs_path(path) or "", types.Range(line, line))
    return [types.DiagnosticRelatedInformation(location, region.how)]


def actions_at(
    checker: TextChecker,
    opened: OpenText,
    checked: CheckedText,
    findings: Sequence[Finding],
    context: types.CodeActionContext,
) -> list[types.CodeAction]:
    """The edits at some findings: rewrites, then comments that suppress them."""
    found: list[types.CodeAction] = []
    for finding in findings:
        mine = [one for one in context.diagnostics if one.source == SOURCE and one.code == finding.rule]
        for one in checker.rewritten(checked, finding):
            safety = f"unsafe: {one.differences}" if one.differences else "safe"
            title = f"Fix {finding.rule} with {one.rewrite} ({safety})"
            found.append(_action(title, opened, one.after, mine, one.differences is None))
    for finding in findings:
        mine = [one for one in context.diagnostics if one.source == SOURCE and one.code == finding.rule]
        try:
            after = with_suppressions(checked.text, {finding.site.line: [finding.rule]}, "")
        except (tokenize.TokenError, SyntaxError):
            continue
        found.append(_action(f"Ignore {finding.rule} here", opened, after, mine, False))
    return found


def _action(
    title: str, opened: OpenText, after: str, diagnostics: Sequence[types.Diagnostic], preferred: bool
) -> types.CodeAction:
    changes = {
        part.uri: [_text_edit(edit, part, opened) for edit in edits]
        for part, text in zip(opened.parts, opened.split(after), strict=True)
        if (edits := list(line_edits("\n".join(part.lines), text)))
    }
    return types.CodeAction(
        title,
        types.CodeActionKind.QuickFix,
        list(diagnostics),
        is_preferred=preferred or None,
        edit=types.WorkspaceEdit(changes=changes),
    )


def _text_edit(edit: LineEdit, part: TextPart, opened: OpenText) -> types.TextEdit:
    """An edit of whole lines; the last one of a text may have no end."""
    lines = part.lines
    start = types.Position(edit.first, 0)
    if edit.last < len(lines):
        end = types.Position(edit.last, 0)
        return types.TextEdit(types.Range(start, end), "".join(f"{line}\n" for line in edit.lines))
    end = types.Position(len(lines) - 1, opened.codec.client_num_units(lines[-1]))
    if edit.first == len(lines):
        return types.TextEdit(types.Range(end, end), "".join(f"\n{line}" for line in edit.lines))
    return types.TextEdit(types.Range(start, end), "\n".join(edit.lines))


def message_words(finding: Finding, rule: Rule | None) -> str:
    """Return the message of a finding, with what to write instead."""
    return finding_diagnostic(printable(finding), rule).text


def page_of(finding: Finding, rule: Rule | None) -> str:
    """Return the message of a finding and the document of its rule, as Markdown."""
    head = f"**{finding.rule} {finding.name}**"
    said = f"{head}\n\n{message_words(finding, rule)}"
    return f"{said}\n\n---\n\n{rule.body}" if rule else said
