"""Which ways are tried, and which are known to be the same without being run."""

from __future__ import annotations

from typing import Any

import pytest

from breakscan.prove.bench import UnknownName, WantedVariants, doubles, planned
from breakscan.prove.bench_result import OWN
from breakscan.prove.protocol import Choices, CompileChoice

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {"fallback_by_default": True},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True},
}


def choice(
    backend: str = "inductor", dynamic: bool | None = None, fullgraph: bool = False, **options: Any
) -> CompileChoice:
    return CompileChoice(backend, options, dynamic, fullgraph)


def offered(*chosen: CompileChoice, cuda: bool = False) -> Choices:
    names = ("aot_eager", "cudagraphs", "eager", "inductor", "mine")
    return Choices(("cudagraphs", "inductor"), names, MODES, chosen, cuda)


CPU = offered(choice())
GPU = offered(choice(), cuda=True)


def run(choices: Choices, **wanted: Any) -> tuple[list[str], dict[str, str | None]]:
    """The labels of what is run, and of what is skipped, with what that is the same as."""
    variants = planned(WantedVariants(**wanted), choices)
    skipped = doubles(variants, choices)
    return [variant.label for variant in variants if variant.label not in skipped], {
        key: one.same_as for key, one in skipped.items()
    }


def test_on_a_gpu_all_modes_are_ways_of_their_own() -> None:
    run_, skipped = run(GPU)
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
    run_, skipped = run(CPU)
    assert 'mode="max-autotune-no-cudagraphs"' in run_
    assert skipped == {
        'mode="default"': OWN,
        'mode="reduce-overhead"': OWN,
        'mode="max-autotune"': 'mode="max-autotune-no-cudagraphs"',
        'backend="cudagraphs"': None,
    }


def test_what_the_program_asks_for_is_kept_and_not_run_twice() -> None:
    choices = offered(choice(dynamic=True, fullgraph=True, **MODES["reduce-overhead"]), cuda=True)
    variants = planned(WantedVariants(), choices)
    assert all(variant.options["fullgraph"] is True for variant in variants if variant.options is not None)
    assert {"mode": "max-autotune", "fullgraph": True, "dynamic": True} in [variant.options for variant in variants]
    assert run(choices)[1] == {'mode="reduce-overhead"': OWN, "dynamic=True": 'mode="default"'}


def test_a_program_that_compiles_in_several_ways_is_like_none_of_them() -> None:
    assert run(offered(choice(), choice("eager"), cuda=True))[1] == {}


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
    with pytest.raises(UnknownName, match=said):
        planned(WantedVariants(**wanted), GPU)
