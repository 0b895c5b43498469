"""What users of libraries are told to do about code that is not theirs."""

from __future__ import annotations

from dataclasses import replace

import explain_results as made
import pytest

from breakscan.explanation.context import package_of
from breakscan.explanation.recompiles import AdviceKind, Recompile, RecompileAdvice
from breakscan.explanation.remedies import Against, break_remedies, frame_remedies, libraries, recompile_advice
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller

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
    for (remedy,) in (
        break_remedies(replace(made.IN_LIBRARY, site=site)),
        frame_remedies(replace(made.FAILED, failed_at=site)),
    ):
        assert remedy.name == "library-lightning"
    assert not frame_remedies(made.FAILED)


def test_of_another_library_it_is_said_whose_code_it_is() -> None:
    site = Site(f"{INSTALLED}/layers/deep.py", 5, 1, 5, 9)
    names = [remedy.name for remedy in break_remedies(replace(made.IN_LIBRARY, site=site))]
    assert names == ["part-without-library", "report-to-library"]
    assert made.ITEM is not None
    assert [remedy.name for remedy in break_remedies(made.BREAK)] == [made.ITEM.name, *made.BREAK.remedies]


LOOP = f"{INSTALLED}/other/loop.py"
TRAINER = f"{INSTALLED}/transformers/trainer.py"
GENERATE = f"{INSTALLED}/transformers/generation/utils.py"


def passed_by(path: str, advice: RecompileAdvice, subject: str = "x.shape[0]") -> Recompile:
    """A recompile over what the code at ``path`` passes."""
    origin = Origin.LIBRARY if path.startswith("/") else Origin.USER
    return replace(made.RECOMPILE, trigger=Caller(path, 41, "f", origin), advice=advice, subject=subject)


@pytest.mark.parametrize(
    ("path", "subject", "words"),
    [
        (TRAINER, "x.shape[0]", "dataloader_drop_last=True"),
        (TRAINER, "x.shape[1]", "all batches to one length"),
        (GENERATE, "x.shape[0]", "as many prompts"),
        (GENERATE, "x.shape[1]", "all prompts to one length"),
        (GENERATE, "kwargs['past_key_values'].layers[0].keys.shape[2]", "generation_config.max_cache_len"),
        (f"{INSTALLED}/diffusers/pipelines/flux.py", "x.shape[2]", "pipe.unet.compile(dynamic=True)"),
        (LOOP, "x.shape[0]", "dynamic=True), or give other data of one size"),
        ("train.py", "x.shape[0]", "mark_dynamic(x, 0)"),
    ],
)
def test_a_size_that_a_library_passes_is_set_there(path: str, subject: str, words: str) -> None:
    advice = RecompileAdvice("mark_dynamic(x, 0)", dimension=subject[-2])
    assert words in (recompile_advice(passed_by(path, advice, subject)) or "")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (GENERATE, "change nothing: generate passes other arguments"),
        (LOOP, "change nothing if it happens only once: the call is in code of other"),
        ("train.py", "pass the same arguments in each call"),
    ],
)
def test_arguments_that_a_library_passes_are_its_own(path: str, words: str) -> None:
    assert words in (
        recompile_advice(passed_by(path, RecompileAdvice("pass the same arguments in each call", AdviceKind.ARGUMENTS)))
        or ""
    )


def test_a_size_can_be_kept_where_a_break_cannot_be_removed() -> None:
    """A function is compiled on its own because of a break in another library's code."""
    broken = RecompileAdvice("first remove the break", AdviceKind.BREAK_IN_CALLER, dimension="0")
    assert "drop_last" in (recompile_advice(passed_by(TRAINER, broken)) or "")
    assert recompile_advice(passed_by(LOOP, broken)) == broken.text


def test_what_the_code_of_a_library_brings_about_is_no_work_of_its_user() -> None:
    rule = replace(made.RECOMPILE, advice=None)
    inside = Site(f"{INSTALLED}/layers/deep.py", 5, 1, 5, 9)
    assert rule.rule is not None
    advice = recompile_advice(replace(rule, site=inside, origin=Origin.LIBRARY)) or ""
    assert advice.startswith("change nothing if it happens only once, or ask the authors of layers to change it")
    assert advice.endswith(f"({rule.rule.instead})")
    lightning = Site(f"{INSTALLED}/lightning/pytorch/core/module.py", 386, 5, 386, 8)
    assert "compile the inner module" in (recompile_advice(replace(rule, site=lightning, origin=Origin.LIBRARY)) or "")
    assert recompile_advice(rule) == rule.rule.instead


def test_each_entry_of_the_table_can_be_said() -> None:
    for package, entries in libraries().items():
        for entry in entries:
            assert set(entry) <= {"against", "within", "of", "dimension", "advice"}, package
            assert entry["against"] in {against.value for against in Against}, package
            assert entry["against"] == "size" or not {"of", "dimension"} & set(entry), package
