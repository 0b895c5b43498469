"""Each datum is recorded once; where a hook is missing or fails, the structured trace stands in for it."""

from pathlib import Path
from typing import Any

import pytest

from breakscan.recording.hooks.frames import BreakHook, FrameHook
from breakscan.recording.hooks.graphs import GraphHook
from breakscan.recording.hooks.guards import RecompileHook
from breakscan.recording.hooks.hook import Hook
from breakscan.recording.recorder import Recorder
from breakscan.recording.recording import read_recording
from breakscan.recording.records import (
    BreakSeen,
    FrameEnded,
    GraphCompiled,
    HookFailed,
    HookInstalled,
    RecompileSeen,
    Record,
)

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

HANDLERS = {BreakHook: "before", RecompileHook: "before", FrameHook: "_record", GraphHook: "_record"}


def broken(x: Any) -> Any:
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


def given_up(x: Any) -> Any:
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()
    return x


def chosen(x: Any, flag: str) -> Any:
    return x.sin() if flag == "a" else x.cos().exp()


def plain(x: Any) -> Any:
    return x.sin()


def recorded(folder: Path) -> list[Record]:
    """The records of a program with a break, a frame that falls back to eager and three recompiles."""
    import torch._dynamo

    folder.mkdir()
    torch._dynamo.reset()
    with Recorder(folder):
        torch.compile(broken, backend="eager")(torch.ones(3))
        torch.compile(given_up, backend="eager")(torch.ones(3))
        flagged = torch.compile(chosen, backend="eager")
        for flag in "abc":
            flagged(torch.ones(3), flag)
        # Another backend: no guard of the function's own fails.
        torch.compile(plain, backend="eager")(torch.ones(3))
        torch.compile(plain, backend="aot_eager")(torch.ones(3))
    torch._dynamo.reset()
    return [record for process in read_recording(folder) for record in process]


def gist(records: list[Record]) -> dict[str, list[Any]]:
    """What the records say of each datum, in the parts that the trace knows as well."""
    breaks = [(r.frame, r.stack[-1].line, r.skipped, r.raised) for r in records if isinstance(r, BreakSeen)]
    recompiles = [
        (r.compile_id, r.frame, [(g.compile_id, g.text.partition("  #")[0].strip()[:40]) for g in r.guards])
        for r in records
        if isinstance(r, RecompileSeen)
    ]
    frames = [(r.frame, r.error, r.raised, r.limit) for r in records if isinstance(r, FrameEnded)]
    graphs = [
        (r.compile_id, r.frame, r.ops, r.devices, [n.line and n.line.line for n in r.nodes], bool(r.ended_by))
        for r in records
        if isinstance(r, GraphCompiled)
    ]
    assert [g for _, _, guards in recompiles for g in guards]
    return {"breaks": breaks, "recompiles": recompiles, "frames": frames, "graphs": graphs}


@pytest.mark.parametrize("hook", HANDLERS, ids=lambda hook: hook.name)
@pytest.mark.parametrize("how", ["missing", "fails"])
def test_the_trace_stands_in_for_a_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: type[Hook], how: str
) -> None:
    whole = gist(recorded(tmp_path / "whole"))

    def fail(*_: object) -> None:
        raise RuntimeError("on purpose")

    if how == "missing":
        monkeypatch.setattr(hook, "wraps", ("torch._dynamo:nothing",))
    else:
        monkeypatch.setattr(hook, HANDLERS[hook], fail)
    records = recorded(tmp_path / "poorer")
    kind = HookInstalled if how == "missing" else HookFailed
    assert [r.without for r in records if isinstance(r, kind) and r.name == hook.name] == [hook.without]
    poorer = gist(records)
    if hook is FrameHook and how == "fails":
        # The trace speaks first, so that what the hook failed on is lost.
        poorer["frames"], whole["frames"] = poorer["frames"][1:], whole["frames"][len(whole["frames"]) :]
    assert poorer == whole
