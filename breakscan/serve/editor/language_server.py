"""The requests and notifications that the language server handles, by pygls."""

from __future__ import annotations

from lsprotocol import types

from breakscan.serve.editor.documents import actions_at, page_of
from breakscan.serve.editor.session import BreakscanServer, paths_of

WATCHED = ("**/*.py", "**/*.ipynb", "**/*.toml", "**/.gitignore", "**/BRK*.md")
"""The files of which editors report changes, as patterns of the protocol."""


def make_server() -> BreakscanServer:
    """Return a server with all its features."""
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
        for finding in checked.findings:
            place = opened.range_of(finding.site)
            if place.start <= params.position <= place.end:
                page = page_of(finding, ls.checker.library(opened.path).get(finding.rule))
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page), place)
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
        places = ((finding, opened.range_of(finding.site)) for finding in checked.findings)
        asked = [
            finding for finding, place in places if place.start <= params.range.end and params.range.start <= place.end
        ]
        return await ls.checking(actions_at, ls.checker, opened, checked, asked, params.context)

    @server.feature(types.SHUTDOWN)
    async def shutdown(ls: BreakscanServer, _: None) -> None:
        ls.end()

    return server
