"""Why a function is not compiled, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from explain_results import FRAME

from breakscan.explanation.advice import frame_advice
from breakscan.explanation.compilations import ConstantReason, constant_words
from breakscan.explanation.frames import OverLimit, Quoted, RaisedInTrace, Reason, reason_words
from breakscan.recording.parsers.frames import Limit, Skip

RAISED = RaisedInTrace("/srv/model.py", 41, "KeyError: 'x'")
WORDS: dict[Reason, str] = {
    Quoted("Dynamo says so"): "Dynamo says so",
    Quoted(""): "the compiler passed it over, and does not say why",
    Skip.NO_TENSOR: "it was called without a tensor",
    OverLimit(Limit("recompile_limit", 8)): (
        "8 versions of it are compiled, which is the limit (torch._dynamo.config.recompile_limit), so further variants "
        "run eager"
    ),
    OverLimit(None): "it was recompiled more often than torch allows, so further variants run eager",
    OverLimit(None, raises=True): "it was recompiled more often than torch allows, which is an error here",
    RAISED: "while Dynamo traced model.py:41, this was raised: KeyError: 'x'",
}


@pytest.mark.parametrize(("reason", "words"), WORDS.items(), ids=WORDS.values())
def test_a_reason(reason: Reason, words: str) -> None:
    assert reason_words(reason) == words


def test_all_skips_and_reasons_of_constants_have_words() -> None:
    assert all(map(reason_words, Skip))
    assert all(map(constant_words, ConstantReason))


def test_what_dynamo_ran_is_to_run_outside() -> None:
    assert frame_advice(FRAME) == FRAME.advice
    assert "torch.compiler.disable" in (frame_advice(replace(FRAME, reason=RAISED)) or "")
