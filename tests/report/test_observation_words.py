"""Every observation and every difference has words."""

import pytest

from breakscan.prove.equal import Change, Part, ResultDifference
from breakscan.prove.observation import Observation, ObservationKind, other_calls
from breakscan.prove.protocol import CapturedCalls, Description
from breakscan.prove.torch_state import CUDA, TORCH
from breakscan.report.measurements import observation_words


@pytest.mark.parametrize("kind", ObservationKind)
def test_every_kind_has_words(kind: ObservationKind) -> None:
    details = ("x has shape 2, not 3",)
    said = observation_words(Observation(kind, "it", ("a",), (1, 2, 3, 4), details))
    assert said
    assert not set("{}") & set(said)


@pytest.mark.parametrize("change", Change)
def test_every_change_has_words(change: Change) -> None:
    difference = ResultDifference(Part.OUTPUT, change, "output", "1", "2", (3,), 0.5, 0.1, "no", 1)
    assert observation_words(Observation(ObservationKind.EAGER_DIFFERS, details=(difference,))).endswith(
        "in call 2"
    ) or (change is Change.CALL_COUNT)


def test_remarks_name_what_they_are_about() -> None:
    names = tuple(f"a{number}" for number in range(5))
    assert observation_words(Observation(ObservationKind.NOT_PUT_BACK, names=names)).endswith(
        "a call: a0, a1, a2 and 2 more"
    )
    said = observation_words(Observation(ObservationKind.OTHER_RANDOM_START, names=(TORCH, f"{CUDA}1")))
    assert said.endswith("torch's CPU generator, the generator of cuda:1")
    assert observation_words(Observation(ObservationKind.MORE_RECOMPILES, "x.shape[0]", numbers=(1,))) == (
        "it is compiled 1 more time (x.shape[0] changes)"
    )


def described(*calls: CapturedCalls) -> Description:
    return Description(None, None, frozenset(), {}, (), (), None, calls, (), (), (), True, ())


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        (CapturedCalls("f", 2, (), True), CapturedCalls("f", 3, (), True), "other calls: 2 × f, not 3 × f"),
        (CapturedCalls("f", 1, ("a",), True), CapturedCalls("f", 1, ("b",), True), "other modes: a, not b"),
        (CapturedCalls("f", 1, (), True), CapturedCalls("f", 1, (), False), "another backward: True, not False"),
        (CapturedCalls("f", 1, (), True), CapturedCalls("f", 1, (), True), None),
    ],
)
def test_the_first_aspect_in_which_calls_differ_is_named(
    here: CapturedCalls, there: CapturedCalls, said: str | None
) -> None:
    assert other_calls(described(here), described(there)) == said
