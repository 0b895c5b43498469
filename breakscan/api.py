"""Breakscan in Python: ``record`` what the compiler does in this process, ``explain`` one function.

::

    with breakscan.record() as recording:
        train(model)
    print(recording.explain())

    report = breakscan.explain(model, batch)
    assert not report.breaks
"""

import atexit
import contextlib
import functools
import html
import io
import linecache
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import UncompiledFrame
from breakscan.explanation.from_processes import explain_processes
from breakscan.explanation.graphs import Graph
from breakscan.explanation.recompiles import Recompile
from breakscan.model.problem import ProblemKind
from breakscan.model.torch_versions import SUPPORTED, is_too_old
from breakscan.recording.bootstrap.import_watch import ImportWatch
from breakscan.recording.hooks.targets import MODULES, is_compiled
from breakscan.recording.launch import number_in
from breakscan.recording.recorder import Recorder
from breakscan.recording.recording import read_recording
from breakscan.recording.records import BreakSeen, CompileTimed, FrameEnded, Record
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.assertion_message import block_of
from breakscan.report.explain.summary import headline
from breakscan.report.formats import EXPLAIN
from breakscan.rulebook.config import load_settings
from breakscan.rulebook.library import Library
from breakscan.source.module import remember_source
from breakscan.source.paths import display_path
from breakscan.source.source_files import SourceFiles

_STYLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")  # colours, and links
_lock = threading.Lock()
_active: "list[Recording]" = []  # from the outermost to the innermost; all of one thread
_watches: "list[_Watch]" = []  # that of this process, if it is watched
_WATCH_PAUSE = 0.3  # seconds
_WATCH_SHARE = 0.1  # the most of the time that reporting takes while the program runs


class Report:
    """The report of a recording.  ``explanation`` has all of it; ``print`` shows the same as ``breakscan explain``, and
    a notebook shows an HTML page."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    @property
    def breaks(self) -> Sequence[BreakSite]:
        """The sites that broke a graph, each once."""
        return self.explanation.breaks

    @property
    def recompiles(self) -> Sequence[Recompile]:
        """The recompiles."""
        return self.explanation.recompiles

    @property
    def frames(self) -> Sequence[UncompiledFrame]:
        """The functions that should be compiled and are not."""
        return self.explanation.frames

    @property
    def graphs(self) -> Sequence[Graph]:
        """The graphs that were compiled."""
        return self.explanation.graphs

    def to_json(self) -> str:
        """The report as ``breakscan explain --format json`` writes it."""
        return self._written("json")

    def to_html(self) -> str:
        """The report as one self-contained HTML page."""
        return self._written("html")

    def _written(self, format_: str) -> str:
        stream = io.StringIO()
        EXPLAIN.write(format_, ExplainReport(self.explanation, files=SourceFiles.trusted()), stream)
        return stream.getvalue()

    def _repr_html_(self) -> str:
        """For notebooks.  The scripts of the page are isolated from the notebook's."""
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width: 100%; height: 36em; border: 0"></iframe>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython in a terminal."""
        printer.text(str(self))

    def __str__(self) -> str:
        # FORCE_COLOR, which Jupyter's kernels set, applies to streams.
        return _STYLE.sub("", self._written("terminal")).rstrip("\n")

    def __repr__(self) -> str:
        return f"<breakscan report: {headline(self.explanation)}>"


class Recording:
    """A recording of the compiler in this process while the ``with`` block runs, in all of its threads.

    Blocks can be nested within a thread; what happens in the inner one is in both."""

    def __init__(self, *, keep_going: bool = False) -> None:
        self._keep_going = keep_going
        self._show = functools.partial(_shown, folder=os.getcwd())
        self._thread = 0
        self._recorder: Recorder | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._records: list[list[Record]] = []
        self._began = self._ended = 0.0
        self._imports = ImportWatch()

    def __enter__(self) -> "Recording":
        _import_compiler()
        self._thread = threading.get_ident()
        with _lock:
            if self in _active or self._began:
                raise RuntimeError("a recording is made once: call breakscan.record() again")
            if _active and _active[-1]._thread != self._thread:
                raise RuntimeError("another thread is recording, and its recording has what this thread does in it too")
            self._folder = tempfile.TemporaryDirectory(prefix="breakscan-")
            _active.append(self)
        recorder = self._recorder = Recorder(Path(self._folder.name), keep_going=self._keep_going)
        self._began = time.perf_counter()
        recorder.__enter__()
        for name in MODULES:
            self._imports.after(name, lambda module: recorder.loaded(module.__name__))
        return self

    def __exit__(self, *error: object) -> None:
        with _lock:
            if _active[-1] is not self:
                raise RuntimeError("recordings end in the reverse of the order in which they began")
            _active.pop()
        assert self._recorder is not None
        assert self._folder is not None
        self._ended = time.perf_counter()
        self._imports.stop()
        self._recorder.__exit__(*error)
        self._records = read_recording(Path(self._folder.name))
        self._folder.cleanup()

    def explain(self) -> Report:
        """The report of what has been recorded so far.  Raises RuntimeError if recording has not begun."""
        if not self._began:
            raise RuntimeError("nothing is recorded yet: with breakscan.record() as recording: …")
        records = self._records
        if self._folder is not None and not self._ended:
            records = read_recording(Path(self._folder.name))
        library, files = _library(os.getcwd()), SourceFiles.trusted()
        explanation = explain_processes(records, rules=library, show=self._show, files=files)
        return Report(replace(explanation, seconds=(self._ended or time.perf_counter()) - self._began))


def record(*, keep_going: bool = False) -> Recording:
    """Records what ``torch.compile`` does while a ``with`` block runs.

    What was compiled before the block is not compiled again in it, so record the first call, or call
    ``torch._dynamo.reset()`` first.  ``keep_going`` ignores ``fullgraph=True`` for what is passed to
    ``torch.compile`` within the block.

    Raises RuntimeError if torch is too old, or if another thread is recording."""
    return Recording(keep_going=keep_going)


def watch() -> None:
    """Prints each break and recompile of this process on standard error, soon after it happens, with what to do about
    it; nothing where there is none.  Of the ranks of a job, the first one prints.  Calls after the first do nothing.

    Raises RuntimeError if torch is too old."""
    if not _watches and not number_in(os.environ, "RANK"):
        _watches.append(_Watch())


class _Watch:
    """A recording in memory, of which a thread reports what is new."""

    def __init__(self) -> None:
        _import_compiler()
        self._records: list[Record] = []
        self._process = os.getpid()
        self._counts: dict[Hashable, int] = {}
        """The number of times that each problem had come when it was printed."""
        self._news = threading.Event()
        self._show = functools.partial(_shown, folder=os.getcwd())
        self._reporting = threading.Lock()
        # Counting calls would cost each of them some microseconds.
        recorder = Recorder(self.write, runs=False)
        recorder.__enter__()
        imports = ImportWatch()
        for name in MODULES:
            imports.after(name, lambda module: recorder.loaded(module.__name__))
        if (shell := _shell()) is not None:
            # What a thread prints is shown at the cell that has started it.
            shell.events.register("post_run_cell", lambda _: self._report())
        else:
            threading.Thread(target=self._follow, name="breakscan.watch", daemon=True).start()
            atexit.register(self._report)

    def write(self, record: Record) -> None:
        """Takes a record; a process that was forked from this one is not watched."""
        if os.getpid() == self._process:
            self._records.append(record)
            if isinstance(record, CompileTimed | FrameEnded | BreakSeen):
                self._news.set()

    def _follow(self) -> None:
        while self._news.wait():
            # What belongs together comes within moments.
            time.sleep(_WATCH_PAUSE)
            self._news.clear()
            began = time.perf_counter()
            self._report()
            time.sleep((time.perf_counter() - began) / _WATCH_SHARE)

    def _report(self) -> None:
        """Prints the new problems, and changes that have caused twice as many recompiles as when they were printed."""
        if os.getpid() != self._process:
            return
        # What goes wrong in here does not reach the program.
        with self._reporting, contextlib.suppress(Exception):
            library, files = _library(os.getcwd()), SourceFiles.trusted()
            records = [list(self._records)]
            for problem in explain_processes(records, rules=library, show=self._show, files=files).problems:
                recompiles = problem.kind is ProblemKind.RECOMPILES
                if problem.verdict is None or not (recompiles or problem.counts_as_break):
                    continue
                key = problem.kind, problem.site, problem.id
                before = self._counts.get(key, 0)
                if not before or (recompiles and problem.count >= 2 * before):
                    self._counts[key] = problem.count
                    print(f"breakscan: {block_of(problem, advises=not before)}", file=sys.stderr, flush=True)


def explain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """Compiles a function or module as if for the first time, calls it once with the arguments, and reports.

    A compiled callable is called as it is; anything else is passed to ``torch.compile``, before and after which Dynamo
    forgets what it compiled.  Random numbers, and the buffers and modes of a module, are restored.  Other changes by
    the function, such as to its arguments, stay.  An exception of the function is raised; one of the compiler is in
    the report."""
    return explain_calls(function, [(args, kwargs)])[0]


def explain_calls(
    function: Callable[..., Any],
    calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
    *,
    backend: str = "inductor",
    fullgraph: bool = False,
) -> tuple[Report, Any]:
    """As ``explain``, for several calls, with these options of ``torch.compile``.  Also returns the result of the
    last call; None if the compiler raised."""
    _import_compiler()
    import torch
    from torch._dynamo.exc import TorchDynamoException

    result, compiled = None, function
    given_compiled = is_compiled(function)
    fresh = contextlib.nullcontext() if given_compiled else _compiled_for_the_first_time()
    with _program_as_it_was(function), fresh, record() as recording:
        if not given_compiled:
            compiled = torch.compile(function, backend=backend, fullgraph=fullgraph)
        try:
            for args, kwargs in calls:
                result = compiled(*args, **kwargs)
        except TorchDynamoException:
            result = None
    return recording.explain(), result


@contextlib.contextmanager
def _compiled_for_the_first_time() -> Iterator[None]:
    """Dynamo forgets what it compiled and which sizes it met, before the block and after it, as for
    ``torch._dynamo.explain``."""
    import torch._dynamo

    torch._dynamo.reset()
    try:
        yield
    finally:
        torch._dynamo.reset()


@contextlib.contextmanager
def _program_as_it_was(function: Callable[..., Any]) -> Iterator[None]:
    """After the block, random numbers continue as if it had not run, and of a module its buffers and its modes are what
    they were.  Other things that running it changes stay changed."""
    import torch

    from breakscan.prove.torch_state import rng_state, set_rng_state

    numbers, grad = rng_state(), torch.is_grad_enabled()
    modules = list(function.modules()) if isinstance(function, torch.nn.Module) else []
    modes = [(module, module.training) for module in modules]
    buffers = [
        (module, name, buffer, buffer.detach().clone())
        for module in modules
        for name, buffer in module.named_buffers(recurse=False)
    ]
    try:
        yield
    finally:
        torch.set_grad_enabled(grad)
        set_rng_state(numbers)
        for module, mode in modes:
            module.training = mode
        with torch.no_grad():
            for module, name, buffer, value in buffers:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)
                if getattr(module, name, None) is not buffer:
                    setattr(module, name, buffer)


def _shown(path: str, folder: str) -> str:
    """The name of a file in reports: ``In[3]`` of a cell of this notebook, else its path from a folder."""
    number = cell_numbers().get(path)
    if number is None:
        return display_path(path, folder)
    name = f"In[{number}]"
    remember_source(name, "".join(linecache.getlines(path)))
    return name


def cell_numbers() -> dict[str, int]:
    """The files of cells, each with the cell's number; empty where no IPython runs."""
    numbers: dict[str, int] = getattr(getattr(_shell(), "compile", None), "_filename_map", {})
    return numbers


def _shell() -> Any:
    """The IPython that runs in this process, or None."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if hasattr(ipython, "get_ipython") else None


def _import_compiler() -> None:
    import torch
    import torch._dynamo

    if is_too_old(str(torch.__version__)):
        raise RuntimeError(f"torch {torch.__version__} is too old: breakscan records torch {SUPPORTED[0]} on")


@functools.cache
def _library(folder: str) -> Library:
    return load_settings(Path(folder)).library
