"""What the server says above functions."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from lsprotocol import types

from tests.serve.editor.client_session import CALLER, HELPER, changed, opened, with_client

pytestmark = pytest.mark.process

PROGRAM = """import torch


@torch.compile
def f(x):
    y = x.sum().item()
    return x * y


def g(x):
    return x.sin()


compiled = torch.compile(g, backend="eager")
for size in (4, 4, 4, 4, 6):
    f(torch.ones(size))
    compiled(torch.ones(size))
"""


async def lenses(client: Any, uri: str) -> list[tuple[int, str]]:
    """The line and the text of each."""
    params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
    found = await client.text_document_code_lens_async(params)
    return [(one.range.start.line, one.command.title) for one in found]


@with_client
async def test_where_functions_are_compiled_from(client: Any) -> None:
    uri = await opened(client, CALLER, "caller.py")
    assert await lenses(client, uri) == [(5, "compiled from caller.py:5")]
    (client.folder / "train.py").write_text("import torch\nimport helper\n\ntorch.compile(helper.scaled)\n")
    client.workspace_did_change_watched_files(
        types.DidChangeWatchedFilesParams(
            [types.FileEvent((client.folder / "train.py").as_uri(), types.FileChangeType.Created)]
        )
    )
    helper = await opened(client, HELPER, "helper.py")
    for _ in range(100):
        if said := await lenses(client, helper):
            break
        await asyncio.sleep(0.1)
    assert said == [(3, "compiled from train.py:4")]


@functools.partial(with_client, options={"codeLens": False})
async def test_without_code_lens(client: Any) -> None:
    uri = await opened(client, CALLER, "caller.py")
    assert await lenses(client, uri) == []


@pytest.mark.torch
@with_client
async def test_what_functions_cost_in_the_last_recording(client: Any) -> None:
    pytest.importorskip("torch")
    program = client.folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    uri = await opened(client, PROGRAM, "program.py")
    before = await lenses(client, uri)
    assert [line for line, _ in before] == [4, 9]
    refreshes = client.lens_refreshes
    command = [sys.executable, "-m", "breakscan", "explain", "program.py"]
    environment = {**os.environ, "BREAKSCAN_RUNS": str(client.folder / ".runs")}
    subprocess.run(command, cwd=client.folder, env=environment, check=True, capture_output=True, timeout=100)
    while client.lens_refreshes == refreshes:
        await asyncio.sleep(0.1)
    (_, f), (_, g) = await lenses(client, uri)
    assert re.search(
        r"^compiled from program.py:4 · in the last recording: [\d.]+ [mµ]s a call, 1 graph break, \d recompiles?$", f
    ), f
    assert re.search(r"^compiled from program.py:14 · in the last recording: [\d.]+ [mµ]s a call, 1 recompile$", g), g
    # It has moved; the other one is another function now.
    text = PROGRAM.replace("def g", "# above\n\n\ndef g").replace("x * y", "x + y")
    await changed(client, uri, text)
    (_, f), (line, moved) = await lenses(client, uri)
    assert "recording" not in f
    assert line == 12
    assert moved.partition(" · ")[2] == g.partition(" · ")[2]
