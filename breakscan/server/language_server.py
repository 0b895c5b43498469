"""The language server, by pygls: it speaks the protocol, and checks in one thread of its own."""

from __future__ import annotations

import asyncio
import os
import tokenize
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from breakscan import __version__
from breakscan.config import ConfigError
from breakscan.findings import Finding, Severity, Site
from breakscan.reports.server.words import fix_title, ignore_title, message_words, page_of
from breakscan.rulebook.errors import RuleError
from breakscan.server.checked import CheckedText, TextChecker, roots_below
from breakscan.server.edits import LineEdit, line_edits
from breakscan.source.module import with_plain_line_ends
from breakscan.source.suppressing import with_suppressions

T = TypeVar("T")

Roots = Mapping[Path, tuple[Path, ...]]
"""For each file those from which the compiler reaches it."""

SOURCE = "breakscan"
_PAUSE = 0.1
"""Seconds without a keystroke before a text is checked."""
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


class BreakscanServer(LanguageServer):
    """Findings of open files.  ``checked`` has the last result of each, by uri and with the version of its text."""

    def __init__(self) -> None:
        super().__init__("breakscan", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
        self.checked: dict[str, tuple[int | None, CheckedText]] = {}
        self.roots: dict[Path, tuple[Path, ...]] = {}
        self.checker = TextChecker()
        self._thread = ThreadPoolExecutor(1)
        """Where everything is checked: what the checker keeps is not safe for several."""
        self._processes: Pool | None = None
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._scans: set[asyncio.Task[None]] = set()
        self._told = ""

    def check_soon(self, uri: str, pause: float = _PAUSE) -> None:
        """Checks an open file once nothing was typed for a moment."""
        if (task := self._waiting.pop(uri, None)) is not None:
            task.cancel()
        self._waiting[uri] = asyncio.get_running_loop().create_task(self._check(uri, pause))

    def forget(self, uri: str) -> None:
        """The file is closed."""
        if (task := self._waiting.pop(uri, None)) is not None:
            task.cancel()
        self.checked.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def scan_soon(self, folders: Sequence[Path]) -> None:
        """Finds out from which files of some folders compiled code reaches others, and checks what is open again."""
        task = asyncio.get_running_loop().create_task(self._scan(folders))
        self._scans.add(task)
        task.add_done_callback(self._scans.discard)

    async def checking(self, function: Callable[..., T], *arguments: object) -> T:
        """Calls a function in the thread that checks."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def end(self) -> None:
        """The editor is gone: nothing is found out any more."""
        if self._processes is not None:
            self._processes.terminate()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def current(self, uri: str) -> CheckedText | None:
        """The result for the present text of an open file; None where there is none."""
        if (task := self._waiting.get(uri)) is not None:
            await asyncio.wait([task])
        known = self.checked.get(uri)
        return known[1] if known and known[1].text == with_plain_line_ends(self._document(uri).source) else None

    def range_of(self, uri: str, site: Site) -> types.Range:
        """The range of a site in an open file, in the units of the client."""
        document = self._document(uri)
        start = types.Position(site.line - 1, site.column - 1)
        end = types.Position(site.end_line - 1, site.end_column - 1)
        lines = with_plain_line_ends(document.source).split("\n")
        return document.position_codec.range_to_client_units(lines, types.Range(start, end))

    def _document(self, uri: str) -> TextDocument:
        return self.workspace.get_text_document(uri)

    async def _check(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        path = _path_of(uri)
        document = self._document(uri)
        if path is None:
            return
        version, text = document.version, with_plain_line_ends(document.source)
        try:
            found = await self.checking(self.checker.check, path, text, self.roots.get(path, ()))
        except (ConfigError, RuleError) as error:
            self._tell(str(error))
            return
        if self._document(uri).version == version:
            self.checked[uri] = version, found
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri, self._diagnostics(uri, found), version)
            )

    async def _scan(self, folders: Sequence[Path]) -> None:
        if self._processes is None:
            self._processes = get_context("spawn").Pool(1)
        done = [self._scanned(self._processes, folder) for folder in folders]
        for found in await asyncio.gather(*done, return_exceptions=True):
            if isinstance(found, (ConfigError, RuleError)):
                self._tell(str(found))
            elif isinstance(found, BaseException):
                raise found
            else:
                self.roots |= found
        for uri in list(self.checked):
            self.check_soon(uri, 0)

    def _scanned(self, processes: Pool, folder: Path) -> asyncio.Future[Roots]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Roots] = loop.create_future()

        def found(roots: Roots) -> None:
            loop.call_soon_threadsafe(future.set_result, roots)

        def failed(error: BaseException) -> None:
            loop.call_soon_threadsafe(future.set_exception, error)

        processes.apply_async(roots_below, (folder,), callback=found, error_callback=failed)
        return future

    def _tell(self, problem: str) -> None:
        """Says what is wrong, once."""
        if problem != self._told:
            self._told = problem
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"breakscan: {problem}"))

    def _diagnostics(self, uri: str, checked: CheckedText) -> list[types.Diagnostic]:
        found = [
            types.Diagnostic(
                self.range_of(uri, finding.site),
                message_words(finding, self.checker.rule(checked.path, finding)),
                _SEVERITIES[finding.severity],
                finding.rule,
                source=SOURCE,
                related_information=self._related(uri, finding),
            )
            for finding in checked.findings
        ]
        for error in checked.errors:
            site = Site(error.path, error.line, error.column, error.line, error.column + 1)
            place = self.range_of(uri, site)
            found.append(types.Diagnostic(place, error.message, types.DiagnosticSeverity.Error, source=SOURCE))
        return found

    def _related(self, uri: str, finding: Finding) -> list[types.DiagnosticRelatedInformation] | None:
        region = finding.region
        if region is None or region.assumed is not None:
            return None
        other = from_fs_path(os.path.abspath(region.path)) or uri
        line = types.Position(region.line - 1, 0)
        return [types.DiagnosticRelatedInformation(types.Location(other, types.Range(line, line)), region.how)]


def _path_of(uri: str) -> Path | None:
    """The file of a document; None for what is in no file."""
    found = to_fs_path(uri) if urlsplit(uri).scheme == "file" else None
    return Path(os.path.abspath(found)) if found else None


def make_server() -> BreakscanServer:
    """A server with all that it can do."""
    server = BreakscanServer()

    @server.feature(types.INITIALIZED)
    async def initialized(ls: BreakscanServer, _: types.InitializedParams) -> None:
        ls.scan_soon([Path(path) for folder in ls.workspace.folders.values() if (path := to_fs_path(folder.uri))])

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(ls: BreakscanServer, params: types.DidOpenTextDocumentParams) -> None:
        ls.check_soon(params.text_document.uri, 0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(ls: BreakscanServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.check_soon(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(ls: BreakscanServer, params: types.DidSaveTextDocumentParams) -> None:
        await ls.checking(ls.checker.refresh)
        for uri in {*ls.checked, params.text_document.uri}:  # it may be what others call
            ls.check_soon(uri, 0)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_files(ls: BreakscanServer, _: types.DidChangeWatchedFilesParams) -> None:
        await ls.checking(ls.checker.refresh)
        for uri in list(ls.checked):
            ls.check_soon(uri, 0)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(ls: BreakscanServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.forget(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: BreakscanServer, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        checked = await ls.current(uri)
        for finding in checked.findings if checked else ():
            place = ls.range_of(uri, finding.site)
            if checked and place.start <= params.position <= place.end:
                page = page_of(finding, ls.checker.rule(checked.path, finding))
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page), place)
        return None

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    async def code_action(ls: BreakscanServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        checked = await ls.current(uri)
        if checked is None:
            return []
        asked = [
            finding
            for finding in checked.findings
            if (place := ls.range_of(uri, finding.site)).start <= params.range.end and params.range.start <= place.end
        ]
        return await ls.checking(_actions, ls.checker, uri, checked, asked, params.context)

    @server.feature(types.SHUTDOWN)
    async def shutdown(ls: BreakscanServer, _: None) -> None:
        ls.end()

    return server


def _actions(
    checker: TextChecker,
    uri: str,
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
            preferred = one.differences is None
            found.append(_action(title, uri, checked.text, one.after, mine, preferred))
    for finding in findings:
        mine = [one for one in context.diagnostics if one.source == SOURCE and one.code == finding.rule]
        try:
            after = with_suppressions(checked.text, {finding.site.line: [finding.rule]}, "")
        except (tokenize.TokenError, SyntaxError):
            continue
        found.append(_action(ignore_title(finding.rule), uri, checked.text, after, mine, False))
    return found


def _action(
    title: str, uri: str, before: str, after: str, diagnostics: Sequence[types.Diagnostic], preferred: bool
) -> types.CodeAction:
    edits = [_text_edit(one, before) for one in line_edits(before, after)]
    return types.CodeAction(
        title,
        types.CodeActionKind.QuickFix,
        list(diagnostics),
        is_preferred=preferred or None,
        edit=types.WorkspaceEdit(changes={uri: edits}),
    )


def _text_edit(edit: LineEdit, before: str) -> types.TextEdit:
    """An edit of whole lines; the last one of a text may have no end."""
    lines = before.split("\n")
    start = types.Position(edit.first, 0)
    if edit.last < len(lines):
        end = types.Position(edit.last, 0)
        return types.TextEdit(types.Range(start, end), "".join(f"{line}\n" for line in edit.lines))
    end = types.Position(len(lines) - 1, len(lines[-1].encode("utf-16-le")) // 2)
    if edit.first == len(lines):
        return types.TextEdit(types.Range(end, end), "".join(f"\n{line}" for line in edit.lines))
    return types.TextEdit(types.Range(start, end), "\n".join(edit.lines))
