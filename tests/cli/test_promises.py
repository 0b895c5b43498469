"""What SECURITY.md promises of the commands that run no code: no connection, no process of another program, and nothing
written but their caches."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CACHE = ".breakscan_cache"
AUDITED = """import os, sys
allowed = tuple(map(os.path.realpath, sys.argv[1].split(os.pathsep)))
def refuse(event, args):
    written = event == "open" and args[1] is None and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    written = written or (event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"))
    path = args[0] if written and isinstance(args[0], str) else None
    outside = path not in (None, os.devnull) and not os.path.realpath(path).startswith(allowed)
    removed = event in ("os.remove", "os.rename", "shutil.rmtree") and not os.path.realpath(args[0]).startswith(allowed)
    if outside or removed or event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "os.system", "os.exec",
                                       "subprocess.Popen"):
        os.write(2, f"REFUSED {event} {args[:2]}\\n".encode())
        os._exit(99)
sys.addaudithook(refuse)
sys.argv[1:] = sys.argv[2:]
from breakscan.__main__ import main
sys.exit(main())
"""
HOSTILE = """import os, socket, subprocess, torch
open("ran", "w").write("")
socket.create_connection(("127.0.0.1", 9))
subprocess.run(["touch", "ran"])

@torch.compile
def f(x):
    print(x)
    return x.sum().item()
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("status", "command"),
    [
        (1, "check ."), (1, "fix ."), (0, "rule BRK101"), (0, "rules"), (0, "config ."),
        (0, f"report {next((ROOT / 'tests/data/traces').glob('*.log'))}"),
    ],
)  # fmt: skip
def test_commands_that_run_no_code_connect_start_and_write_nothing(tmp_path: Path, status: int, command: str) -> None:
    project, own = tmp_path / "project", tmp_path / "own"
    project.mkdir()
    (project / "model.py").write_text(HOSTILE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-B", "-c", AUDITED, f"{own}{os.pathsep}{project / CACHE}", *command.split()],
        cwd=project,
        env={"PATH": "", "HOME": str(own), "XDG_CACHE_HOME": str(own), "TMPDIR": str(own), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "REFUSED" not in done.stderr, done.stderr
    assert done.returncode == status, done.stderr
    assert {path.name for path in project.iterdir()} - {CACHE} == {"model.py"}
