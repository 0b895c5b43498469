"""The cases of the rewrites without their annotations: with what a run of them shows, they are offered again.

What is safe then is safe for values like those of the run, of the same dtypes and numbers of dimensions: both sides are
run with other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from cases import CapturedCall, cases
from test_cases import compared, load, outcome

from breakscan.explanation.function_values import observations_of
from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.result import FileRepair
from breakscan.model.observations import Observations
from breakscan.rulebook.config import load_settings

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


class Bare(cst.CSTTransformer):
    """Takes the annotations of parameters away."""

    found = False

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        if updated_node.annotation is None:
            return updated_node
        self.found = True
        space = cst.SimpleWhitespace("")
        equal = cst.AssignEqual(space, space) if updated_node.default is not None else updated_node.equal
        return updated_node.with_changes(annotation=None, equal=equal)


def bare(text: str) -> str:
    return cst.parse_module(text).visit(Bare()).code


def annotated(case: CapturedCall) -> bool:
    taken = Bare()
    cst.parse_module(case.before).visit(taken)
    return taken.found


def wanted() -> Iterator[CapturedCall]:
    for case in cases():
        is_run = case.after is not None and not case.words & {"not-run", "not-compiled"}
        if is_run and case.safe and annotated(case):
            yield case


def code(text: str) -> str:
    """A text without its imports: without annotations, some are used no longer."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(("import ", "from "))).strip()


def observed(folder: Path, text: str, inputs: list[tuple[Any, ...]]) -> Observations:
    """What a run of ``f`` shows."""
    import torch._dynamo

    from breakscan.recording.recorder import Recorder
    from breakscan.recording.recording import read_recording

    torch._dynamo.reset()
    function = load(text, "case", folder)
    recording = folder / "run"
    recording.mkdir()
    with Recorder(recording):
        compiled = torch.compile(function, backend="eager")
        for arguments in inputs:
            outcome(compiled, arguments)
    torch._dynamo.reset()
    return observations_of(read_recording(recording))


def repaired(folder: Path, rewrite: str, observations: Observations | None) -> FileRepair:
    settings = replace(load_settings(folder, None, target_torch="2.13", no_cache=True), regions="all")
    choice = WantedRewrites(observed=True, soften=True, ids=frozenset({rewrite}))
    return repair_file(folder / "case.py", (), replace(settings, observations=observations), choice)


OTHER_NUMBERS: tuple[Callable[[Any], Any], ...] = (
    lambda t: t.clone(),
    lambda t: -t,
    lambda t: t * 0,
    lambda t: t * float("nan"),
    lambda t: t * float("inf"),
    lambda t: t.flip(-1) if t.ndim else t + 1,
)


@pytest.mark.parametrize("case", wanted(), ids=str)
def test_without_annotations(case: CapturedCall, tmp_path: Path) -> None:
    from torch.utils._pytree import tree_map

    inputs = list(eval(case.inputs, {"torch": torch}))
    observations = observed(tmp_path, bare(case.before), inputs)
    found = repaired(tmp_path, case.rewrite, observations)
    assert code(found.after) == code(bare(case.after or "")), found.refused
    by_code_alone = repaired(tmp_path, case.rewrite, None).after
    rests = {one.finding.rewrite.safety for one in found.applied if one.finding.rewrite is not None}
    assert rests <= ({"safe"} if by_code_alone == found.after else {"safe", "observed"})
    assert by_code_alone == found.after or "observed" in rests, "what needs the run is called safe"

    def like(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def changed(one: Any) -> Any:
            is_float = isinstance(one, torch.Tensor) and one.is_floating_point()
            return change(one.detach()).requires_grad_(one.requires_grad) if is_float else one

        return changed

    before, after = load(bare(case.before), "before", tmp_path), load(found.after, "after", tmp_path)
    for arguments in inputs:
        for change in OTHER_NUMBERS:
            given = tree_map(like(change), arguments)
            old, new = outcome(before, given), outcome(after, given)
            if "raises" not in case.words or old.raised is None:
                compared(old, new, exact=True)
