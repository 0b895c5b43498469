"""Programs under the recorder, each in a fork of one process that has the compiler loaded: its import takes seconds.

What a program does as its process starts and ends, and what its environment changes, needs a process of its own.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from breakscan.recording.launch import ProgramExit


class WarmProcess:
    """The process, which :func:`serve` runs in."""

    def __init__(self, environment: dict[str, str]) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([sys.executable, __file__], env=environment, text=True, **pipes)

    def run(self, script: Path, recording: Path) -> ProgramExit:
        """Runs a script in its folder, recorded; its output is in ``script.out`` and ``script.err``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        began = time.monotonic()
        self._process.stdin.write(json.dumps([str(script), str(recording)]) + "\n")
        self._process.stdin.flush()
        return ProgramExit(int(self._process.stdout.readline()), time.monotonic() - began)

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def serve() -> None:
    import torch._dynamo  # noqa: F401 - loaded for all forks

    for name in _loaded_by_compiling():
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(*map(Path, json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _loaded_by_compiling() -> list[str]:
    """The modules that a first compilation imports.  This process compiles nothing: compilations are counted."""
    reading, writing = os.pipe()
    if not os.fork():
        import torch

        before = set(sys.modules)
        torch.compile(lambda x: x.sin(), backend="aot_eager")(torch.ones(2, requires_grad=True)).sum().backward()
        with open(writing, "w", encoding="utf-8") as stream:
            stream.write("\n".join(sorted(sys.modules.keys() - before)))
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as stream:
        names = stream.read().split("\n")
    os.wait()
    return names


def _run(script: Path, recording: Path) -> NoReturn:
    from breakscan.recording.bootstrap.import_watch import ImportWatch
    from breakscan.recording.hooks.targets import MODULES
    from breakscan.recording.recorder import Recorder

    os.chdir(script.parent)
    for stream, ending in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(script.with_suffix(ending), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv, sys.path[0] = [str(script)], str(script.parent)
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = str(script)
    status: object = 0
    try:
        with Recorder(recording) as recorder:
            imports = ImportWatch()
            for name in MODULES:
                imports.after(name, lambda module: recorder.loaded(module.__name__))
            exec(compile(script.read_bytes(), str(script), "exec", dont_inherit=True), main.__dict__)
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    serve()
