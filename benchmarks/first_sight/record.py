"""Records what Dynamo does with public calls of a package: the lines that it traces and those at which it breaks.

    python benchmarks/first_sight/record.py PROGRAM [--lines] [--limit SECONDS]

PROGRAM is a file of ``programs/``, which defines

    DISTRIBUTION = "geoopt"       the name that pip knows
    FOLDER = "geoopt"             the folder that pip makes
    CALLS = {NAME: BUILD, ...}    BUILD takes nothing and returns a callable and a tuple of its arguments

Every call runs in processes of its own: eager, then compiled with a backend that runs graphs as they are; modules in
eval and in train mode.  The result is ``recordings/DISTRIBUTION-VERSION.json``, in the format of ``agreement.py``.
Whether the file shows a break (``visible``) is a judgement: a new line is written as "unjudged", and judgements in a
recording that is there already are kept.  ``--lines`` prints the unjudged lines with their code.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import json
import linecache
import multiprocessing
import os
import runpy
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.convert_frame
import torch._dynamo.symbolic_convert as symbolic_convert
from torch._dynamo.exc import Unsupported, UserError

HERE = Path(__file__).resolve().parent


@dataclass
class Seen:
    """What Dynamo did in one process."""

    traced: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    breaks: list[tuple[str, list[tuple[str, int, str]]]] = field(default_factory=list)
    """The type of each break, with the stack of the user's code, outermost first."""


def first_cause(error: BaseException) -> BaseException:
    """The break that the others followed from."""
    for inner in (error.__cause__, error.__context__):
        if isinstance(inner, Unsupported | UserError) and "While handling this graph break" in str(error):
            return first_cause(inner)
    return error


def watch(seen: Seen) -> None:
    """Hooks into Dynamo of this process."""
    starts_line = symbolic_convert.InstructionTranslatorBase.starts_line
    log_graph_break = symbolic_convert.InstructionTranslatorBase.log_graph_break
    format_error = torch._dynamo.convert_frame.format_error_msg
    known: set[int] = set()

    def add(error: BaseException) -> None:
        if id(error) in known:
            return
        known.add(id(error))
        cause = first_cause(error)
        stack: list[Any] = getattr(cause, "real_stack", None) or list(torch._guards.TracingContext.extract_stack())
        name = getattr(cause, "gb_type", None) or type(cause).__name__
        with contextlib.suppress(Exception):
            above = symbolic_convert.collapse_resume_frames(symbolic_convert.get_stack_above_dynamo())
            stack = [*above, *stack]
        seen.breaks.append((name, [(frame.filename, frame.lineno, frame.name) for frame in stack]))

    def on_line(tracer: Any, line: int) -> Any:
        seen.traced[tracer.f_code.co_filename].add(line)
        return starts_line(tracer, line)

    def on_break(tracer: Any, *args: Any, **kwargs: Any) -> Any:
        add(next(arg for arg in (*args, *kwargs.values()) if isinstance(arg, BaseException)))
        return log_graph_break(tracer, *args, **kwargs)

    def on_error(error: Exception, *args: Any, **kwargs: Any) -> Any:
        if isinstance(error, Unsupported | UserError):
            add(error)
        return format_error(error, *args, **kwargs)

    for owner, name, hook in (
        (symbolic_convert.InstructionTranslatorBase, "starts_line", on_line),
        (symbolic_convert.InstructionTranslatorBase, "log_graph_break", on_break),
        (torch._dynamo.convert_frame, "format_error_msg", on_error),
    ):
        setattr(owner, name, hook)


def run(build: Callable[[], tuple[Any, tuple[Any, ...]]], mode: str, answers: Any) -> None:
    """Runs one call eager, then compiled, and sends what was seen."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    called, arguments = build()
    if isinstance(called, torch.nn.Module):
        called.train(mode == "train")
    elif mode == "train":
        answers.put(("not a module", Seen().traced, []))
        return
    try:
        called(*arguments)
    except Exception as error:
        answers.put((f"eager: {type(error).__name__}: {error}"[:200], {}, []))
        return
    seen = Seen()
    watch(seen)
    torch.manual_seed(0)
    outcome = "ok"
    try:
        torch.compile(called, backend=lambda graph, inputs: graph)(*arguments)
    except Exception as error:
        outcome = f"compiled: {type(error).__name__}: {error}"[:200]
    answers.put((outcome, dict(seen.traced), seen.breaks))


def spans(lines: set[int]) -> list[list[int]]:
    """Lines as first and last of each run of consecutive ones."""
    found: list[list[int]] = []
    for line in sorted(lines):
        if found and found[-1][1] == line - 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return found


def outcomes(calls: dict[str, Any], limit: float) -> Iterator[tuple[str, str, Any, Any]]:
    """The name, outcome, traced lines and breaks of every call in every mode."""
    fork = multiprocessing.get_context("fork")
    for name, build in calls.items():
        for mode in ("eval", "train"):
            answers = fork.Queue()
            child = fork.Process(target=run, args=(build, mode, answers))
            child.start()
            try:
                outcome, traced, breaks = answers.get(timeout=limit)
            except Exception:
                outcome, traced, breaks = f"no answer within {limit:.0f} s", {}, []
            child.kill()
            child.join()
            if outcome != "not a module":
                print(f"{name} {mode}: {outcome}, {len(breaks)} breaks", flush=True)
            yield name, outcome, traced, breaks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--lines", action="store_true", help="print the unjudged lines")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="for one call")
    options = parser.parse_args()
    program = runpy.run_path(str(HERE / "programs" / f"{options.program}.py"))
    name, folder = program["DISTRIBUTION"], program["FOLDER"]
    version = importlib.metadata.version(name)
    base = Path(str(importlib.metadata.distribution(name).locate_file("")))
    target = HERE / "recordings" / f"{name}-{version}.json"
    judged: dict[tuple[str, int], str] = {}
    if target.exists():
        for path, facts in json.loads(target.read_text(encoding="utf-8"))["files"].items():
            judged |= {(path, entry["line"]): entry["visible"] for entry in facts["breaks"]}
    traced: dict[str, set[int]] = defaultdict(set)
    broken: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    stacks = {}
    for call, _, lines, breaks in outcomes(program["CALLS"], options.limit):
        for path, numbers in lines.items():
            if Path(path).is_relative_to(base / folder):
                traced[Path(path).relative_to(base).as_posix()] |= numbers
        for kind, stack in breaks:
            own = [frame for frame in stack if Path(frame[0]).is_relative_to(base / folder)]
            if own:
                path, line = Path(own[-1][0]).relative_to(base).as_posix(), own[-1][1]
                traced[path].add(line)
                broken[path][line][kind] += 1
                stacks[path, line] = (call, stack[-1])
    files = {
        path: {
            "traced": spans(traced[path]),
            "breaks": [
                {
                    "line": line,
                    "gb": [kind for kind, _ in kinds.most_common()],
                    "visible": judged.get((path, line), "unjudged"),
                }
                for line, kinds in sorted(broken[path].items())
            ],
        }
        for path in sorted(traced)
    }
    recording = {"package": name, "version": version, "torch": torch.__version__, "files": files}
    target.write_text(json.dumps(recording, separators=(",", ":")) + "\n", encoding="utf-8")
    found = [(path, entry) for path, facts in files.items() for entry in facts["breaks"]]  # type: ignore[attr-defined]
    print(f"{target.name}: {sum(map(len, traced.values()))} lines traced, {len(found)} break lines")
    for path, entry in found:
        if options.lines and entry["visible"] == "unjudged":
            call, (file, at, _) = stacks[path, entry["line"]]
            print(f"{path}:{entry['line']} {entry['gb'][0]} ({call}, in {Path(file).name}:{at})")
            print(f"    {linecache.getline(str(base / path), entry['line']).strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
