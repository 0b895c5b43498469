"""Recording changes nothing of the program: not its results, not what it compiles, not torch when it is over."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from programs import Folder

import breakscan
from breakscan.recording.recording import read_recording
from breakscan.recording.records import CompileStarted, FrameEnded, HookFailed, HookInstalled, Record

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Any]:
    import torch._dynamo

    from breakscan.recording.recorder import Recorder

    torch._dynamo.reset()
    with Recorder(tmp_path) as recorder:
        yield recorder
    torch._dynamo.reset()


def program() -> Any:
    """A break, a function that runs eager, a recompile: together they call each hook."""

    def f(x: Any, n: int) -> Any:
        y = x.sin()
        torch._dynamo.graph_break()
        for _ in range(n):
            y = y + torch.ones(3)
            if y.sum() > 10:
                y = y / 2
        return y

    def g(x: Any, flag: str) -> Any:
        return x.sin() if flag == "a" else x.cos()

    given_up = torch.compile(f, backend="eager")
    recompiled = torch.compile(g, backend="eager")
    return [given_up(torch.ones(3), 2), recompiled(torch.ones(3), "a"), recompiled(torch.ones(3), "b")]


def records(folder: Path) -> list[Record]:
    return [record for process in read_recording(folder) for record in process]


def test_all_hooks_find_what_they_need(recorder: Any, tmp_path: Path) -> None:
    installed = [record for record in records(tmp_path) if isinstance(record, HookInstalled)]
    names = [record.name for record in installed]
    assert len(set(names)) == len(names)
    from breakscan.recording.recorder import HOOKS

    assert {hook.name for hook in HOOKS if hook.waits_for is None} - {*names} == {"fullgraph", "profile"}
    # The hook for silent skips needs torch 2.13.
    assert [record.name for record in installed if not record.available] in ([], ["skips"])


def test_a_torch_that_does_not_tell_its_stance_lacks_a_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo import eval_frame

    from breakscan.recording.hooks.hook import Hooks
    from breakscan.recording.hooks.runs import StanceHook, current_stance

    hook = Hooks([StanceHook], print).of(StanceHook)
    with torch.compiler.set_stance("force_eager"), hook.installed() as available:
        assert (available, current_stance()) == (True, "force_eager")
    with monkeypatch.context() as patch:
        patch.setattr(eval_frame, "_stance", object())
        with hook.installed() as available:
            assert (available, current_stance()) == (False, "default")


@pytest.mark.parametrize("name", ["trace", "breaks", "recompiles", "frames", "graphs", "targets", "skips", "values"])
def test_a_hook_that_raises_never_reaches_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    import torch._dynamo

    from breakscan.recording.recorder import HOOKS, Recorder

    hook: Any = next(hook for hook in HOOKS if hook.name == name)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("on purpose")

    torch._dynamo.reset()
    monkeypatch.setattr(hook, next(part for part in ("_record", "before", "after") if part in vars(hook)), fail)
    with Recorder(tmp_path):
        results = program()
    assert len(results) == 3
    if HookInstalled(name, False, hook.without) in records(tmp_path):
        pytest.skip("this torch has no such hook")
    failed = [record for record in records(tmp_path) if isinstance(record, HookFailed)]
    assert failed == [HookFailed(name, "RuntimeError: on purpose", hook.without)]


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on the size of files")
def test_a_record_of_which_a_part_was_written_is_told(tmp_path: Path) -> None:
    import resource

    from breakscan.recording.recording import RecordingWriter, cut_by

    writer = RecordingWriter(tmp_path)
    writer.write(HookInstalled("first", True))
    written = sum(path.stat().st_size for path in tmp_path.iterdir())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (written + 5, before[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            writer.write(HookInstalled("second", True))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert cut_by(tmp_path) == "No space left on device"
    assert records(tmp_path) == [HookInstalled("first", True)]


def test_nothing_is_kept_alive(recorder: Any) -> None:
    """Only strings and numbers are recorded: a tensor lives as long as it would without us."""
    import gc
    import weakref

    def f(x: Any, flag: str) -> Any:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos() if flag == "a" else y

    compiled = torch.compile(f, backend="eager")
    tensor = torch.ones(3)
    for flag in "ab":
        compiled(tensor, flag)
    gone = weakref.ref(tensor)
    del tensor
    gc.collect()
    assert gone() is None


def test_dynamo_does_not_try_to_compile_the_recorder(folder: Folder) -> None:
    """Where torch compiles a backward in the midst of compiled code, functions of ours are called there."""
    folder.write(
        "program.py",
        "import sys, torch\n"
        f"sys.path.append({str(Path(breakscan.__file__).parent.parent)!r})\n"
        "import ast\nfrom breakscan.source.walking import walk\n\n\n"
        "@torch.compiler.disable(recursive=False)\ndef between(x):\n    return x + len(list(walk(ast.Pass())))\n\n\n"
        "@torch.compile(backend='eager')\ndef step(x):\n    return between(x.sin()).cos()\n\n\n"
        "step(torch.ones(3))\n",
    )
    folder.explain("--save", "kept", "program.py")
    records = [record for records in read_recording(folder.path / "kept") for record in records]
    assert [record.code.name for record in records if isinstance(record, CompileStarted)]
    given_up = [record.frame.name for record in records if isinstance(record, FrameEnded)]
    assert "walk" not in given_up


def test_what_torch_wraps_meanwhile_stays_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Dynamo wraps methods of modules when it first compiles."""
    from breakscan.recording.hooks.hook import wrapped

    def around(name: str) -> Any:
        return lambda function: lambda: f"{name} {function()}"

    def original() -> str:
        return "original"

    library = SimpleNamespace(call=original)
    monkeypatch.setitem(sys.modules, "library", library)
    with wrapped(["library:call"], lambda _, function: around("ours")(function)):
        assert library.call.__qualname__ == original.__qualname__
        library.call = around("torch's")(library.call)
        assert library.call() == "torch's ours original"
    assert library.call() == "torch's original"
