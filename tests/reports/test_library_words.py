"""What users of libraries are told to do about code that is not theirs."""

from __future__ import annotations

from dataclasses import replace

import explain_results as made
import pytest

from breakscan.findings import Origin, Site
from breakscan.reports.explain.advice_words import recompile_advice
from breakscan.reports.explain.library_words import break_advice, package_of
from breakscan.reports.explain.reason_words import frame_advice
from breakscan.runtime.explain.callers import Caller
from breakscan.runtime.explain.explanation import AdviceKind, RecompileAdvice

INSTALLED = "/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("path", "package"),
    [
        (f"{INSTALLED}/transformers/trainer.py", "transformers"),
        ("/usr/lib/python3/dist-packages/six.py", "six"),
        ("/usr/lib/python3.12/inspect.py", None),
        ("train.py", None),
    ],
)
def test_the_package_of_a_file(path: str, package: str | None) -> None:
    assert package_of(path) == package


def test_what_a_user_of_the_library_can_set_is_said() -> None:
    site = Site(f"{INSTALLED}/lightning/pytorch/core/module.py", 514, 1, 514, 9)
    assert "self.net = torch.compile(self.net)" in (break_advice(replace(made.IN_LIBRARY, site=site)) or "")
    assert "self.net = torch.compile(self.net)" in (frame_advice(replace(made.FAILED, failed_at=site)) or "")
    assert frame_advice(made.FAILED) == made.FAILED.advice


def test_of_another_library_it_is_said_whose_code_it_is() -> None:
    site = Site(f"{INSTALLED}/layers/deep.py", 5, 1, 5, 9)
    found = replace(made.IN_LIBRARY, site=site, advice="keep the 0-d tensor")
    advice = break_advice(found) or ""
    assert advice.startswith("this is code of layers: compile a part of the model that does not call it")
    assert advice.endswith("(keep the 0-d tensor)")
    assert break_advice(replace(made.BREAK, advice="keep the 0-d tensor")) == "keep the 0-d tensor"


@pytest.mark.parametrize(
    ("path", "dimension", "words"),
    [
        (f"{INSTALLED}/transformers/trainer.py", "0", "dataloader_drop_last=True"),
        (f"{INSTALLED}/transformers/trainer.py", "1", "one length"),
        (f"{INSTALLED}/other/loop.py", "0", "mark_dynamic(x, 0)"),
        ("train.py", "0", "mark_dynamic(x, 0)"),
    ],
)
def test_a_size_that_a_library_passes_is_set_there(path: str, dimension: str, words: str) -> None:
    origin = Origin.LIBRARY if path.startswith("/") else Origin.USER
    recompile = replace(
        made.RECOMPILE,
        trigger=Caller(path, 41, "f", origin),
        advice=RecompileAdvice(AdviceKind.SIZE_OF_PARAMETER, "x", dimension),
    )
    assert words in (recompile_advice(recompile) or "")
