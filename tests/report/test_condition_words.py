"""Conditions in words: each kind, several together, and one that is too long."""

import pytest

from breakscan.model.findings import Condition, ConditionKind
from breakscan.report.findings import conditions_in_words

WORDS = {
    Condition(ConditionKind.TEST, "x > 0"): "`x > 0`",
    Condition(ConditionKind.TEST, "x and y", outcome=False): "not `x and y`",
    Condition(ConditionKind.DEVICE, "x.is_cpu"): "`x.is_cpu`",
    Condition(ConditionKind.GIVEN, "mask"): "`mask` is given",
    Condition(ConditionKind.FLAG, "verbose"): "`verbose` is on",
    Condition(ConditionKind.FLAG, "verbose", outcome=False): "`verbose` is off",
    Condition(ConditionKind.TENSOR, "size"): "`size` is a tensor",
    Condition(ConditionKind.TENSOR, ""): "it is a tensor",
    Condition(ConditionKind.MASK, "keep"): "`keep` is a tensor of booleans",
    Condition(ConditionKind.RETURNS_TENSOR, "self.scale"): "`self.scale` returns a tensor",
    Condition(ConditionKind.INSTANCE, "n", classes=("Number", "int")): "`n` is a Number or an int",
    Condition(ConditionKind.RAISED, "ValueError"): "`ValueError` is raised",
    Condition(ConditionKind.RAISED, ""): "something is raised",
    Condition(ConditionKind.CHOSEN, "self.act"): "`self.act` is this function",
    Condition(ConditionKind.PASSED_ON, "forward", classes=("cached",)): "`@cached` lets it through to this `forward`",
    Condition(ConditionKind.UNSEEN, ""): "the values are not those of the recorded run",
}


@pytest.mark.parametrize(("condition", "words"), WORDS.items(), ids=WORDS.values())
def test_a_condition(condition: Condition, words: str) -> None:
    assert conditions_in_words([condition]) == words


def test_each_kind_has_words() -> None:
    assert {condition.kind for condition in WORDS} == set(ConditionKind)


def test_several_conditions_are_said_once_each() -> None:
    given, on, *_ = list(WORDS)[3:]
    assert conditions_in_words([given, on, given]) == "`mask` is given and `verbose` is on"
    assert conditions_in_words([]) is None


def test_a_long_condition_is_cut() -> None:
    assert conditions_in_words([Condition(ConditionKind.TEST, "x" * 98)]) == f"`{'x' * 98}`"
    assert conditions_in_words([Condition(ConditionKind.TEST, "x" * 99)]) == f"`{'x' * 97}…`"
