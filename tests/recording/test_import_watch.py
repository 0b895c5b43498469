"""What waits for the import of modules."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

from breakscan.recording.bootstrap import import_watch
from breakscan.recording.bootstrap.import_watch import ImportWatch
from breakscan.recording.hooks.targets import MODULES


@pytest.mark.parametrize("watches", [1, 2, 3])
def test_several_may_wait_for_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watches: int) -> None:
    name = f"waited_for_by_{watches}"
    (tmp_path / f"{name}.py").write_text("executed = True\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    told = []
    for number in range(watches):
        watch = ImportWatch()
        watch.before(name, lambda module, number=number: told.append(("before", number, hasattr(module, "executed"))))
        watch.after(name, lambda module, number=number: told.append(("after", number, module.executed)))
    module = importlib.import_module(name)
    assert sorted(told) == sorted(
        [(when, number, when == "after") for when in ("before", "after") for number in range(watches)]
    )
    assert sys.meta_path == finders
    assert "exec_module" not in vars(module.__spec__.loader)
    assert importlib.reload(module).executed


def test_what_nobody_has_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    watches = [ImportWatch(), ImportWatch()]
    for watch in watches:
        watch.after("there_is_no_such_module", print)
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        importlib.import_module("there_is_no_such_module")
    for watch in watches:
        watch.stop()
    assert not any(isinstance(finder, ImportWatch) for finder in sys.meta_path)


def test_the_first_file_waits_for_the_modules_that_the_hooks_name() -> None:
    """``sitecustomize`` imports nothing of breakscan's: it has a copy."""
    path = Path(import_watch.__file__).with_name("sitecustomize.py")
    copies = [
        ast.literal_eval(node.value)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_LOADED_LATE"
    ]
    assert copies == [MODULES]
