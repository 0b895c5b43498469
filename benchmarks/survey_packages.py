"""Counts the public modules of packages that a survey finds calls of, each in a process of its own.

    python benchmarks/survey_packages.py PACKAGE ... [--seconds 60] [--every 1] [--output calls.json]

Prints a row for each package: the modules that were found, those whose example ran, those that ran as guessed, and
those that did not run.  Nothing is compiled.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import select
import signal
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from breakscan.survey.no_downloads import no_downloads
from breakscan.survey.package_modules import found_call, loaded
from breakscan.survey.package_names import names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=int, default=1, help="look at every n-th module alone")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    told: dict[str, dict[str, Any]] = {}
    print("| package | modules | by example | by guess | failed | seconds |\n| --- | --- | --- | --- | --- | --- |")
    for package in options.packages:
        began = time.monotonic()
        importlib.import_module(package)
        of_package = told[package] = {}
        for name in names(package)[:: options.every]:
            of_package[name] = _apart(name, options.seconds)
            if options.output is not None:
                options.output.write_text(json.dumps(told, indent=1), encoding="utf-8")
        ways = Counter(one["way"] for one in told[package].values())
        numbers = (len(told[package]), ways["example"], ways["guess"], ways["failed"])
        print(f"| {package} | {' | '.join(map(str, numbers))} | {time.monotonic() - began:.0f} |", flush=True)


def _apart(name: str, seconds: float) -> dict[str, Any]:
    """How a call of a module was found, in a fork, which has all that was imported."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            answer = _found(name)
        except BaseException as error:
            answer = {"way": "failed", "said": f"{type(error).__name__}: {error}"[:300]}
        with contextlib.suppress(OSError):
            os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    ready = select.select([reading], [], [], seconds)[0]
    if not ready:
        os.kill(child, signal.SIGKILL)
    with open(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return json.loads(data) if data else {"way": "failed", "said": "timeout" if not ready else "crashed"}


def _found(name: str) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    began = time.monotonic()
    with no_downloads():
        call, by_example = found_call(loaded(name))
    shapes = [_told(one) for one in (*call.positional, *call.keywords.values())]
    return {"way": "example" if by_example else "guess", "given": shapes, "seconds": time.monotonic() - began}


def _told(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "shape") else repr(value)[:60]


if __name__ == "__main__":
    main()
