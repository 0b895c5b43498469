"""Records what Dynamo does with public calls of a package: the lines that it traces and those at which it breaks.

    python benchmarks/first_sight/record.py PROGRAM [--lines] [--limit SECONDS] [--jobs N]

PROGRAM is a file of ``programs/``, which defines

    DISTRIBUTION = "geoopt"       the name that pip knows
    FOLDER = "geoopt"             the folder that pip makes
    CALLS = {NAME: BUILD, ...}    BUILD takes nothing and returns a callable and a tuple of its arguments

Every call runs in processes of its own: eager, then compiled with a backend that runs graphs as they are; modules in
eval and in train mode.  The result is ``recordings/DISTRIBUTION-VERSION.json``, in the format of ``agreement.py``.
Whether the file shows a break (``visible``) is a judgement: a new line is written as "unjudged", and judgements in a
recording that is there already are kept.  ``--lines`` prints the unjudged lines with their code.

``follows`` marks lines that break only because of another break.  Where a frame was given up and runs as plain Python,
Dynamo compiles what it calls one by one, and it can compile generators and constructors of modules only as parts of
their caller.  So after such a break, the same generator or constructor is compiled inside a small caller of its own, in
a copy of the process.  If that does not break at this line, the line follows from the other break.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import linecache
import multiprocessing
import os
import pickle
import signal
import sys
import types
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.convert_frame
import torch._dynamo.symbolic_convert as symbolic_convert
from torch._dynamo.exc import Unsupported, UserError

HERE = Path(__file__).resolve().parent


Stack = list[tuple[str, int, str]]
"""File, line and function of the user's frames, outermost first."""


@dataclass
class Break:
    """One break, as Dynamo reported it."""

    kind: str
    stack: Stack
    inlined: list[Stack] | None = None
    """Where a small caller of the frame's function breaks, if Dynamo compiles the function only inside a caller."""


@dataclass
class Seen:
    """What Dynamo did in one process."""

    traced: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    breaks: list[Break] = field(default_factory=list)
    frames: int = 0
    first_frame_only: bool = False


class FirstFrameOnly(BaseException):
    """Ends a run whose first frame has been compiled."""


def first_cause(error: BaseException) -> BaseException:
    """The break that the others followed from."""
    for inner in (error.__cause__, error.__context__):
        if isinstance(inner, Unsupported | UserError) and "While handling this graph break" in str(error):
            return first_cause(inner)
    return error


def small_caller(frame: Any) -> Callable[[], Any] | None:
    """What calls the generator or the constructor of a module that the frame is of, as the program did."""
    code: types.CodeType = frame.f_code
    values = dict(frame.f_locals)
    count = code.co_argcount + code.co_kwonlyargcount
    extra = code.co_varnames[count:]
    variable = values[extra[0]] if code.co_flags & inspect.CO_VARARGS else ()
    keywords = {name: values[name] for name in code.co_varnames[code.co_argcount : count]}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords |= values[extra[bool(code.co_flags & inspect.CO_VARARGS)]]
    arguments = [*(values[name] for name in code.co_varnames[: code.co_argcount]), *variable]
    if code.co_flags & inspect.CO_GENERATOR:
        function = types.FunctionType(code, frame.f_globals, closure=frame.closure)
        if code.co_name == "<genexpr>":
            items = list(arguments[0])
            return lambda: list(function(iter(items)))
        return lambda: list(function(*arguments, **keywords))
    if code.co_name == "__init__" and isinstance(arguments[0], torch.nn.Module):
        for owner in type(arguments[0]).__mro__:
            if getattr(vars(owner).get("__init__"), "__code__", None) is code:
                return lambda: owner(*arguments[1:], **keywords)
    return None


def breaks_in_caller(frame: Any, seen: Seen) -> list[Stack] | None:
    """Where a small caller of the frame's function breaks, or None if it is not such a function or cannot be tried."""
    if not frame.f_code.co_flags & inspect.CO_GENERATOR and frame.f_code.co_name != "__init__":
        return None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        stacks: list[Stack] | None = None
        with contextlib.suppress(BaseException):
            caller = small_caller(frame)
            if caller is not None:
                torch._dynamo.reset()
                seen.breaks, seen.frames, seen.first_frame_only = [], 0, True
                with contextlib.suppress(FirstFrameOnly):
                    torch.compile(caller, backend=lambda graph, inputs: graph)()
                stacks = [found.stack for found in seen.breaks]
        with os.fdopen(writing, "wb") as answer:
            pickle.dump(stacks, answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        written = answer.read()
    os.waitpid(child, 0)
    return pickle.loads(written) if written else None


def watch(seen: Seen) -> None:
    """Hooks into Dynamo of this process."""
    starts_line = symbolic_convert.InstructionTranslatorBase.starts_line
    log_graph_break = symbolic_convert.InstructionTranslatorBase.log_graph_break
    format_error = torch._dynamo.convert_frame.format_error_msg
    convert_frame = torch._dynamo.convert_frame.ConvertFrame.__call__
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
        places = [(frame.filename, frame.lineno, frame.name) for frame in stack]
        seen.breaks.append(Break(name, places))

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

    def on_frame(convert: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        seen.frames += 1
        number, before = seen.frames, len(seen.breaks)
        try:
            return convert_frame(convert, frame, *args, **kwargs)
        finally:
            if seen.first_frame_only:
                raise FirstFrameOnly
            new = seen.breaks[before:]
            if new and number > 1:
                inlined = breaks_in_caller(frame, seen)
                for found in new:
                    found.inlined = inlined

    for owner, name, hook in (
        (symbolic_convert.InstructionTranslatorBase, "starts_line", on_line),
        (symbolic_convert.InstructionTranslatorBase, "log_graph_break", on_break),
        (torch._dynamo.convert_frame, "format_error_msg", on_error),
        (torch._dynamo.convert_frame.ConvertFrame, "__call__", on_frame),
    ):
        setattr(owner, name, hook)


def run(build: Callable[[], tuple[Any, tuple[Any, ...]]], mode: str, answers: Any) -> None:
    """Runs one call eager, then compiled, and sends what was seen."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        called, arguments = build()
    except Exception as error:
        answers.put((f"build: {type(error).__name__}: {error}"[:200], {}, []))
        return
    if isinstance(called, torch.nn.Module):
        called.train(mode == "train")
    elif mode == "train":
        answers.put(("not a module", Seen().traced, []))
        return
    try:
        # A copy, so that what the call does to its arguments does not meet the compiler.
        called(*copy.deepcopy(arguments))
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


def outcomes(calls: dict[str, Any], limit: float, jobs: int) -> Iterator[tuple[str, str, Any, Any]]:
    """The name, outcome, traced lines and breaks of every call in every mode."""
    fork = multiprocessing.get_context("fork")

    def outcome_of(call: tuple[str, str]) -> tuple[str, str, Any, Any]:
        name, mode = call
        answers = fork.Queue()
        child = fork.Process(target=run, args=(calls[name], mode, answers))
        child.start()
        try:
            outcome, traced, breaks = answers.get(timeout=limit)
        except Exception:
            outcome, traced, breaks = f"no answer within {limit:.0f} s", {}, []
        child.kill()
        child.join()
        if outcome != "not a module":
            print(f"{name} {mode}: {outcome}, {len(breaks)} breaks", flush=True)
        return name, outcome, traced, breaks

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(outcome_of, [(name, mode) for name in calls for mode in ("eval", "train")])


def load(path: Path) -> Any:
    """The module of a program, under a name that no package has and that Dynamo can import."""
    spec = importlib.util.spec_from_file_location(f"first_sight_of_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--lines", action="store_true", help="print the unjudged lines")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="for one call")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="calls at a time")
    options = parser.parse_args()
    program = load(HERE / "programs" / f"{options.program}.py")
    name, folder = program.DISTRIBUTION, program.FOLDER
    version = importlib.metadata.version(name)
    base = Path(str(importlib.metadata.distribution(name).locate_file("")))
    target = HERE / "recordings" / f"{name}-{version}.json"
    judged: dict[tuple[str, int], str] = {}
    if target.exists():
        for path, facts in json.loads(target.read_text(encoding="utf-8"))["files"].items():
            judged |= {(path, entry["line"]): entry["visible"] for entry in facts["breaks"]}
    traced: dict[str, set[int]] = defaultdict(set)
    broken: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    own_cause: set[tuple[str, int]] = set()
    stacks = {}

    def own_line(stack: Stack) -> tuple[str, int] | None:
        """The innermost line of the package."""
        own = [frame for frame in stack if Path(frame[0]).is_relative_to(base / folder)]
        return (Path(own[-1][0]).relative_to(base).as_posix(), own[-1][1]) if own else None

    for call, _, lines, breaks in outcomes(program.CALLS, options.limit, options.jobs):
        for path, numbers in lines.items():
            if Path(path).is_relative_to(base / folder):
                traced[Path(path).relative_to(base).as_posix()] |= numbers
        for found in breaks:
            at = own_line(found.stack)
            if at:
                path, line = at
                traced[path].add(line)
                broken[path][line][found.kind] += 1
                stacks[at] = (call, found.stack[-1])
                if found.inlined is None or at in map(own_line, found.inlined):
                    own_cause.add(at)
    files = {
        path: {
            "traced": spans(traced[path]),
            "breaks": [
                {
                    "line": line,
                    "gb": [kind for kind, _ in kinds.most_common()],
                    "visible": judged.get((path, line), "unjudged"),
                    **({} if (path, line) in own_cause else {"follows": True}),
                }
                for line, kinds in sorted(broken[path].items())
            ],
        }
        for path in sorted(traced)
    }
    recording = {"package": name, "version": version, "torch": torch.__version__, "files": files}
    target.write_text(json.dumps(recording, separators=(",", ":")) + "\n", encoding="utf-8")
    entries = [(path, entry) for path, facts in files.items() for entry in facts["breaks"]]  # type: ignore[attr-defined]
    print(f"{target.name}: {sum(map(len, traced.values()))} lines traced, {len(entries)} break lines")
    for path, entry in entries:
        if options.lines and entry["visible"] == "unjudged":
            call, (file, at, _) = stacks[path, entry["line"]]
            print(f"{path}:{entry['line']} {entry['gb'][0]} ({call}, in {Path(file).name}:{at})")
            print(f"    {linecache.getline(str(base / path), entry['line']).strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
