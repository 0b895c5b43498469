"""``check --watch``, the real command in a real terminal."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from breakscan.cli.watch import one_check
from tests.cli.conftest import BREAKS, CLEAN

pytest.importorskip("watchfiles")
pty = pytest.importorskip("pty")
pytestmark = pytest.mark.process

CLEAR = "\x1b[2J"
WAITS = "Ctrl-C ends"


class Watch:
    """The command, and what its terminal shows."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.terminal = terminal

    def screen(self) -> str:
        """What is shown when it waits the next time, without colours."""
        shown = b""
        until = time.monotonic() + 30
        while WAITS.encode() not in shown:
            ready, _, _ = select.select([self.terminal], [], [], max(until - time.monotonic(), 0))
            assert ready, shown
            shown += os.read(self.terminal, 1 << 16)
        return re.sub(r"\x1b\[[\d;]*m", "", shown.decode())

    def end(self) -> int:
        os.write(self.terminal, b"\x03")
        return self.process.wait(30)


def put(path: Path, text: str) -> None:
    """Writes a file at once, as editors do."""
    made = path.with_suffix(".tmp")
    made.write_text(text, encoding="utf-8")
    made.replace(path)


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[Watch]:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "breakscan", "check", "--watch", "--format", "concise", *options]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_own_terminal,
    )
    os.close(slave)
    try:
        yield Watch(process, master)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(master)


def _own_terminal() -> None:
    """Ctrl-C reaches the processes of the terminal that controls them."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_findings_are_shown_again(tmp_path: Path) -> None:
    net = tmp_path / "net.py"
    put(net, CLEAN)
    with watching(tmp_path) as watch:
        first = watch.screen()
        assert first.startswith("\x1b")
        assert CLEAR in first
        assert "BRK101" not in first
        put(net, BREAKS)
        shown = watch.screen()
        assert CLEAR in shown
        assert "net.py:6:12: warning BRK101" in shown
        assert watch.end() == 1


def test_ctrl_c_ends_with_the_status_of_the_last_check(tmp_path: Path) -> None:
    net = tmp_path / "net.py"
    put(net, BREAKS)
    with watching(tmp_path) as watch:
        assert "BRK101" in watch.screen()
        put(net, CLEAN)
        assert "BRK101" not in watch.screen()
        assert watch.end() == 0


def test_configurations_count(tmp_path: Path) -> None:
    """The one of a folder above what is named, too; its mistakes are shown, and do not end the watch."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "net.py").write_text(BREAKS, encoding="utf-8")
    configuration = tmp_path / "breakscan.toml"
    put(configuration, "")
    with watching(tmp_path, "src") as watch:
        assert "BRK101" in watch.screen()
        put(configuration, 'ignore = ["BRK9999"]\n')
        assert "breakscan.toml:1: ignore" in watch.screen()
        put(configuration, 'ignore = ["BRK101"]\n')
        assert "BRK101" not in watch.screen()
        assert watch.end() == 0


def test_other_files_are_none_of_its_business(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(BREAKS, encoding="utf-8")
    (tmp_path / ".venv").mkdir()
    with watching(tmp_path) as watch:
        watch.screen()
        (tmp_path / "notes.txt").write_text("", encoding="utf-8")
        (tmp_path / ".venv" / "installed.py").write_text(BREAKS, encoding="utf-8")
        time.sleep(1.5)
        put(tmp_path / "other.py", CLEAN)
        shown = watch.screen()
        assert shown.count(CLEAR) == 1
        assert "in 2 files" in shown


def test_a_baseline_is_only_read(tmp_path: Path) -> None:
    net, baseline = tmp_path / "net.py", tmp_path / "known.json"
    put(net, BREAKS)
    made = [sys.executable, "-m", "breakscan", "check", "--baseline", "known.json", "--baseline-add"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    before = baseline.read_text(encoding="utf-8")
    with watching(tmp_path, "--baseline", "known.json") as watch:
        assert "BRK101" not in watch.screen()
        put(net, "import torch\n")
        watch.screen()
        put(net, BREAKS)
        assert "BRK101" not in watch.screen()
        assert watch.end() == 0
    assert baseline.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-"], "--watch is about files, and cannot be combined with standard input"),
        (["--format", "json"], "use --format full or concise"),
        (["--output", "found.txt"], "--watch cannot be combined with --output"),
        (["--add-ignore", "known"], "--watch cannot be combined with --add-ignore"),
        (["--baseline", "known.json", "--baseline-add"], "--watch cannot be combined with --baseline-add"),
    ],
)
def test_what_cannot_be_watched(options: list[str], reason: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "breakscan", "check", "--watch", *options]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert reason in done.stderr


def test_without_the_library(tmp_path: Path) -> None:
    code = "import sys; sys.modules['watchfiles'] = None; from breakscan.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "check", "--watch"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "install breakscan with its extra 'watch'" in done.stderr


def test_the_arguments_of_one_check() -> None:
    given = ["check", "src", "--watch", "--", "--watch"]
    assert one_check(given, only_read=False) == ["check", "src", "--", "--watch"]
    assert one_check(given, only_read=True) == ["check", "src", "--locked", "--", "--watch"]
    assert one_check(["check", "--watch", "--locked"], only_read=True) == ["check", "--locked"]
