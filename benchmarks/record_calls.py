"""Runs the calls of drivers compiled, for a recording of what their values are.

    breakscan explain --save FOLDER -o report.txt -m benchmarks.record_calls DRIVER ... [--seconds N]

A driver is a script that imports J and K from a module ``common``: see ``driven_edits``.  Each call is compiled with
the backend ``eager``, with Dynamo reset before it.  The order is mixed, so that what there is no time for after N
seconds of CPU time is a sample.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import time
import warnings
from pathlib import Path

import torch

from benchmarks.driven_edits.run_calls import K, jobs_of
from benchmarks.rewrite_fuzzer.comparing import time_limit

SECONDS_OF_A_CALL = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drivers", nargs="+", type=Path, metavar="DRIVER")
    parser.add_argument("--seconds", type=float, default=400)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    returned = raised = left = 0
    start = time.process_time()
    calls = [call for driver in options.drivers for call in jobs_of(str(driver))]
    random.Random(0).shuffle(calls)
    for _, build, gradients in calls:
        if time.process_time() - start > options.seconds:
            left += 1
            continue
        torch._dynamo.reset()
        torch.manual_seed(0)
        raised += 1
        with contextlib.suppress(Exception, KeyboardInterrupt), time_limit(SECONDS_OF_A_CALL):
            function, *given = build()
            named = given.pop() if given and isinstance(given[-1], K) else {}
            with torch.set_grad_enabled(gradients):
                torch.compile(function, backend="eager")(*given, **named)
            returned += 1
    print(f"{returned} calls returned, {raised - returned} raised, {left} left out for lack of time")


if __name__ == "__main__":
    main()
