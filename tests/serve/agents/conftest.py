"""A project, and the SDK's client connected to the real server in a process of its own."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

pytest.importorskip("mcp")

import anyio
from mcp import Client, StdioServerParameters, stdio_client

import breakscan

T = TypeVar("T")

MODEL = """import torch


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        if x.abs().max() > 100:
            x = x.clamp(-100, 100)
        print("a block")
        return x.sin()
"""
PROGRAM = """import sys
import torch
from model import Block

block = torch.compile(Block(), backend="eager")
for _ in range(3):
    block(torch.ones(8))
print("arguments", sys.argv[1:])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The root of the server, with a model that breaks and a program that compiles it."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "model.py").write_text(MODEL, encoding="utf-8")
    (root / "program.py").write_text(PROGRAM, encoding="utf-8")
    return root


Connected = Callable[..., Any]


@pytest.fixture
def connected(project: Path) -> Connected:
    """Runs an asynchronous function with a client of a server for the project."""

    def run(
        work: Callable[[Client], Awaitable[T]], *options: str, path: Sequence[Path] = (), seconds: float = 240.0
    ) -> T:
        home = Path(breakscan.__file__).parents[1]
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "breakscan", "mcp", "--root", str(project), *options],
            env={"PYTHONPATH": ":".join(map(str, (*path, home))), "OMP_NUM_THREADS": "1"},
        )

        async def main() -> T:
            with anyio.fail_after(seconds):
                async with Client(stdio_client(server)) as client:
                    return await work(client)

        # The tests of HTML pages leave an event loop running in the main thread.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(anyio.run, main).result()

    return run


@pytest.fixture
def call(connected: Connected) -> Callable[..., Any]:
    """Calls one tool of a new server."""

    def one(tool: str, arguments: dict[str, Any] | None = None, *options: str, **more: Any) -> Any:
        return connected(lambda client: client.call_tool(tool, arguments or {}), *options, **more)

    return one
