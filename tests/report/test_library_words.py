"""What users of libraries are told to do about code that is not theirs."""

from dataclasses import replace
from typing import Any

import explain_results as made
import pytest

from breakscan.explanation.context import package_of
from breakscan.explanation.recompiles import Recompile
from breakscan.explanation.remedies import AGAINST, break_remedies, frame_remedies, libraries, recompile_remedies
from breakscan.model.findings import ChangeKind, Holder, Origin, Site
from breakscan.model.problem import Caller
from breakscan.model.remedy import NewLine

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
    settings = ("capture_scalar_outputs", "nested_graph_breaks")
    offered = break_remedies(replace(made.IN_LIBRARY, site=site, rule=made.ITEM, remedies=settings))
    assert [one.name for one in offered] == [*settings, "part-without-library", "report-to-library"]
    assert made.ITEM is not None
    assert [remedy.name for remedy in break_remedies(made.BREAK)] == [made.ITEM.name, *made.BREAK.remedies]


LOOP = f"{INSTALLED}/other/loop.py"
TRAINER = f"{INSTALLED}/transformers/trainer.py"
GENERATE = f"{INSTALLED}/transformers/generation/utils.py"


def passed_by(path: str, subject: str = "x.shape[0]", **changes: Any) -> Recompile:
    """A recompile over what the code at ``path`` passes, of a version that leaves the size open."""
    origin = Origin.LIBRARY if path.startswith("/") else Origin.USER
    kind = ChangeKind.SIZE if ".shape" in subject else ChangeKind.LENGTH
    guard = replace(made.RECOMPILE.guard, subject=subject, kind=kind)
    trigger = Caller(path, 41, "f", origin)
    return replace(made.RECOMPILE, trigger=trigger, guard=guard, subject=subject, opened=True, **changes)


def names(recompile: Recompile) -> list[str]:
    return [remedy.name for remedy in recompile_remedies([recompile])]


@pytest.mark.parametrize(
    ("path", "subject", "words"),
    [
        (TRAINER, "x.shape[0]", "dataloader_drop_last=True"),
        (TRAINER, "x.shape[1]", "all batches to one length"),
        (GENERATE, "x.shape[0]", "as many prompts"),
        (GENERATE, "x.shape[1]", "all prompts to one length"),
        (GENERATE, "kwargs['past_key_values'].layers[0].keys.shape[2]", "generation_config.max_cache_len"),
        (f"{INSTALLED}/diffusers/pipelines/flux.py", "x.shape[2]", "pipe.unet.compile(dynamic=True)"),
        (GENERATE, "len(kwargs)", "generate passes other arguments"),
    ],
)
def test_what_a_library_passes_is_set_there(path: str, subject: str, words: str) -> None:
    (remedy,) = recompile_remedies([passed_by(path, subject)])
    assert words in remedy.text


@pytest.mark.parametrize(
    ("path", "subject", "wanted"),
    [
        (LOOP, "x.shape[0]", ["dynamic", "one-size"]),
        (LOOP, "len(kwargs)", ["call-of-library"]),
        ("train.py", "x.shape[0]", ["dynamic", "one-size"]),
        ("train.py", "len(kwargs)", ["same-arguments"]),
    ],
)
def test_what_other_code_passes(path: str, subject: str, wanted: list[str]) -> None:
    assert names(passed_by(path, subject)) == wanted


def test_a_size_that_the_call_names_is_marked() -> None:
    recompile = passed_by("train.py", passed={"x": "batch"})
    (mark, _) = recompile_remedies([recompile])
    assert mark.write == NewLine("train.py", 41, "torch._dynamo.mark_dynamic(batch, 0)")


def test_a_mark_is_not_offered_where_code_behind_a_break_is_compiled_again() -> None:
    head = passed_by("train.py", passed={"x": "batch"})
    behind = passed_by("train.py", "features.shape[0]")
    assert [remedy.name for remedy in recompile_remedies([head, behind])] == ["dynamic", "one-size"]


def test_a_size_that_no_version_leaves_open_is_not_marked() -> None:
    recompile = passed_by("train.py", passed={"x": "batch"})
    assert names(replace(recompile, opened=False)) == ["one-size"]


def test_a_size_can_be_kept_where_a_break_cannot_be_removed() -> None:
    """A function is compiled on its own because of a break in another library's code."""
    broken = {"made_by": (Site(f"{INSTALLED}/other/loop.py", 3, 1, 3, 2), "loop"), "opened": False}
    assert names(replace(passed_by(TRAINER), **broken)) == ["library-transformers"]
    assert names(replace(passed_by(LOOP), **broken, is_elsewhere=True)) == ["break-of-library"]
    # Without the break, the same line would pass the same sizes.
    assert names(replace(passed_by(LOOP), **broken)) == ["one-size"]


def test_what_the_code_of_a_library_brings_about_is_no_work_of_its_user() -> None:
    inside = replace(
        passed_by(LOOP), site=Site(f"{INSTALLED}/layers/deep.py", 5, 1, 5, 9), origin=Origin.LIBRARY, opened=False
    )
    assert names(inside) == ["code-of-library"]
    assert [remedy.name for remedy in recompile_remedies([inside, inside])] == ["part-without-library"]
    lightning = Site(f"{INSTALLED}/lightning/pytorch/core/module.py", 386, 5, 386, 8)
    assert names(replace(made.RECOMPILE, site=lightning, origin=Origin.LIBRARY)) == ["library-lightning"]


def test_what_the_user_passes_to_a_library_is_the_users() -> None:
    inside = {"site": Site(f"{INSTALLED}/layers/deep.py", 5, 1, 5, 9), "origin": Origin.LIBRARY}
    assert names(passed_by("train.py", **inside)) == ["dynamic", "one-size"]
    assert names(replace(passed_by("train.py", **inside), opened=False)) == ["one-size"]


def test_what_objects_of_a_library_hold_is_not_edited() -> None:
    """A setting is the user's, even where the library's code is part of the user's graph."""
    held = replace(made.RECOMPILE.guard, subject="self.rotary.seen", kind=ChangeKind.NUMBER, holder=Holder.MODULE)
    counted = replace(
        made.RECOMPILE, guard=held, subject=held.subject, old="3", new="5", rule=made.LIBRARY.get("BRK701"),
        site=Site(f"{INSTALLED}/rotary/rotary.py", 5, 1, 5, 9),
    )  # fmt: skip
    assert names(counted) == ["allow_unspec_int_on_nn_module"]


def test_each_entry_of_the_table_can_be_said() -> None:
    for package, entries in libraries().items():
        for entry in entries:
            assert set(entry) <= {"against", "within", "of", "dimension", "advice"}, package
            assert entry["against"] in AGAINST, package
            assert entry["against"] == "size" or not {"of", "dimension"} & set(entry), package
