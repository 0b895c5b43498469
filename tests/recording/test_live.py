"""What is told of a run while its program uses the same terminal."""

from __future__ import annotations

import os
import re
import sys
import time

import pytest
from programs import Folder, environment

from breakscan.recording.recording import RecordingWriter, Tally
from breakscan.recording.records import Code, CompileStarted

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform != "linux", reason="Linux waits with a time limit")]

PRINTING = """import sys, time, torch

@torch.compile(backend="eager")
def step(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y.sin()

for number in range(40):
    print("line", number, sys.stdout.isatty(), flush=True)
    if number in (5, 20):
        step(torch.ones(3 + number))
    print("no end", end="\\r", file=sys.stderr, flush=True)
    time.sleep(0.1)
print("the end")
sys.exit(3)
"""
OURS = re.compile(rb"\x1b7.*?\x1b8", re.DOTALL)
"""Each of our writes saves the cursor first, and restores it."""
ROOM = b"\r\n" * 4 + b"\x1b[4A"


def on_terminal(folder: Folder, *arguments: str) -> tuple[bytes, int]:
    """What a terminal of 30 lines gets of ``python ARGUMENTS``, and the exit status."""
    fcntl, pty = pytest.importorskip("fcntl"), pytest.importorskip("pty")
    import struct
    import termios

    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        os.chdir(folder.path)
        os.execve(sys.executable, [sys.executable, *arguments], environment() | {"TERM": "xterm"})
    read = b""
    try:
        while part := os.read(master, 65536):
            read += part
    except OSError:
        # The end, on Linux.
        pass
    finally:
        os.close(master)
    return read, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_program_and_we_share_a_terminal(folder: Folder) -> None:
    pytest.importorskip("torch")
    folder.write("script.py", PRINTING)
    plain, status = on_terminal(folder, "script.py")
    assert b"line 39 True" in plain
    shown, with_live = on_terminal(folder, "-m", "breakscan", "explain", "--live", "script.py")
    assert (status, with_live) == (3, 3)
    ours = OURS.findall(shown)
    rest = OURS.sub(b"", shown)
    # All that the program wrote, in order, then the report.
    assert rest.startswith(ROOM + plain)
    assert rest.removeprefix(ROOM + plain).startswith(b"\x1b[2m" + "───".encode())
    # The lines above ours scroll; in the end, all do.
    assert all(b"\x1b[1;26r\x1b[27;1H" in one for one in ours[:-1])
    assert b"\x1b[r" in ours[-1]
    drawn = [re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", one.decode()) for one in ours]
    assert any("1 break" in one and "2 graphs" in one for one in drawn)
    assert any("compiled step at script.py:3" in one for one in drawn)
    assert any("again: x.shape[0] was 8, then 23" in one for one in drawn)


def test_without_a_terminal_the_news_are_lines(folder: Folder) -> None:
    pytest.importorskip("torch")
    folder.write("script.py", PRINTING)
    plain = folder.python("script.py")
    done = folder.explain("--live", "script.py")
    assert (done.status, done.out) == (plain.status, plain.out)
    before, _, report = done.err.decode().partition("───")
    assert "compiled step at script.py:3" in before
    assert "splits the graph at script.py:6 in step" in before
    assert "again: x.shape[0] was 8, then 23" in before
    assert "\x1b" not in before
    assert "1 site breaks the graph" in report


def test_a_failure_of_ours_leaves_the_program_alone(folder: Folder) -> None:
    pytest.importorskip("torch")
    folder.write("script.py", PRINTING)
    folder.write("sitecustomize.py", "import breakscan.report.explain.news as news\ndel news.News.lines\n")
    done = folder.explain("--live", "script.py", env={"PYTHONPATH": str(folder.path)})
    assert done.status == 3
    assert b"the end" in done.out
    assert b"1 site breaks the graph" in done.err
    assert b"'News' object has no attribute 'lines'" in done.err


def test_what_is_being_compiled_is_known(folder: Folder) -> None:
    tally = Tally(folder.path)
    RecordingWriter(folder.path).write(CompileStarted("0/0", Code("model.py", 3, "step"), (), 0.0))
    tally.read()
    assert tally.compiling is not None
    code, seconds = tally.compiling
    time.sleep(0.01)
    assert (code.name, tally.compiling[1] > seconds) == ("step", True)
