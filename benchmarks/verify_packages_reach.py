"""Which lines of which files each call of a driver reaches, and in which files the compiler broke.

    python verify_packages_reach.py FILE PACKAGE_FOLDER OUTPUT

One line of JSON a call, in one process, with the backend ``eager``: what ``breakscan verify`` will find when it runs
the call, cheaply.  Calls that OUTPUT holds already are not run again.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from verify_packages_program import calls_of, names_of, run, seed

import breakscan
from breakscan.model.findings import Origin
from breakscan.prove.worker.executed_lines import executed_lines


def reached(file: Path, name: str, package: Path) -> dict[str, Any]:
    """Of a call: an ``error`` in eager mode, or how it can be run and what it reaches."""
    found: dict[str, Any] = {"name": name, "gradients": True}
    try:
        calls = calls_of(file, name)
        calls.require_gradients()
        found["gradients"] = run(calls.function, calls, True) == len(calls.cases)
    except Exception:
        found["gradients"] = False
    try:
        calls = calls_of(file, name)
        run(calls.function, calls, False)
    except Exception as error:
        return {"name": name, "error": f"{type(error).__name__}: {error}"[:200]}

    torch._dynamo.reset()
    calls = calls_of(file, name)
    if found["gradients"]:
        calls.require_gradients()
    with breakscan.record() as recording:
        try:
            run(torch.compile(calls.function, backend="eager"), calls, found["gradients"])
        except Exception as error:
            found["compiled_error"] = f"{type(error).__name__}: {error}"[:200]
    report = recording.explain()
    sites = [one for seen in (report.breaks, report.recompiles, report.frames) for one in seen]
    paths = {Path(one.site.path).absolute() for one in sites if one.origin is not Origin.FRAMEWORK}
    broken = sorted(str(path) for path in paths if path.is_relative_to(package))
    found["breaks"] = sorted({f"{Path(one.site.path).name}:{one.site.line}" for one in report.breaks})

    calls = calls_of(file, name)
    if found["gradients"]:
        calls.require_gradients()
    seed()
    with executed_lines(broken) as lines:
        for args, kwargs in calls.cases:
            calls.function(*args, **kwargs)
    return {**found, "lines": {path: sorted(numbers) for path, numbers in lines.items()}}


def main() -> None:
    file, package, output = map(Path, sys.argv[1:])
    warnings.simplefilter("ignore")
    known = {json.loads(line)["name"] for line in output.read_text().splitlines()} if output.exists() else set()
    for name in names_of(file):
        if name not in known:
            with output.open("a") as stream:
                stream.write(json.dumps(reached(file, name, package.resolve())) + "\n")


if __name__ == "__main__":
    main()
