"""The values that functions start with."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any

from breakscan.model.observations import joined_names
from breakscan.recording.hooks.around import PlainCallHook
from breakscan.recording.hooks.described_values import described, described_trackers
from breakscan.recording.hooks.hook import Hook, Hooks
from breakscan.recording.hooks.object_facts import OURS, code_of, current_compile_id
from breakscan.recording.parsers.frames import is_resumed
from breakscan.recording.records import (
    Code,
    FileSeen,
    LibrarySeen,
    Record,
    ValuesMet,
    ValuesSeen,
)
from breakscan.source.regular_files import content_digest, read_regular_file

_PACKAGE = re.compile(r"(?:site|dist)-packages[/\\](\w+?)(?:\.py$|[/\\])")


class ValueHook(Hook):
    """Records the values that functions start with when Dynamo traces them, as frames of their own or inlined."""

    name = "values"
    without = "the values of functions are missing, which check and fix --recording ask for"
    wraps = (
        "torch._dynamo.symbolic_convert:InstructionTranslator.__init__",
        "torch._dynamo.symbolic_convert:InliningInstructionTranslator.__init__",
    )
    needs = (
        "torch._C:DisableTorchFunction", "torch._dynamo.variables:TensorVariable",
        "torch._dynamo.variables:ListVariable", "torch._dynamo.variables:TupleVariable",
        "torch._dynamo.variables:ConstDictVariable", "torch._dynamo.variables:UserFunctionVariable",
        "torch._dynamo.variables.tensor:SymNodeVariable", "torch._dynamo.variables.lazy:LazyVariableTracker",
    )  # fmt: skip
    during_exports = True

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self.tallies = ValueTallies()

    def after(self, _: None, tracer: Any, *__: Any, **___: Any) -> None:
        self.hooks.of(PlainCallHook).traced(tracer)
        self.tallies.add(tracer)


class ValueTallies:
    """The values of all functions until now, and what of that is not written yet."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._left_out: tuple[str, ...] | None = None
        self._wanted: dict[str, bool] = {}
        self._known: dict[Code, ValuesSeen] = {}
        self._changed: dict[Code, None] = {}
        self._files: set[str] = set()
        self._libraries: set[str] = set()
        self._met: dict[str, set[int]] = {}

    def add(self, tracer: Any) -> None:
        """Adds the values that a function starts with, unless it is one of torch or Python."""
        code: CodeType = tracer.f_code
        if not self._wants(code.co_filename) or is_resumed(code.co_name):
            return
        inlined = tracer.inline_depth > 0
        if inlined:
            names = described_trackers(tracer.symbolic_locals, code.co_names)
        else:
            names = described(tracer.f_locals, code.co_names)
        # To hold the code itself would keep alive what the program releases.
        at = code_of(code)
        known = self._known.get(at)
        if known is None:
            new = ValuesSeen(len(self._known), at, getattr(code, "co_qualname", None), names, inlined)
        else:
            new = replace(known, names=joined_names(known.names, names), inlined=known.inlined and inlined)
        if new != known:
            self._known[at] = new
            self._changed[at] = None
        self._met.setdefault(current_compile_id() or "", set()).add(new.number)

    def records(self) -> Iterator[Record]:
        """The records that are new since the last time."""
        if self._pid != os.getpid():
            # Its records go to a file of their own.
            self._pid = os.getpid()
            self._changed = dict.fromkeys(self._known)
            self._files, self._libraries = set(), set()
        changed, self._changed = self._changed, {}
        met, self._met = self._met, {}
        for at in changed:
            if at.path not in self._files:
                self._files.add(at.path)
                with suppress(OSError):
                    yield FileSeen(os.path.abspath(at.path), content_digest(read_regular_file(at.path)[0]))
                yield from self._library_seen(at.path)
            yield self._known[at]
        for compile_id, numbers in met.items():
            yield ValuesMet(compile_id, tuple(sorted(numbers)))

    def _library_seen(self, path: str) -> Iterator[LibrarySeen]:
        found = _PACKAGE.search(path)
        if found is None or found[1] in self._libraries:
            return
        self._libraries.add(found[1])
        version = _version(found[1])
        if version is not None:
            yield LibrarySeen(found[1], version)

    def _wants(self, path: str) -> bool:
        if path not in self._wanted:
            if self._left_out is None:
                self._left_out = _left_out()
            installed = f"{os.sep}site-packages{os.sep}" in path
            standard, *others = self._left_out
            self._wanted[path] = not path.startswith("<") and not (
                path.startswith(tuple(others)) or (path.startswith(standard) and not installed)
            )
        return self._wanted[path]


def _version(name: str) -> str | None:
    """The version that a package has itself, without running its code, else what is installed by its name."""
    held = getattr(sys.modules.get(name), "__dict__", {}).get("__version__")
    if type(held) is str:
        return held
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _left_out() -> tuple[str, ...]:
    """The folders of Python, torch and breakscan."""
    import torch

    return sysconfig.get_path("stdlib") + os.sep, str(Path(torch.__file__).parent) + os.sep, OURS
