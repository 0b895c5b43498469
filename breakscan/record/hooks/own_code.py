"""Keeps Dynamo from compiling breakscan's own functions.

Some of them are called while compiled code runs: where a backward is compiled in the midst of it, the structured trace
speaks.  Dynamo would try each, and count it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from breakscan.record.hooks.object_facts import OURS


@contextmanager
def own_code_skipped() -> Iterator[None]:
    """Adds breakscan's folder to those that Dynamo skips (``torch._dynamo.trace_rules.SKIP_DIRS``) while the block
    runs.  Does nothing if this torch has no such list."""
    from torch._dynamo import trace_rules

    folders = getattr(trace_rules, "SKIP_DIRS", None)
    take_in = getattr(trace_rules, "_recompile_re", None)
    if not isinstance(folders, list) or take_in is None or OURS in folders:
        yield
        return
    folders.append(OURS)
    take_in()
    try:
        yield
    finally:
        folders.remove(OURS)
        take_in()
