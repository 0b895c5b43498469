"""Runs ``breakscan check`` over files and judges how it went: a crash, a hang, a lost file, a slow file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-c", "import sys; del sys.path[0]; from breakscan.__main__ import main; sys.exit(main())")
"""As the installed command: without the working directory among the places from which modules come."""
TIMER = Path(__file__).with_name("robustness_times.py")
BYTES_OF_A_LINE = 80
"""A longer line counts as several, so that one line of 10 MB is not called slow."""
SLOW_LINES_PER_SECOND = 200
SLOW_SECONDS = 0.5
"""Below this a file is never called slow: a clock says little of a short time."""
SHOWN_CALLS = 8
FATAL = re.compile(
    r"^(?:Traceback \(most recent call last\)|Fatal Python error|Segmentation fault|Exception in thread)", re.M
)


@dataclass
class Outcome:
    """The result of one run, or several.  ``rss`` is the largest resident set of any process, in bytes."""

    files: int = 0
    lines: int = 0
    findings: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    rss: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, part: Outcome) -> None:
        """Takes in what another run gave."""
        self.files += part.files
        self.lines += part.lines
        self.findings += part.findings
        self.cpu += part.cpu
        self.wall += part.wall
        self.rss = max(self.rss, part.rss)
        self.errors += part.errors
        self.faults += part.faults


@dataclass(frozen=True)
class FileTime:
    """CPU seconds that the check of a single file took in a warm process."""

    path: str
    lines: int
    seconds: float

    @property
    def rate(self) -> float:
        """Lines a CPU second."""
        return self.lines / max(self.seconds, 1e-9)

    @property
    def slow(self) -> bool:
        """True if this is a defect."""
        return self.seconds > SLOW_SECONDS and self.rate < SLOW_LINES_PER_SECOND


@dataclass(frozen=True)
class Runner:
    """The command of ``breakscan check``."""

    arguments: Sequence[str]
    timeout: float
    file_timeout: float

    def check(
        self,
        paths: Iterable[Path | str],
        folder: Path,
        *,
        expected: int | None = None,
    ) -> Outcome:
        """One run of the command, with ``folder`` as its working directory.  ``expected`` is how many files it must
        have looked at."""
        command = [*COMMAND, "check", "--format", "json", *self.arguments, *map(str, paths)]
        started = time.perf_counter()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, start_new_session=True)
            try:
                status, usage = _wait(process.pid, started + self.timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            process.returncode = status or 0  # it has been waited for here, for its own resource usage
            out.seek(0)
            err.seek(0)
            stdout, stderr = out.read(), err.read().decode("utf-8", "replace")
        outcome = Outcome(wall=time.perf_counter() - started)
        if usage is not None:
            outcome.cpu = usage.ru_utime + usage.ru_stime
            outcome.rss = usage.ru_maxrss * 1024
        if status is None:
            outcome.faults.append(f"hangs: no end after {self.timeout:.0f} s, {outcome.cpu:.0f} s of CPU")
            return outcome
        if status not in (0, 1, 2):
            outcome.faults.append(f"exit status {status}: {stderr[-500:]}")
        elif FATAL.search(stderr):
            outcome.faults.append(f"a traceback on stderr: {stderr[-700:]}")
        _read_report(stdout, status, folder, expected, outcome)
        return outcome

    def times(self, files: Sequence[Path], jobs: int) -> tuple[list[FileTime], list[str]]:
        """The time of every file by itself, and what went wrong."""
        shares = [files[i::jobs] for i in range(jobs)]
        with ThreadPoolExecutor(jobs) as pool:
            parts = list(pool.map(self._times, shares))
        return [time_ for part, _ in parts for time_ in part], [fault for _, part in parts for fault in part]

    def _times(self, files: Sequence[Path]) -> tuple[list[FileTime], list[str]]:
        times: list[FileTime] = []
        faults = []
        at = 0
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder, "files.txt")
            while at < len(files):
                listed.write_bytes(b"\0".join(os.fsencode(path) for path in files[at:]))
                command = [sys.executable, str(TIMER), str(listed), str(self.file_timeout)]
                command += self.arguments
                done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
                rows = [json.loads(line) for line in done.stdout.splitlines()]
                for path, row in zip(files[at:], rows, strict=False):
                    times.append(FileTime(str(path), count_lines(path), row["seconds"]))
                    if row["status"] not in (0, 1, 2):
                        faults.append(f"{path}, alone: exit status {row['status']}")
                    elif not row["report"]:
                        faults.append(f"{path}, alone: no report")
                at += len(rows)
                if at < len(files):
                    faults.append(f"{files[at]}, alone: {self._end(done.returncode)}: {_last_calls(done.stderr)}")
                    at += 1
        return times, faults

    def _end(self, status: int) -> str:
        if status == -signal.SIGPROF:
            return f"hangs: no end after {self.file_timeout:.0f} CPU seconds"
        return f"the process ended with {status}"


def _last_calls(stderr: bytes) -> str:
    """The innermost calls of a traceback that faulthandler wrote, else the end of what was said."""
    said = stderr.decode("utf-8", "replace")
    _, found, calls = said.partition("(most recent call first):\n")
    return "; ".join(line.strip() for line in calls.split("\n")[:SHOWN_CALLS]) if found else said[-1500:]


def count_lines(path: Path) -> int:
    """The lines of a file, overlong ones counted as several."""
    try:
        data = path.read_bytes()
    except OSError:
        return 0
    return max(data.count(b"\n") + 1, len(data) // BYTES_OF_A_LINE)


def _wait(pid: int, deadline: float) -> tuple[int | None, Any]:
    """The exit status of a process and what it and its children used; no status where it had to be killed."""
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), usage
        if time.perf_counter() > deadline:
            os.killpg(pid, signal.SIGKILL)
            _, _, usage = os.wait4(pid, 0)
            return None, usage
        time.sleep(0.02)


def _read_report(stdout: bytes, status: int, folder: Path, expected: int | None, outcome: Outcome) -> None:
    try:
        report = json.loads(stdout)
    except ValueError:
        outcome.faults.append(f"exit status {status} and no JSON: {stdout[:200]!r}")
        return
    outcome.files = report["summary"]["files"]
    outcome.findings = report["summary"]["findings"]
    for error in report["errors"]:
        outcome.errors[kind_of_error(error["message"])] += 1
        if "a bug in breakscan" in error["message"]:
            outcome.faults.append(f"{error['path']}: {error['message']}")
    # A file that is no code of this Python gives 1, one that cannot be read 2.
    if status not in ((1, 2) if report["errors"] else (bool(report["findings"]),)):
        outcome.faults.append(f"exit status {status} does not fit the report")
    if expected is not None and outcome.files != expected:
        outcome.faults.append(f"{expected} files were given, {outcome.files} checked")
    outcome.faults += _impossible_sites(report["findings"], folder)


def _impossible_sites(findings: Iterable[dict[str, Any]], folder: Path) -> list[str]:
    """Findings whose span does not lie in their file."""
    faults = []
    widths: dict[str, list[int]] = {}
    for finding in findings:
        site = finding["site"]
        path = site["path"]
        if path not in widths:
            text = Path(folder, path).read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            widths[path] = [len(line) for line in text.split(b"\n")]
        first, last = site["line"], site["end_line"]
        ordered = (first, site["column"]) < (last, site["end_column"])
        # A character is a byte or more: a line of n bytes has at most n characters.
        if (
            not ordered
            or not 1 <= first <= last <= len(widths[path])
            or site["end_column"] > widths[path][last - 1] + 1
        ):
            faults.append(
                f"{path}: {finding['rule']} at {first}:{site['column']}-{last}:{site['end_column']}, not in it"
            )
    return faults


def kind_of_error(message: str) -> str:
    """An error's message without what differs from file to file."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|\b\d+\b|U\+[0-9A-Fa-f]+|\([^)]*\)", "…", message)
    return re.sub(r"(\S*…\S*\s*)+", "… ", plain).strip()[:100]
