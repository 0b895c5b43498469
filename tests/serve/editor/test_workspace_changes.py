"""What the server makes of changes on disk, without a restart."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from breakscan.serve.editor.workspace_scan import compiled_from
from tests.serve.editor.client_session import CALLER, HELPER, opened, told, with_client

pytestmark = pytest.mark.process

EAGER_CALLER = CALLER.replace("@torch.compile\n", "")


def watched(client: Any, path: Path, kind: types.FileChangeType) -> None:
    """The editor tells of a file."""
    client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([types.FileEvent(path.as_uri(), kind)]))


def saved(client: Any, path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(path.as_uri())))


@with_client
async def test_what_other_files_compile_changes(client: Any) -> None:
    caller, other = client.folder / "caller.py", client.folder / "other.py"
    uri = await opened(client, HELPER, "helper.py")
    await told(client, uri, ["BRK201"])
    saved(client, caller, EAGER_CALLER)
    await told(client, uri, [])
    other.write_text(CALLER, encoding="utf-8")
    watched(client, other, types.FileChangeType.Created)
    (found,) = await told(client, uri, ["BRK201"])
    assert found.related_information[0].location.uri == other.as_uri()
    other.unlink()
    watched(client, other, types.FileChangeType.Deleted)
    await told(client, uri, [])
    saved(client, caller, CALLER)
    await told(client, uri, ["BRK201"])


@with_client
async def test_a_caller_that_looked_for_a_file_in_vain(client: Any) -> None:
    """What it imports comes into being."""
    saved(client, client.folder / "caller.py", CALLER.replace("helper", "late"))
    late = client.folder / "late.py"
    uri = await opened(client, HELPER, "late.py")
    assert not client.diagnostics[uri]
    late.write_text(HELPER, encoding="utf-8")
    watched(client, late, types.FileChangeType.Created)
    await told(client, uri, ["BRK201"])


@with_client
async def test_a_configuration_changes(client: Any) -> None:
    uri = await opened(client, HELPER, "helper.py")
    await told(client, uri, ["BRK201"])
    configuration = client.folder / "breakscan.toml"
    configuration.write_text('ignore = ["BRK201"]\n', encoding="utf-8")
    watched(client, configuration, types.FileChangeType.Created)
    await told(client, uri, [])
    configuration.unlink()
    watched(client, configuration, types.FileChangeType.Deleted)
    await told(client, uri, ["BRK201"])


@with_client
async def test_the_editor_is_asked_to_tell(client: Any) -> None:
    await opened(client, HELPER, "helper.py")
    (registration,) = client.registrations
    assert registration.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES


@with_client
async def test_a_killed_server_leaves_no_process(client: Any) -> None:
    uri = await opened(client, HELPER, "helper.py")
    await told(client, uri, ["BRK201"])  # the scan is done, in its process
    server = client._server.pid
    left = children(server)
    assert left
    os.kill(server, signal.SIGKILL)
    for _ in range(100):
        if not any(Path(f"/proc/{pid}/cmdline").exists() for pid in left):
            break
        await asyncio.sleep(0.1)
    else:
        pytest.fail(f"still there: {left}")
    client.capabilities = None  # there is nobody to shut down


def children(pid: int) -> list[str]:
    """The processes below one."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    if not found.exists():
        pytest.skip("the system does not list the children of a process")
    return found.read_text().split()


def test_all_findings_of_a_file_are_reported_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper.py").write_text(HELPER + HELPER.replace("scaled", "other"), encoding="utf-8")
    for name, function in {"a": "scaled", "b": "other", "c": "other"}.items():
        text = f"import torch\nfrom helper import *\n\n@torch.compile\ndef f(x):\n    return {function}(x)\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    assert compiled_from([tmp_path]) == {tmp_path / "helper.py": (tmp_path / "a.py", tmp_path / "b.py")}
