"""Checks files one by one in one process and prints, a JSON line each, the CPU seconds that every file took.

    python benchmarks/robustness_times.py LIST SECONDS [ARGUMENT ...]

LIST holds the paths, with NUL bytes between them.  A file that takes more CPU time than SECONDS ends the process, with
a traceback of where it was.  The arguments are handed to ``breakscan check``.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path

from breakscan.__main__ import main as breakscan


def main() -> None:
    listed, limit, *arguments = sys.argv[1:]
    report = Path(listed).with_name("report.json")
    faulthandler.register(signal.SIGPROF, chain=True)  # the traceback, then the end that the signal means
    # The first call loads the rules and the ledger, which a user pays once a run and not once a file.
    for path in (__file__, *map(os.fsdecode, Path(listed).read_bytes().split(b"\0"))):
        report.unlink(missing_ok=True)
        signal.setitimer(signal.ITIMER_PROF, float(limit))
        started = time.process_time()
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
            status = breakscan(["check", "--format", "json", "-j", "1", "-o", str(report), *arguments, "--", path])
        seconds = time.process_time() - started
        signal.setitimer(signal.ITIMER_PROF, 0)
        if path != __file__:
            row = {"seconds": round(seconds, 4), "status": status, "report": report.exists()}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
