"""Open files of the editor: their text, and findings and edits at its lines."""

import contextlib
import os
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path
from pygls.workspace import PositionCodec

from breakscan.model.findings import Finding, Severity, Site
from breakscan.report.diagnostics import error_site, finding_diagnostic
from breakscan.report.printable import printable
from breakscan.rulebook.document import Rule
from breakscan.rulebook.library import Library
from breakscan.serve.editor.checked import CheckedText, TextChecker
from breakscan.source.suppressions import with_suppressions


@dataclass(frozen=True, slots=True)
class OpenText:
    """The text of an open file; line ends are plain."""

    path: Path
    uri: str
    version: int | None
    text: str
    codec: PositionCodec = field(compare=False)

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def range_of(self, site: Site) -> types.Range:
        """Where a site of the text is, in the units of the client."""
        lines = self.lines
        first, last = (min(max(line - 1, 0), len(lines) - 1) for line in (site.line, site.end_line))
        start, end = types.Position(first, site.column - 1), types.Position(last, site.end_column - 1)
        return self.codec.range_to_client_units(lines, types.Range(start, end))

    def met(self, findings: Sequence[Finding], asked: types.Range) -> list[Finding]:
        """The findings whose sites a range of the client meets."""
        places = ((one, self.range_of(one.site)) for one in findings)
        return [one for one, place in places if place.start <= asked.end and asked.start <= place.end]


SOURCE = "breakscan"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


def diagnostics_of(opened: OpenText, checked: CheckedText, library: Library) -> list[types.Diagnostic]:
    findings = [
        types.Diagnostic(
            opened.range_of(finding.site),
            message_words(finding, library.get(finding.rule)),
            _SEVERITIES[finding.severity],
            finding.rule,
            source=SOURCE,
            related_information=_related(opened, finding),
        )
        for finding in checked.findings
    ]
    for error in checked.errors:
        place = opened.range_of(error_site(error))
        findings.append(types.Diagnostic(place, error.message, types.DiagnosticSeverity.Error, source=SOURCE))
    return findings


def _related(opened: OpenText, finding: Finding) -> list[types.DiagnosticRelatedInformation] | None:
    region = finding.region
    if region is None or region.assumed is not None:
        return None
    path = os.path.abspath(region.path)
    uri = opened.uri if path == str(opened.path) else from_fs_path(path) or ""
    line = types.Position(region.line - 1, 0)
    return [types.DiagnosticRelatedInformation(types.Location(uri, types.Range(line, line)), region.how)]


def actions_at(
    checker: TextChecker,
    opened: OpenText,
    checked: CheckedText,
    findings: Sequence[Finding],
    context: types.CodeActionContext,
) -> list[types.CodeAction]:
    """The edits at some findings: rewrites, then comments that suppress them."""
    found: list[types.CodeAction] = []
    comments: list[types.CodeAction] = []
    for finding in findings:
        mine = [one for one in context.diagnostics if one.source == SOURCE and one.code == finding.rule]
        for one in checker.rewritten(checked, finding):
            safety = f"unsafe: {one.differences}" if one.differences else "safe"
            title = f"Fix {finding.rule} with {one.rewrite} ({safety})"
            found.append(_action(title, opened, one.after, mine, one.differences is None))
        with contextlib.suppress(tokenize.TokenError, SyntaxError):
            after = with_suppressions(checked.text, {finding.site.line: [finding.rule]}, "")
            comments.append(_action(f"Ignore {finding.rule} here", opened, after, mine, False))
    return [*found, *comments]


def _action(
    title: str, opened: OpenText, after: str, diagnostics: Sequence[types.Diagnostic], preferred: bool
) -> types.CodeAction:
    return types.CodeAction(
        title,
        types.CodeActionKind.QuickFix,
        list(diagnostics),
        is_preferred=preferred or None,
        edit=types.WorkspaceEdit(changes={opened.uri: [_text_edit(opened, after)]}),
    )


def _text_edit(opened: OpenText, after: str) -> types.TextEdit:
    """The edit of all lines from the first to the last that changes, of which there is one in both texts."""
    old, new = opened.lines, after.split("\n")
    most = min(len(old), len(new)) - 1
    first = next((n for n in range(most) if old[n] != new[n]), most)
    last = next((n for n in range(most - first) if old[-1 - n] != new[-1 - n]), most - first)
    end = len(old) - last - 1
    stop = types.Position(end, opened.codec.client_num_units(old[end]))
    return types.TextEdit(types.Range(types.Position(first, 0), stop), "\n".join(new[first : len(new) - last]))


def message_words(finding: Finding, rule: Rule | None) -> str:
    """Return the message of a finding, with what to write instead."""
    return finding_diagnostic(printable(finding), rule).text


def page_of(finding: Finding, rule: Rule | None) -> str:
    """Return the message of a finding and the document of its rule, as Markdown."""
    head = f"**{finding.rule} {finding.name}**"
    said = f"{head}\n\n{message_words(finding, rule)}"
    return f"{said}\n\n---\n\n{rule.body}" if rule else said
