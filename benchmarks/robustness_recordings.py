"""Looks for recordings and TORCH_TRACE logs that crash, hang or mislead ``breakscan report``.

    python benchmarks/robustness_recordings.py [--mutants N] [--seed N] [--kind KIND ...] [--keep FOLDER]

Each mutant is made of a log of ``tests/data/traces``, or of a recording with the same records: lines and values are
dropped, repeated, swapped, cut off, replaced by values of other types, by huge numbers, by control characters, by paths
outside, or nested deeply, and bytes are changed.  It is reported in one format, in this process, and each in turn.

A fault is: a traceback; an exit status other than 0, 1 and 2; more than --seconds of CPU time; a control character of
the mutant in the report; the content of a file outside in it, or such a file opened.  The exit status is 1 if one was
found.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import breakscan
from breakscan.__main__ import main as run_breakscan
from breakscan.recording.recording import RecordingWriter
from breakscan.recording.session import FORMAT, MANIFEST, Manifest
from breakscan.recording.tracelog import read_trace
from breakscan.report.formats import EXPLAIN

TRACES = Path(__file__).parent.parent / "tests" / "data" / "traces"
PROGRAM = "/tmp/project/program.py"
CANARY = "the_secret_of_line"
CONTROL = "\x1b]0;owned\x07\x9b31m\u202e"
FORBIDDEN = ("\x1b]0;", "\x07", "\x9b", "\u202e")
LONG = 50_000
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 10**30, -(10**400), 1e308, float("inf"), float("nan"), "", "x" * LONG, CONTROL,
    "\ud800", "\0", [], {}, [[]], {"": {}}, [None] * 1000, "2.13", "/dev/zero", "/etc/passwd", "../outside/secret.py",
    "\n" * 100, {"path": "/etc/passwd", "line": 10**9}, -0.0, "<script>alert(1)</script>", "%s{0}{x}",
)  # fmt: skip


class Hang(BaseException):
    """A report took too long."""


def recording_of(log: Path, folder: Path) -> None:
    """A recording with the records of a log."""
    folder.mkdir()
    manifest = Manifest(FORMAT, "0.1.0", ("program.py",), "/tmp/project", "python", "host", 1, None, 0.0, 9.0, 9.0, 0)
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest)), encoding="utf-8")
    writer = RecordingWriter(folder)
    for record in next(iter(read_trace([log]).processes)).recording():
        writer.write(record)
    writer.close()


class Mutator:
    """Changes texts at random places, which a seed decides."""

    def __init__(self, seed: int, secret: Path) -> None:
        self.random = random.Random(seed)
        self.secret = str(secret)

    def mutant(self, data: bytes) -> tuple[bytes, list[str]]:
        """A changed file, and what was done to it."""
        done = []
        for _ in range(self.random.choice([1, 1, 1, 2, 4, 12])):
            change = self.random.choice(
                [
                    self.value,
                    self.value,
                    self.value,
                    self.value,
                    self.line,
                    self.flip,
                    self.cut,
                    self.nest,
                    self.secrets,
                ]
            )
            done.append(change.__name__)
            data = change(data)
        return data, done

    def value(self, data: bytes) -> bytes:
        """Replaces a value somewhere in the JSON of a line."""
        lines = data.split(b"\n")
        for _ in range(20):
            at = self.random.randrange(len(lines))
            start = lines[at].find(b"{")
            try:
                thing = json.loads(lines[at][start:]) if start >= 0 else None
            except (ValueError, RecursionError):
                continue
            if isinstance(thing, dict) and thing:
                self._replace(thing)
                made = json.dumps(thing, ensure_ascii=self.random.random() < 0.8)
                lines[at] = lines[at][:start] + made.encode("utf-8", "surrogatepass")
                break
        return b"\n".join(lines)

    def _replace(self, thing: Any) -> None:
        while True:
            keys = list(thing) if isinstance(thing, dict) else list(range(len(thing)))
            key = self.random.choice(keys)
            inner = thing[key]
            if isinstance(inner, dict | list) and inner and self.random.random() < 0.75:
                thing = inner
                continue
            what = self.random.random()
            if what < 0.1 and isinstance(thing, dict):
                del thing[key]
            elif what < 0.2 and isinstance(inner, str):
                at = self.random.randrange(len(inner) + 1)
                thing[key] = (
                    inner[:at] + self.random.choice([CONTROL, "\n", "\0", "…", '"', "\\", ":", "x" * LONG]) + inner[at:]
                )
            elif what < 0.3 and isinstance(inner, int | float) and not isinstance(inner, bool):
                thing[key] = self.random.choice([-inner, inner * 10**18, inner + 1, 0.5, 2**63])
            else:
                thing[key] = self.random.choice(ODD)
            return

    def line(self, data: bytes) -> bytes:
        """Drops, repeats or swaps lines."""
        lines = data.split(b"\n")
        one, other = (self.random.randrange(len(lines)) for _ in range(2))
        what = self.random.randrange(4)
        if what == 0:
            del lines[one]
        elif what == 1:
            lines[one:one] = [lines[other]] * self.random.choice([1, 2, 200])
        elif what == 2:
            lines[one], lines[other] = lines[other], lines[one]
        else:
            self.random.shuffle(lines)
        return b"\n".join(lines)

    def flip(self, data: bytes) -> bytes:
        """Changes bytes."""
        changed = bytearray(data)
        for _ in range(self.random.choice([1, 3, 30])):
            if changed:
                changed[self.random.randrange(len(changed))] = self.random.randrange(256)
        return bytes(changed)

    def cut(self, data: bytes) -> bytes:
        """Cuts the file off, at the end or at the start."""
        at = self.random.randrange(len(data) + 1)
        return data[:at] if self.random.random() < 0.8 else data[at:]

    def nest(self, data: bytes) -> bytes:
        """Puts something that is nested deeply into a line."""
        depth = self.random.choice([100, 2_000, 100_000])
        lines = data.split(b"\n")
        at = self.random.randrange(len(lines))
        start = lines[at].find(b":")
        lines[at] = lines[at][: start + 1] + b"[" * depth + b"]" * depth + lines[at][start + 1 :]
        return b"\n".join(lines)

    def secrets(self, data: bytes) -> bytes:
        """Names a file outside in place of the program."""
        return data.replace(json.dumps(PROGRAM).encode(), json.dumps(self.secret).encode())


class Watch:
    """Notes the files that are opened outside some folders."""

    def __init__(self, secret: Path) -> None:
        self._secret = os.path.realpath(secret.parent)
        self.opened: list[str] = []
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str):
            path = os.path.realpath(arguments[0]) if "\0" not in arguments[0] else ""
            if path.startswith((self._secret, "/etc/passwd", "/dev/zero")):
                self.opened.append(path)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def report(path: Path, format_: str, seconds: float) -> tuple[int | str, str, float]:
    """The exit status, or what went wrong, what was printed, and the CPU seconds that it took."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)
    started = time.process_time()
    try:
        with limited(seconds), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status: int | str = run_breakscan(("report", "--format", format_, str(path)))
    except Hang:
        status = f"hang: more than {seconds:.0f} s"
    except BaseException as error:
        status = f"{type(error).__name__}: {error}"
    text = out.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    return status, text, time.process_time() - started


def fault_of(status: int | str, text: str, opened: list[str]) -> str | None:
    """The problem with a report; None if there is none."""
    if isinstance(status, str):
        return status
    if "Traceback (most recent call last)" in text and "this is a fault in breakscan" in text:
        lines = [line for line in text.splitlines() if line.strip()]
        where = [line.strip() for line in lines if line.startswith("  File")]
        what = next((line for line in reversed(lines) if not line.startswith(("Error:", " "))), "")
        return f"traceback: {what[:120]} {where[-1][-90:] if where else ''}"
    if status not in (0, 1, 2):
        return f"exit status {status}"
    if opened or CANARY in text:
        return f"a file outside was read: {opened[:1]}"
    found = [repr(one) for one in FORBIDDEN if one in text]
    return f"control characters: {', '.join(found)}" if found else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", nargs="*", default=["log", "recording", "folder"])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--keep", type=Path, help="copies of the mutants with faults")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp())
    (work / "outside").mkdir()
    (work / "project").mkdir()
    secret = work / "outside" / "secret.py"
    secret.write_text("".join(f"{CANARY}_{line} = {line}\n" for line in range(1, 90)), encoding="utf-8")
    os.chdir(work / "project")
    logs = sorted(TRACES.glob("*.log"))
    for number, log in enumerate(logs):
        recording_of(log, work / f"recording{number}")
    watch = Watch(secret)
    faults: Counter[str] = Counter()
    slowest = 0.0
    statuses: Counter[object] = Counter()
    make: dict[str, Callable[[Mutator, Path], list[str]]] = {}

    def mutated_log(mutator: Mutator, path: Path) -> list[str]:
        data, done = mutator.mutant(mutator.random.choice(logs).read_bytes())
        path.with_suffix(".log").write_bytes(data)
        return done

    def mutated_recording(mutator: Mutator, path: Path) -> list[str]:
        shutil.copytree(work / f"recording{mutator.random.randrange(len(logs))}", path)
        one = mutator.random.choice(sorted(one for one in path.rglob("*") if one.is_file()))
        data, done = mutator.mutant(one.read_bytes())
        one.write_bytes(data)
        return [one.name, *done]

    def folder_of_logs(mutator: Mutator, path: Path) -> list[str]:
        path.mkdir()
        done = []
        for rank in range(2):
            data, changes = mutator.mutant(mutator.random.choice(logs).read_bytes())
            (path / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_bytes(data)
            done += changes
        return done

    make = {"log": mutated_log, "recording": mutated_recording, "folder": folder_of_logs}
    started = time.perf_counter()
    for number in range(options.mutants):
        mutator = Mutator(options.seed + number, secret)
        kind = options.kind[number % len(options.kind)]
        format_ = EXPLAIN.names[number // len(options.kind) % len(EXPLAIN.names)]
        path = work / f"mutant{number}"
        done = make[kind](mutator, path)
        path = path if path.exists() else path.with_suffix(".log")
        watch.opened.clear()
        status, text, seconds = report(path, format_, options.seconds)
        slowest = max(slowest, seconds)
        statuses[status if isinstance(status, int) else "fault"] += 1
        if fault := fault_of(status, text, watch.opened):
            faults[fault] += 1
            if faults[fault] == 1:
                print(f"FAULT seed {options.seed + number} {kind} {format_} {done}: {fault}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    target = options.keep / f"{options.seed + number}-{path.name}"
                    if path.is_dir():
                        shutil.copytree(path, target, dirs_exist_ok=True)
                    else:
                        shutil.copyfile(path, target)
        (shutil.rmtree if path.is_dir() else os.unlink)(path)
    took = time.perf_counter() - started
    print(f"breakscan {breakscan.__version__}: {options.mutants} mutants in {took:.0f} s, slowest {slowest:.1f} s CPU")
    print(f"exit statuses {dict(statuses)}; {sum(faults.values())} faults of {len(faults)} kinds")
    for fault, count in faults.most_common():
        print(f"{count:6} × {fault}")
    os.chdir(TRACES)
    shutil.rmtree(work)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
