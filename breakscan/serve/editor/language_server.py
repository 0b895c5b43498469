"""The language server, by pygls: the session with one editor, its open files, their findings, what others compile."""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from breakscan import __version__
from breakscan.rulebook.config import ConfigError
from breakscan.rulebook.document import RuleError
from breakscan.serve.editor.checked import CheckedText, TextChecker
from breakscan.serve.editor.documents import OpenText, actions_at, diagnostics_of, page_of
from breakscan.serve.editor.workspace_scan import Roots, ScanProcess
from breakscan.source.module import with_plain_line_ends

T = TypeVar("T")
_PAUSE = 0.1  # seconds without a keystroke before a text is checked
_GATHER = 0.2  # seconds in which changes of files are gathered: a checkout changes hundreds


class BreakscanServer(LanguageServer):
    """Findings of open files.  ``checked`` has the last result of each, by uri."""

    def __init__(self) -> None:
        super().__init__("breakscan", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
        self.checked: dict[str, tuple[OpenText, CheckedText]] = {}
        self.checker = TextChecker()
        self._roots: Roots = {}
        self._thread = ThreadPoolExecutor(1)  # checks everything: what the checker keeps is not safe for several
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._process = ScanProcess()
        self._is_stale = False  # true if files may have changed since the last scan began
        self._scan: asyncio.Task[None] | None = None
        self._problem = ""

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

    async def files_changed(self, paths: Collection[Path]) -> None:
        """Files on disk may have changed, come or gone."""
        changed = await self.checking(self.checker.refresh, paths)
        for uri, (_, checked) in self.checked.items():
            if changed is None or not changed.isdisjoint(checked.depends):
                self.check_soon(uri, 0)
        self.scan_soon(_GATHER)

    def scan_soon(self, pause: float = 0) -> None:
        """Find the files of the workspace from which compiled code reaches others, and check open files again."""
        self._is_stale = True
        if self._scan is None or self._scan.done():
            self._scan = asyncio.get_running_loop().create_task(self._scan_all(pause))

    async def checking(self, function: Callable[..., T], *arguments: object) -> T:
        """Calls a function in the thread that checks."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def end(self) -> None:
        """End all tasks, since the editor is gone."""
        if self._scan is not None:
            self._scan.cancel()
        self._process.end()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def current(self, uri: str) -> tuple[OpenText, CheckedText] | None:
        """The present text of an open file with its result; None where there is none."""
        if (task := self._waiting.get(uri)) is not None:
            await asyncio.wait([task])
        known = self.checked.get(uri)
        return known if known is not None and known[0] == self._open_text(uri) else None

    def _open_text(self, uri: str) -> OpenText | None:
        """The text of an open document; None where it is in no file."""
        if not (paths := paths_of([uri])):
            return None
        document = self.workspace.get_text_document(uri)
        text = with_plain_line_ends(document.source)
        return OpenText(paths[0], uri, document.version, text, self.workspace.position_codec)

    async def _check(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        opened = self._open_text(uri)
        if opened is None:
            return
        try:
            roots = self._roots.get(opened.path, ())
            found = await self.checking(self.checker.check, opened.path, opened.text, roots)
        except (ConfigError, RuleError) as error:
            self._show_problem(str(error))
            return
        if self._open_text(uri) == opened:
            self.checked[uri] = opened, found
            diagnostics = diagnostics_of(opened, found, self.checker.library(opened.path))
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, opened.version))
            if self._roots.get(opened.path, ()) != roots:  # a scan ended meanwhile
                self.check_soon(uri, 0)

    async def _scan_all(self, pause: float) -> None:
        await asyncio.sleep(pause)
        while self._is_stale:
            self._is_stale = False
            try:
                roots = await self._process.roots(paths_of(self.workspace.folders))
            except (ConfigError, RuleError) as error:
                self._show_problem(str(error))
                return
            except BrokenProcessPool:  # by a signal, or out of memory: what was read is in the cache
                self._show_problem("the process that reads the workspace ended; what other files compile is not known")
                return
            before, self._roots = self._roots, roots
            for uri, (opened, _) in list(self.checked.items()):
                if before.get(opened.path) != roots.get(opened.path):
                    self.check_soon(uri, 0)

    def _show_problem(self, problem: str) -> None:
        """Show a message, once."""
        if problem != self._problem:
            self._problem = problem
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"breakscan: {problem}"))


def paths_of(uris: Iterable[str]) -> list[Path]:
    """The files of documents, without what is in no file, as cells of notebooks."""
    found = (to_fs_path(uri) for uri in uris if urlsplit(uri).scheme == "file")
    return [Path(os.path.abspath(path)) for path in found if path]


WATCHED = ("**/*.py", "**/*.ipynb", "**/*.toml", "**/.gitignore", "**/BRK*.md")
"""The files of which editors report changes, as patterns of the protocol."""


def make_server() -> BreakscanServer:
    server = BreakscanServer()

    @server.feature(types.INITIALIZED)
    async def initialized(ls: BreakscanServer, _: types.InitializedParams) -> None:
        ls.scan_soon()
        workspace = ls.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        if watching is not None and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(pattern) for pattern in WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            registration = types.Registration("watched", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            await ls.client_register_capability_async(types.RegistrationParams([registration]))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(ls: BreakscanServer, params: types.DidOpenTextDocumentParams) -> None:
        ls.check_soon(params.text_document.uri, 0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(ls: BreakscanServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.check_soon(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(ls: BreakscanServer, params: types.DidSaveTextDocumentParams) -> None:
        if paths := paths_of([params.text_document.uri]):
            await ls.files_changed(paths)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_files(ls: BreakscanServer, params: types.DidChangeWatchedFilesParams) -> None:
        await ls.files_changed(paths_of(change.uri for change in params.changes))

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def did_change_folders(ls: BreakscanServer, _: types.DidChangeWorkspaceFoldersParams) -> None:
        ls.scan_soon()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(ls: BreakscanServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.forget(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: BreakscanServer, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        known = await ls.current(uri)
        if known is None:
            return None
        opened, checked = known
        for finding in opened.met(checked.findings, types.Range(params.position, params.position)):
            page = page_of(finding, ls.checker.library(opened.path).get(finding.rule))
            return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page), opened.range_of(finding.site))
        return None

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    async def code_action(ls: BreakscanServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        known = await ls.current(uri)
        if known is None:
            return []
        opened, checked = known
        asked = opened.met(checked.findings, params.range)
        return await ls.checking(actions_at, ls.checker, opened, checked, asked, params.context)

    @server.feature(types.SHUTDOWN)
    async def shutdown(ls: BreakscanServer, _: None) -> None:
        ls.end()

    return server
