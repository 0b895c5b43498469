"""Which ways ``bench`` tries, which are known to be the same without being run, and which one it chooses."""

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from breakscan.prove.bench import (
    OWN,
    BenchRow,
    MeasurementStatus,
    WantedVariants,
    best_of,
    doubles,
    pays_after,
    planned,
    write_for,
)
from breakscan.prove.capture import CompileHook
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import NothingToMeasure
from breakscan.prove.process import choice_of
from breakscan.prove.protocol import Choices
from breakscan.prove.worker import Candidate

torch = pytest.importorskip("torch")

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def offered(cuda: bool = False, **kept: Any) -> Choices:
    names = ("aot_eager", "cudagraphs", "eager", "inductor", "mine")
    return Choices(("cudagraphs", "inductor"), names, MODES, kept, cuda)


CPU, GPU = offered(), offered(cuda=True)


def run(choices: Choices, own: dict[str, Any] | None = None, **wanted: Any) -> tuple[list[str], dict[str, str | None]]:
    """The labels of what is run, and of what is skipped, with what that is the same as.  The program itself compiles
    with ``own`` arguments."""
    variants = planned(WantedVariants(**wanted), choices)

    def key_of(variant: Candidate) -> str | None:
        options = own if variant.options is None else variant.options
        if options is None or options.get("backend") == "mine":
            return None
        context = torch._dynamo.eval_frame.OptimizeContext
        with mock.patch.object(context, "__call__", context.__call__):
            hook = CompileHook(lambda captured: captured.compiled)
            hook.install(torch)
            hook.compile(lambda: None, options)
            return choice_of(hook.contexts[-1], choices.cuda)

    skipped = doubles(variants, choices.cuda, key_of)
    return [variant.label for variant in variants if variant.label not in skipped], {
        key: one.same_as for key, one in skipped.items()
    }


def test_on_a_gpu_all_modes_are_ways_of_their_own() -> None:
    run_, skipped = run(GPU, {})
    assert run_ == [
        OWN,
        'backend="eager"',
        'backend="aot_eager"',
        'mode="reduce-overhead"',
        'mode="max-autotune-no-cudagraphs"',
        'mode="max-autotune"',
        "dynamic=True",
        'backend="cudagraphs"',
    ]
    assert skipped == {'mode="default"': OWN}


def test_without_one_a_mode_is_run_once() -> None:
    run_, skipped = run(CPU, {})
    assert 'mode="max-autotune-no-cudagraphs"' in run_
    assert skipped == {
        'mode="default"': OWN,
        'mode="reduce-overhead"': OWN,
        'mode="max-autotune"': 'mode="max-autotune-no-cudagraphs"',
        'backend="cudagraphs"': None,
    }


def test_what_the_program_asks_for_is_kept_and_not_run_twice() -> None:
    choices = offered(cuda=True, dynamic=True, fullgraph=True)
    variants = planned(WantedVariants(), choices)
    assert all(variant.options["fullgraph"] is True for variant in variants if variant.options is not None)
    assert {"mode": "max-autotune", "fullgraph": True, "dynamic": True} in [variant.options for variant in variants]
    own = {"dynamic": True, "fullgraph": True, "mode": "reduce-overhead"}
    assert run(choices, own)[1] == {'mode="reduce-overhead"': OWN, "dynamic=True": 'mode="default"'}


def test_a_program_that_compiles_in_several_ways_is_like_none_of_them() -> None:
    assert run(GPU)[1] == {}


def test_lists_narrow_and_widen_what_is_tried() -> None:
    assert run(GPU, backends=("mine",))[0] == [OWN, 'backend="mine"']
    assert run(GPU, backends=("inductor",), modes=("lite",), dynamic=False)[0] == [OWN, 'mode="lite"']
    assert not [label for label in run(GPU, autotune=False)[0] if "max-autotune" in label]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"backends": ("tvn",)}, "there is no backend 'tvn': torch has aot_eager, cudagraphs"),
        ({"modes": ("fast",)}, "there is no mode 'fast': torch has default, lite"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(NothingToMeasure, match=said):
        planned(WantedVariants(**wanted), GPU)


SAME = Ratio(1.0, 0.99, 1.01)
DEFAULT = 'mode="default"'
AUTOTUNED = 'mode="max-autotune"'


def row(label: str, ratio: float, cold: float, half: float = 0.02) -> BenchRow:
    """A way that is measured to be so many times as fast as an eager step of 10 ms."""
    options = None if label == OWN else {"mode": label.split('"')[1]}
    interval = Ratio(ratio, ratio - half, ratio + half)
    return BenchRow(
        Candidate(label, options),
        MeasurementStatus.MEASURED,
        compiling_seconds=cold,
        step_seconds=10e-3 / ratio,
        ratio=interval,
    )


QUICK = replace(row(DEFAULT, 2.4, 1), step_seconds=3e-3)
NOISY = Ratio(1.0, 0.9, 1.1)


@pytest.mark.parametrize(
    ("rows", "same", "best"),
    [
        pytest.param(
            [row(OWN, 2.0, 10), row(DEFAULT, 2.5, 20), row(AUTOTUNED, 3.0, 200)], SAME, AUTOTUNED, id="fastest"
        ),
        pytest.param([row(DEFAULT, 2.99, 20), row(AUTOTUNED, 3.0, 200)], SAME, DEFAULT, id="as fast, compiles faster"),
        pytest.param([row(DEFAULT, 2.8, 20), row(AUTOTUNED, 3.0, 200)], SAME, AUTOTUNED, id="beyond noise"),
        pytest.param([row(DEFAULT, 2.8, 20), row(AUTOTUNED, 3.0, 200)], NOISY, DEFAULT, id="within noise"),
        pytest.param([QUICK, row(AUTOTUNED, 3.0, 200)], SAME, DEFAULT, id="no slower by its own steps"),
        pytest.param([row(OWN, 3.0, 22), row(DEFAULT, 3.0, 20)], SAME, OWN, id="another costs about as much"),
        pytest.param([row(OWN, 3.0, 100), row(DEFAULT, 3.0, 20)], SAME, DEFAULT, id="another costs far less"),
        pytest.param([row(DEFAULT, 1.01, 20), row(AUTOTUNED, 0.5, 20)], SAME, None, id="no faster"),
        pytest.param([row(DEFAULT, 1.09, 20)], NOISY, None, id="no faster than noise"),
        pytest.param([], SAME, None, id="nothing"),
    ],
)
def test_the_cheapest_of_the_fastest_is_chosen(rows: list[BenchRow], same: Ratio, best: str | None) -> None:
    found, as_fast = best_of(rows, same)
    assert (found.label if found else None) == best
    assert found is None or found in as_fast


def test_only_what_gives_equal_results_is_chosen() -> None:
    for status in set(MeasurementStatus) - {MeasurementStatus.MEASURED}:
        assert best_of([replace(row(DEFAULT, 3.0, 20), status=status)], SAME) == (None, ())


def test_it_pays_where_all_calls_together_take_as_long_as_eager() -> None:
    one = row(DEFAULT, 2.0, 10.0)
    calls = pays_after(one, SAME)
    assert calls is not None

    def compiled(count: int) -> float:
        return 10.0 + count * 5e-3

    assert compiled(calls) <= calls * 10e-3
    assert compiled(calls - 1) > (calls - 1) * 10e-3
    assert pays_after(row(DEFAULT, 1.01, 10.0), SAME) is None
    assert pays_after(replace(one, step_seconds=None), SAME) is None


@pytest.mark.parametrize(
    ("options", "name", "asked", "written"),
    [
        (None, "Net", False, None),
        (None, "Net", True, "torch.compile(model)"),
        ({}, "Net", False, "torch.compile(model)"),
        ({}, "step", False, "torch.compile(step)"),
        ({"mode": "max-autotune"}, "Net", False, 'torch.compile(model, mode="max-autotune")'),
        ({"dynamic": True}, "Net", False, "torch.compile(model, dynamic=True)"),
    ],
)
def test_what_to_write_is_code(options: dict[str, Any] | None, name: str, asked: bool, written: str | None) -> None:
    found = write_for(BenchRow(Candidate("it", options), MeasurementStatus.MEASURED), [name], asked)
    assert found == written
    if found is not None:
        compile(found, "it", "exec")
