"""Each case of each rewrite: its result or its reason; what both texts compute; how Dynamo compiles them."""

import copy
import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cases import Case, cases

from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.result import FileRepair
from breakscan.fix.rewrites import rewrite_ids
from breakscan.rulebook.config import load_settings

ALL = list(cases())
APPLIED = [case for case in ALL if case.after is not None]
RUN = [case for case in APPLIED if "not-run" not in case.words]


def repaired(folder: Path, text: str, rewrite: str) -> FileRepair:
    path = folder / "case.py"
    path.write_text(text, encoding="utf-8")
    settings = replace(load_settings(folder, None, target_torch="2.13", no_cache=True), regions="all")
    return repair_file(path, (), settings, WantedRewrites(ids=frozenset({rewrite})))


@pytest.mark.parametrize("case", APPLIED, ids=str)
def test_the_text_behind_it(case: Case, tmp_path: Path) -> None:
    found = repaired(tmp_path, case.before, case.rewrite)
    assert found.errors == ()
    assert found.after == case.after, found.refused
    assert {one.difference is None for one in found.applied} == {case.safe}
    stated = [difference.text for one in found.applied for difference in one.differences]
    assert not case.states or any(case.states in text for text in stated), stated
    again = repaired(tmp_path, found.after, case.rewrite)
    assert not again.changed, "a second run changes it again"


@pytest.mark.parametrize("case", [case for case in ALL if case.reason is not None], ids=str)
def test_it_declines(case: Case, tmp_path: Path) -> None:
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
    exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    function: Callable[..., Any] = module.__dict__["f"]
    return function


@dataclass(frozen=True)
class Outcome:
    """The result or exception of a call, its arguments afterwards, and their gradients."""

    raised: type[Exception] | None
    result: Any = None
    arguments: Any = None
    gradients: Any = None


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    given = copy.deepcopy(arguments)
    torch.manual_seed(0)
    try:
        result = function(*given)
    except Exception as error:
        return Outcome(type(error))
    ends = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
    try:
        if ends:
            torch.autograd.backward([one.double().sum() for one in ends])
    except Exception as error:
        return Outcome(None, result, given, type(error).__name__)
    gradients = tree_map(lambda one: one.grad if isinstance(one, torch.Tensor) and one.is_leaf else None, given)
    return Outcome(None, result, given, gradients)


def compared(old: Outcome, new: Outcome, *, exact: bool) -> None:
    """Raises where two outcomes differ: in strides, gradients and whether they are required only where ``exact``."""
    import torch
    from torch.testing import assert_close
    from torch.utils._pytree import tree_leaves, tree_map

    def plain(value: Any) -> Any:
        return tree_map(lambda one: one if isinstance(one, torch.Tensor | int | float | bool) else None, value)

    assert old.raised is new.raised
    for one, other in ((old.result, new.result), (old.arguments, new.arguments)):
        assert_close(plain(other), plain(one), equal_nan=True, check_stride=exact)
    if exact:
        assert isinstance(old.gradients, str) == isinstance(new.gradients, str)
        assert_close(plain(new.gradients), plain(old.gradients), equal_nan=True)
        required = [[getattr(one, "requires_grad", None) for one in tree_leaves(side.result)] for side in (old, new)]
        assert required[0] == required[1]


def told_apart(old: Outcome, new: Outcome) -> bool:
    """True if two outcomes differ in anything."""
    try:
        compared(old, new, exact=True)
    except (AssertionError, TypeError):  # values of types that cannot be compared
        return True
    return False


def with_gradients(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same arguments, whose floats require a gradient."""
    import torch
    from torch.utils._pytree import tree_map

    def required(value: Any) -> Any:
        floats = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.detach().clone().requires_grad_() if floats else value

    return tuple(tree_map(required, arguments))


@pytest.mark.torch
@pytest.mark.parametrize("case", RUN, ids=str)
def test_both_sides_compute_the_same(case: Case, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    before, after = load(case.before, "before", tmp_path), load(case.after or "", "after", tmp_path)
    given = list(eval(case.inputs, {"torch": torch}))
    if "differs" in case.words:
        assert any(told_apart(outcome(before, one), outcome(after, one)) for one in given), (
            "what the edit states shows on none of the inputs"
        )
        return
    for arguments in [*given, *(map(with_gradients, given) if case.safe else ())]:
        old, new = outcome(before, arguments), outcome(after, arguments)
        if "raises" not in case.words or (old.raised is None and not isinstance(old.gradients, str)):
            compared(old, new, exact=case.safe)


def outcome_of_text(text: str, name: str, folder: Path, arguments: tuple[Any, ...]) -> Outcome:
    """The outcome of a call, or of loading the text."""
    try:
        function = load(text, name, folder)
    except Exception as error:
        return Outcome(type(error))
    return outcome(function, arguments)


@pytest.mark.torch
@pytest.mark.parametrize("case", [case for case in ALL if case.wrong is not None], ids=str)
def test_it_would_be_wrong(case: Case, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    given = list(eval(case.inputs, {"torch": torch}))
    texts = ("before", case.before), ("wrong", case.wrong or "")
    assert any(told_apart(*(outcome_of_text(text, name, tmp_path, one) for name, text in texts)) for one in given), (
        "what it would do wrong shows on none of the inputs"
    )


@pytest.mark.torch
@pytest.mark.parametrize("case", [case for case in RUN if "not-compiled" not in case.words], ids=str)
def test_the_compiler_agrees(case: Case, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if f"not-on-{'.'.join(torch.__version__.split('.')[:2])}" in case.words:
        pytest.skip("this version of Dynamo breaks on something else")
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
