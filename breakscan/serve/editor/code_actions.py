"""The edits that are offered at findings: rewrites, and comments that suppress them."""

from __future__ import annotations

import tokenize
from collections.abc import Sequence

from lsprotocol import types

from breakscan.model.findings import Finding
from breakscan.report.editor import fix_title, ignore_title
from breakscan.serve.editor.checked import CheckedText, TextChecker
from breakscan.serve.editor.diagnostics import SOURCE
from breakscan.serve.editor.edits import LineEdit, line_edits
from breakscan.serve.editor.open_text import OpenText, TextPart
from breakscan.source.suppressions import with_suppressions


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
            title = fix_title(finding, one.rewrite, one.differences)
            found.append(_action(title, opened, one.after, mine, one.differences is None))
    for finding in findings:
        mine = [one for one in context.diagnostics if one.source == SOURCE and one.code == finding.rule]
        try:
            after = with_suppressions(checked.text, {finding.site.line: [finding.rule]}, "")
        except (tokenize.TokenError, SyntaxError):
            continue
        found.append(_action(ignore_title(finding.rule), opened, after, mine, False))
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
