"""``explain`` finds the rule of each recorded break: for each example of a break, the rule of the example."""

import contextlib
import io
import logging
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from breakscan.explanation.from_processes import explain_processes
from breakscan.model.findings import Kind
from breakscan.recording.launch import ProgramExit
from breakscan.recording.recorder import Recorder
from breakscan.recording.recording import read_recording
from breakscan.rulebook.document import Example, Rule
from breakscan.rulebook.library import load_library
from breakscan.source.source_files import SourceFiles

torch: Any = pytest.importorskip("torch")
dynamo: Any = pytest.importorskip("torch._dynamo")
pytestmark = pytest.mark.torch

ALSO = {("BRK714", "breaks/4"): "BRK716", ("BRK434", "breaks/5"): "BRK219"}
"""Examples that show two things at once: a guard can tell of the other first."""
RULES = [rule for rule in load_library() if rule.kind is not Kind.MISUSE and rule.recorded]


@pytest.fixture(autouse=True)
def state() -> Iterator[None]:
    config = dynamo.config.get_config_copy()
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamo.config.load_config(config)
    torch.set_default_dtype(torch.float32)
    begin_anew()


def begin_anew() -> None:
    dynamo.reset()
    torch.set_grad_enabled(True)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, marks=pytest.mark.slow if place % 6 else ()) for place, rule in enumerate(RULES)],
    ids=lambda rule: rule.id,
)
def test_each_example_is_explained_by_its_own_rule(rule: Rule, tmp_path: Path) -> None:
    for example in rule.examples:
        if example.label.startswith("breaks/"):
            folder = tmp_path / example.label.replace("/", "-")
            folder.mkdir()
            wanted = {rule.id, ALSO.get((rule.id, example.label))}
            assert rules_recorded(example, folder) & wanted, example.label


def rules_recorded(example: Example, folder: Path) -> set[str]:
    """The ids of all rules that the report names."""
    path = folder / "example.py"
    path.write_text(example.source, encoding="utf-8")
    module = ModuleType(f"example_{folder.name}_{folder.parent.name}")
    sys.modules[module.__name__] = module
    disabled = logging.root.manager.disable
    logging.disable()
    begin_anew()
    try:
        with Recorder(folder), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Some fail under the compiler: that is what they show.
            with contextlib.suppress(Exception):
                run(example, path, module)
    finally:
        logging.disable(disabled)
        del sys.modules[module.__name__]
    explanation = explain_processes(
        read_recording(folder),
        argv=["example.py"],
        outcome=ProgramExit(0, 1.0),
        rules=load_library(),
        show=str,
        files=SourceFiles.trusted(),
    )
    found = (*explanation.breaks, *explanation.recompiles, *explanation.frames)
    return {thing.rule.id for thing in found if thing.rule is not None}


def run(example: Example, path: Path, module: ModuleType) -> None:
    space = module.__dict__
    exec(compile(example.source, str(path), "exec", dont_inherit=True), space)
    compiles_itself = re.search(r"\.compile\(.*backend=", example.source)
    function = space["f"] if compiles_itself else torch.compile(space["f"], backend="eager")
    if "make_calls" in space:
        calls = space["make_calls"]()
    elif "make_inputs" in space:
        calls = [space["make_inputs"]()]
    else:
        calls = [eval(f"({example.inputs},)", {"torch": torch, **space})]
    for arguments in calls:
        function(*arguments)
