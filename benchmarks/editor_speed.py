"""Measures what the language server takes, for files of a large project, with a real client.

    python benchmarks/editor_speed.py FOLDER FILE [FILE ...] [--repeat N] [--json FILE]

FOLDER is the project, FILEs are relative to it.  For each file, it prints the seconds from a keystroke to its findings,
without the pause that the server waits for the next one, and the CPU seconds of the server; then those from a save to
the end of all that follows, with those of the process that reads the project again.  The first row is the start, which
reads the project with an empty cache.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import make_test_lsp_client

PAUSE = 0.1
"""Seconds that the server waits after a keystroke."""
IDLE = 1.0
"""Without CPU time for so long, all is done."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Row:
    """The duration of an action: seconds until there are findings, and CPU seconds of the server and its process."""

    what: str
    wall: float
    server: float
    process: float


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def scan_cpu(pid: int) -> float:
    """The CPU seconds of the processes below one."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(cpu(int(child)) for child in children)


async def idle(pid: int) -> tuple[float, float]:
    """The CPU seconds once nothing is done any more."""
    last = cpu(pid), scan_cpu(pid)
    since = time.monotonic()
    while time.monotonic() - since < IDLE:
        await asyncio.sleep(0.1)
        now = cpu(pid), scan_cpu(pid)
        if now != last:
            last, since = now, time.monotonic()
    return last


async def measure(folder: Path, files: list[str], repeat: int) -> list[Row]:
    rows = []
    client: Any = make_test_lsp_client()
    started = time.monotonic()
    await client.start_io(sys.executable, "-m", "breakscan", "server", cwd=folder)
    pid = client._server.pid
    project = types.WorkspaceFolder(folder.as_uri(), "project")
    await client.initialize_session(
        types.InitializeParams(types.ClientCapabilities(), root_uri=project.uri, workspace_folders=[project])
    )
    server, process = await idle(pid)
    rows.append(Row("the start", time.monotonic() - started - IDLE, server, process))
    for name in files:
        path = folder / name
        text, uri = path.read_text(encoding="utf-8"), path.as_uri()
        client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 0, text)))
        before = await idle(pid)
        keystrokes, saves = [], []
        for version in range(1, repeat + 1):
            text += "\n"
            started = time.monotonic()
            client.text_document_did_change(
                types.DidChangeTextDocumentParams(
                    types.VersionedTextDocumentIdentifier(version, uri),
                    [types.TextDocumentContentChangeWholeDocument(text)],
                )
            )
            published = await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
            assert (published.uri, published.version) == (uri, version)
            wall = time.monotonic() - started - PAUSE
            after = await idle(pid)
            keystrokes.append((wall, after[0] - before[0], after[1] - before[1]))
            before = after
        for _ in range(repeat):
            text += "\n"
            started = time.monotonic()
            path.write_text(text, encoding="utf-8")
            client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
            after = await idle(pid)
            saves.append((time.monotonic() - started - IDLE, after[0] - before[0], after[1] - before[1]))
            before = after
        rows.append(Row(f"{name}: a keystroke", *(statistics.median(one) for one in zip(*keystrokes, strict=True))))
        rows.append(Row(f"{name}: a save", *(statistics.median(one) for one in zip(*saves, strict=True))))
        client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    await client.shutdown_session()
    await client.stop()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["BREAKSCAN_CACHE_DIR"] = cache
        rows = asyncio.run(measure(options.folder.resolve(), options.files, options.repeat))
    for row in rows:
        print(f"{row.what:60} {row.wall:7.2f} s  server {row.server:6.2f}  process {row.process:6.2f} CPU s")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
