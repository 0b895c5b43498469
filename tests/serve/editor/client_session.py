"""A session of the real server with a client of pytest-lsp."""

import asyncio
import functools
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import make_test_lsp_client

HELPER = "import torch\n\n\ndef scaled(x):\n    return x * x.sum().item()\n"
CALLER = "import torch\nfrom helper import scaled\n\n\n@torch.compile\ndef f(x):\n    return scaled(x)\n"

Scenario = Callable[[Any], Coroutine[Any, Any, None]]


def with_client(scenario: Scenario) -> Callable[[Path], None]:
    """A test that runs a scenario with a client of a server of its own.

    It runs in a thread of its own: the tests of HTML pages leave an event loop running in the main one.
    """

    @functools.wraps(scenario)
    def test(tmp_path: Path) -> None:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _session(scenario, tmp_path)).result()

    del test.__wrapped__  # type: ignore[attr-defined]
    return test


async def _session(scenario: Scenario, folder: Path) -> None:
    (folder / "helper.py").write_text(HELPER, encoding="utf-8")
    (folder / "caller.py").write_text(CALLER, encoding="utf-8")
    client: Any = make_test_lsp_client()
    client.registrations = []

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)  # type: ignore[untyped-decorator]
    def registered(params: types.RegistrationParams) -> None:
        client.registrations += params.registrations

    await client.start_io(sys.executable, "-m", "breakscan", "server")
    project = types.WorkspaceFolder(folder.as_uri(), "project")
    capabilities = types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf16]),
        workspace=types.WorkspaceClientCapabilities(
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
        ),
    )
    await client.initialize_session(
        types.InitializeParams(capabilities=capabilities, root_uri=project.uri, workspace_folders=[project])
    )
    client.folder = folder
    await asyncio.wait_for(scenario(client), 120)
    await client.shutdown_session()
    await client.stop()


async def opened(client: Any, text: str, name: str = "net.py") -> str:
    """Opens a document; its uri, once it is checked."""
    uri = (client.folder / name).as_uri()
    item = types.TextDocumentItem(uri, "python", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return uri


async def changed(client: Any, uri: str, text: str, version: int = 2) -> list[types.Diagnostic]:
    """What is said of a new text."""
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(version, uri), [types.TextDocumentContentChangeWholeDocument(text)]
        )
    )
    while True:
        told = await asyncio.wait_for(client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), 60)
        if (told.uri, told.version) == (uri, version):
            return list(told.diagnostics)


async def told(client: Any, uri: str, expected: list[str | None]) -> list[types.Diagnostic]:
    """Waits until the findings of a document are by these rules."""
    while codes(client.diagnostics.get(uri, ())) != expected:
        await asyncio.wait_for(client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), 60)
    return list(client.diagnostics[uri])


def codes(diagnostics: Any) -> list[str | None]:
    return [one.code for one in diagnostics]


async def actions(client: Any, uri: str, diagnostic: types.Diagnostic) -> list[types.CodeAction]:
    found = await client.text_document_code_action_async(
        types.CodeActionParams(
            types.TextDocumentIdentifier(uri), diagnostic.range, types.CodeActionContext([diagnostic])
        )
    )
    return list(found)


def applied(text: str, action: types.CodeAction, uri: str) -> str:
    """The text after an edit of whole lines."""
    lines = text.split("\n")
    assert action.edit is not None
    assert action.edit.changes is not None
    for edit in reversed(list(action.edit.changes[uri])):
        start, end = edit.range.start, edit.range.end
        assert start.character == 0
        last = lines[end.line][end.character :] if end.line < len(lines) else ""
        lines[start.line : end.line + 1] = (edit.new_text + last).split("\n")
    return "\n".join(lines)
