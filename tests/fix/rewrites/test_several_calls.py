"""Cases that one call of a compiled function does not show: what is compiled over several calls, before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import CapturedCall, cases
from test_cases import load

RECOMPILES = ("register-buffer", "mark-dynamic", "tensor-argument")
NEVER_COMPILED = ("module-compile", "assign-result")
ONCE = ("hoist-compile",)
UNLIKE_WHAT_IS_STATED = ("an attribute that changes", "a base class of another file")
"""Cases that do what the rewrite says must not be, so that other functions are compiled, or that are not whole."""
MEANT = [
    case
    for case in cases()
    if case.after is not None
    and case.rewrite in (*RECOMPILES, *NEVER_COMPILED, *ONCE)
    and case.name not in UNLIKE_WHAT_IS_STATED
]


def graphs_and_result(text: str, name: str, case: CapturedCall, folder: Path) -> tuple[int, Any]:
    """How many graphs are compiled in four calls, with what the file compiles itself, and what the last one gives."""
    import torch

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    function = load(text, name, folder)
    if case.rewrite == "register-buffer":
        function = torch.compile(function, backend="eager")
    for number in range(4):
        result = function(torch.arange(4.0) + number)
    return torch._dynamo.utils.counters["stats"]["unique_graphs"], result


@pytest.mark.torch
@pytest.mark.parametrize("case", MEANT, ids=str)
def test_several_calls(case: CapturedCall, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    before, old = graphs_and_result(case.before, "before", case, tmp_path)
    after, new = graphs_and_result(case.after or "", "after", case, tmp_path)
    if "differs" not in case.words:
        torch.testing.assert_close(new, old)
    if case.rewrite in RECOMPILES:
        assert before > after == 1
    elif case.rewrite in NEVER_COMPILED:
        assert before == 0 < after
    else:
        assert before == after == 1
