"""Each case of each rewrite: its result or its reason; what both texts compute; how Dynamo compiles them."""

from __future__ import annotations

import copy
import linecache
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cases import CapturedCall, cases

from breakscan.config import load_settings
from breakscan.repair.planner import WantedRewrites, repair_file
from breakscan.repair.registry import rewrite_ids
from breakscan.repair.result import FileRepair

ALL = list(cases())
APPLIED = [case for case in ALL if case.after is not None]
RUN = [case for case in APPLIED if "not-run" not in case.words]


def repaired(folder: Path, text: str, rewrite: str) -> FileRepair:
    path = folder / "case.py"
    path.write_text(text, encoding="utf-8")
    settings = replace(load_settings(folder, None, target_torch="2.13", no_cache=True), regions="all")
    return repair_file(path, (), settings, WantedRewrites(unsafe=True, ids=frozenset({rewrite})))


@pytest.mark.parametrize("case", APPLIED, ids=str)
def test_the_text_behind_it(case: CapturedCall, tmp_path: Path) -> None:
    found = repaired(tmp_path, case.before, case.rewrite)
    assert found.errors == ()
    assert found.after == case.after, found.refused
    assert {one.difference is None for one in found.applied} == {case.safe}
    again = repaired(tmp_path, found.after, case.rewrite)
    assert not again.changed, "a second run changes it again"


@pytest.mark.parametrize("case", [case for case in ALL if case.reason is not None], ids=str)
def test_it_declines(case: CapturedCall, tmp_path: Path) -> None:
    found = repaired(tmp_path, case.before, case.rewrite)
    assert not found.changed, found.after
    reasons = [reason.text for refused in found.refused for reason in refused.reasons]
    assert reasons, "nothing was found that it could be tried on"
    assert any(case.reason in reason for reason in reasons), reasons


def load(text: str, name: str, folder: Path) -> Callable[..., Any]:
    """The ``f`` of a text, as a file that Dynamo can read."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    # Dynamo imports the module of a function that it inlines, by its name, and keeps it.
    module = ModuleType(f"{name}_{folder.name}")
    sys.modules[module.__name__] = module
    module.__file__ = str(path)
    linecache.checkcache(str(path))
    exec(compile(text, str(path), "exec"), module.__dict__)
    function: Callable[..., Any] = module.__dict__["f"]
    return function


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any, Any]:
    """What a call returns or raises, and what it leaves of its arguments."""
    import torch

    given = copy.deepcopy(arguments)
    torch.manual_seed(0)
    try:
        result = function(*given)
    except Exception as error:
        return "raises", type(error), None
    return "returns", result, given


def told_apart(plain: Callable[[Any], Any], old: tuple[str, Any, Any], new: tuple[str, Any, Any]) -> bool:
    """Whether two outcomes differ in exceptions, values, dtypes, or in what requires a gradient."""
    from torch.testing import assert_close
    from torch.utils._pytree import tree_leaves

    if old[0] != new[0] or (old[0] == "raises" and old[1] is not new[1]):
        return True
    gradients = [[getattr(one, "requires_grad", None) for one in tree_leaves(side[1:])] for side in (old, new)]
    try:
        assert_close(plain(new[1:]), plain(old[1:]), equal_nan=True, check_stride=False)
    except AssertionError:
        return True
    return gradients[0] != gradients[1]


@pytest.mark.torch
@pytest.mark.parametrize("case", RUN, ids=str)
def test_both_sides_compute_the_same(case: CapturedCall, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from torch.testing import assert_close
    from torch.utils._pytree import tree_map

    def plain(value: Any) -> Any:
        return tree_map(lambda one: one if isinstance(one, torch.Tensor | int | float | bool) else None, value)

    before, after = load(case.before, "before", tmp_path), load(case.after or "", "after", tmp_path)
    if "differs" in case.words:
        pairs = [(outcome(before, one), outcome(after, one)) for one in eval(case.inputs, {"torch": torch})]
        assert any(told_apart(plain, old, new) for old, new in pairs), (
            "what the edit states shows on none of the inputs"
        )
        return
    for arguments in eval(case.inputs, {"torch": torch}):
        old, new = outcome(before, arguments), outcome(after, arguments)
        if old[0] == "raises" and "raises" in case.words:
            continue
        assert old[0] == new[0], (old, new)
        if old[0] == "raises":
            assert old[1] is new[1]
        else:
            assert_close(plain(new[1]), plain(old[1]), equal_nan=True, check_stride=False)
            assert_close(plain(new[2]), plain(old[2]), equal_nan=True, check_stride=False)


@pytest.mark.torch
@pytest.mark.parametrize("case", RUN, ids=str)
def test_the_compiler_agrees(case: CapturedCall, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    arguments = next(iter(eval(case.inputs, {"torch": torch})))
    breaks = {}
    for name, text in (("before", case.before), ("after", case.after or "")):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        graphs: list[Any] = []

        def backend(module: Any, _: Any, graphs: list[Any] = graphs) -> Any:
            graphs.append(module)
            return module.forward

        compiled = torch.compile(load(text, name, tmp_path), backend=backend)
        outcome(compiled, arguments)
        breaks[name] = sum(torch._dynamo.utils.counters["graph_break"].values()), len(graphs)
    if "still-breaks" not in case.words:
        assert breaks["after"] == (0, 1), breaks
    assert breaks["before"] != breaks["after"], breaks


def test_every_rewrite_has_cases() -> None:
    assert {case.rewrite for case in ALL} == set(rewrite_ids())


def test_cases_have_names_of_their_own() -> None:
    assert len({str(case) for case in ALL}) == len(ALL)
