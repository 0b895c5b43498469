"""explain and verify run a real program under the real Dynamo: in time, cancelled, failing, and with what it prints."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import anyio
from mcp import Client

pytestmark = [pytest.mark.process, pytest.mark.torch]

ENDLESS = """import os, sys, time
import torch
from model import Block

block = torch.compile(Block(), backend="eager")
block(torch.ones(8))
open("pid", "w").write(str(os.getpid()))
print("on and on", flush=True)
while True:
    time.sleep(0.1)
"""


def ends_soon(folder: Path) -> bool:
    """Whether the program that wrote its number ends within some seconds; one that nobody has waited for has ended."""
    status = Path("/proc", (folder / "pid").read_text(), "status")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not status.exists() or "State:\tZ" in status.read_text(encoding="utf-8"):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_explain_then_verify_a_rewrite_and_write_it(project: Path, connected: Callable[..., Any]) -> None:
    heard: list[str] = []

    async def work(client: Client) -> list[Any]:
        async def progress(_: float, __: float | None, said: str | None) -> None:
            heard.append(said or "")

        calls = [
            ("explain", {"program": "program.py", "arguments": ["--fast"], "limit": 1}),
            ("explain", {"last": True, "offset": 1}),
            ("verify", {"program": "program.py", "rewrites": ["where"]}),
            ("verify", {"last": True}),
        ]
        return [await client.call_tool(name, arguments, progress_callback=progress) for name, arguments in calls]

    results = connected(work)
    assert not [result.content[0].text for result in results if result.is_error]
    first, rest, proved, again = [result.structured_content for result in results]
    assert first["summary"]["break_sites"] == 2
    assert first["ended"].startswith("exit status 0")
    assert len(first["problems"]) == 1
    assert first["more"] == len(rest["problems"]) > 0
    branch = next(one for one in (*first["problems"], *rest["problems"]) if one["rule"] == "BRK101")
    assert branch["site"].startswith("model.py:11:")
    assert branch["kind"] == "break"
    assert proved["proofs"][0]["breaks"] == {"before": 2, "after": 1}, proved
    assert again == proved
    assert any(said.endswith("running the program") for said in heard)


@pytest.mark.slow
def test_a_patch_is_verified(call: Callable[..., Any]) -> None:
    patch = "--- a/model.py\n+++ b/model.py\n@@ -13,3 +13,2 @@\n             x = x.clamp(-100, 100)\n"
    patch += '-        print("a block")\n         return x.sin()\n'
    answer = call("verify", {"program": "program.py", "patch": patch}).structured_content
    assert answer["proofs"][0]["breaks"] == {"before": 2, "after": 1}, answer
    assert answer["proofs"][0]["verdict"] in ("accepted", "no-faster", "too-noisy"), answer


def test_a_patch_that_does_not_apply_is_an_error(call: Callable[..., Any]) -> None:
    result = call("verify", {"program": "program.py", "patch": "--- a/model.py\n+++ b/model.py\n@@ -1 +1 @@\n-x\n+y\n"})
    assert result.is_error
    assert "Traceback" not in result.content[0].text


def test_a_program_that_fails_is_reported_with_its_last_lines(project: Path, call: Callable[..., Any]) -> None:
    (project / "program.py").write_text("print('here')\nraise SystemExit('no data')\n", encoding="utf-8")
    answer = call("explain", {"program": "program.py"}).structured_content
    assert answer["ended"].startswith("exit status 1")
    assert answer["output"] == "here\nno data"


@pytest.mark.slow
def test_a_program_that_does_not_end_is_ended_and_reported(project: Path, call: Callable[..., Any]) -> None:
    (project / "program.py").write_text(ENDLESS, encoding="utf-8")
    answer = call("explain", {"program": "program.py", "seconds": 25}).structured_content
    assert "time limit of 25 s" in answer["ended"]
    assert answer["summary"]["break_sites"] == 2, answer
    assert ends_soon(project)


def test_a_time_limit_that_is_too_short_says_so(project: Path, call: Callable[..., Any]) -> None:
    (project / "program.py").write_text(ENDLESS, encoding="utf-8")
    result = call("verify", {"program": "program.py", "seconds": 3})
    assert result.is_error
    assert "the time limit of 3 s came before there was anything to report" in result.content[0].text
    assert "Ask with more seconds" in result.content[0].text


def test_cancelling_ends_the_program_and_the_server_answers_on(project: Path, connected: Callable[..., Any]) -> None:
    (project / "program.py").write_text(ENDLESS, encoding="utf-8")

    async def work(client: Client) -> Any:
        with anyio.move_on_after(100) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "explain", {"program": "program.py"})
                while not (project / "pid").exists():
                    await anyio.sleep(0.1)
                tasks.cancel_scope.cancel()
        assert not scope.cancelled_caught
        answer = await client.call_tool("rule", {"rule": "BRK101"})
        assert ends_soon(project)
        return answer

    assert not connected(work).is_error


def test_the_program_ends_with_the_server(project: Path, connected: Callable[..., Any]) -> None:
    (project / "program.py").write_text(ENDLESS, encoding="utf-8")

    async def work(client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "explain", {"program": "program.py"})
            while not (project / "pid").exists():
                await anyio.sleep(0.1)
            parent = int((project / "pid").read_text())
            os.kill(server_of(parent), signal.SIGKILL)
            await anyio.sleep(3)
            tasks.cancel_scope.cancel()

    with pytest.raises(BaseException):  # noqa: B017, PT011 - the connection is lost
        connected(work)
    assert ends_soon(project)


def server_of(program: int) -> int:
    """The process of the server: the parent of breakscan's, which is that of the program."""
    for _ in range(2):
        status = Path(f"/proc/{program}/status").read_text(encoding="utf-8")
        program = int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:")))
    return program
