"""The repair of several files: every finding of ``check`` has an outcome."""

from pathlib import Path

import pytest

from breakscan.check.pipeline.check import check_paths
from breakscan.check.pipeline.checker import Checker
from breakscan.check.pipeline.rewrite_facts import Studies
from breakscan.fix.planner import GUESSED as GUESSED_VALUE
from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.repair import repair_found
from breakscan.rulebook.config import load_settings
from tests.fix.conftest import Written

PROJECT = {
    "base.py": """import torch


class Base(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return self.compute(x)
""",
    "layer.py": """import torch

from base import Base
from ops import scaled


class Layer(Base):
    def compute(self, x):
        return scaled(x)
""",
    "ops.py": """import torch


def scaled(x: torch.Tensor):
    y = x.sin()
    print(y)
    return y
""",
}


def test_what_is_reached_through_an_inherited_forward_has_an_outcome(written: Written) -> None:
    files, settings = written(PROJECT)
    found = check_paths(files, settings)
    (finding,) = found.findings
    assert (finding.site.path, finding.region and finding.region.path) == ("ops.py", "base.py")
    (repair,) = repair_found(found, settings, WantedRewrites()).files
    assert [(one.finding.site, one.rewrite) for one in repair.applied] == [(finding.site, "is-compiling-guard")]


CHANGED_BOTH = {
    "model.py": """import torch

from ops import scaled


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        print(x.shape)
        print(x)
        return scaled(x)
""",
    "ops.py": """import torch

from more import shifted


def scaled(x: torch.Tensor):
    y = shifted(x.sin())
    if y.sum() > 0:
        y = y * 2
    print(y)
    return y
""",
    "more.py": """import torch


def shifted(x: torch.Tensor):
    print(x)
    return torch.where(x > 0, x, x + 1)
""",
}


def test_files_that_reach_one_another_are_repaired_as_each_of_them_alone(written: Written) -> None:
    files, settings = written(CHANGED_BOTH)
    wanted = WantedRewrites()
    found = check_paths(files, settings)
    together = repair_found(found, settings, wanted, jobs=1).files
    assert {one.display for one in together if one.applied} == CHANGED_BOTH.keys()
    for one in together:
        roots = [Path(root) for root in found.roots[one.display]]
        assert repair_file(one.path, roots, settings, wanted) == one


def test_a_repair_after_the_check_in_one_process_is_that_of_a_new_one(written: Written) -> None:
    files, settings = written(CHANGED_BOTH)
    wanted = WantedRewrites()
    checkers = Checker(settings)
    found = check_paths(files, settings, jobs=1, checkers=checkers)
    repaired = repair_found(found, settings, wanted, jobs=1, checkers=checkers).files
    assert all(one.applied for one in repaired)
    assert repaired == repair_found(found, settings, wanted, jobs=1).files


GENERATED = """# This file was automatically generated from modular_net.py.
# Do not edit it.

import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        print(x)
        if x.sum() > 0:
            x = x + 1
        return x
"""


def test_a_generated_file_is_declined_by_its_findings_alone(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,), settings = written({"net.py": GENERATED})
    wanted = WantedRewrites()
    studied = repair_file(path, [path], settings, wanted)
    found = check_paths([path], settings)
    monkeypatch.setattr(Studies, "study", lambda *given: pytest.fail("it was studied"))
    (repair,) = repair_found(found, settings, wanted, jobs=1).files
    assert [one.finding.rule for one in repair.refused] == [one.rule for one in found.findings] != []
    assert repair == studied


@pytest.mark.parametrize(
    ("top", "is_generated"),
    [
        ("# Automatically generated from net.py.\n\n", True),
        ("\n  # Automatically generated from net.py.\n", True),
        ("# -*- coding: utf-8 -*-\n# Auto-generated.\n#\n# Do not modify.\n\n", True),
        ("# Auto-generated.\n", False),
        ('"""Net."""\n# Automatically generated from net.py.\n\n', False),
        ("import torch  # automatically generated from net.py\n", False),
    ],
)
def test_comments_at_the_top_say_that_a_file_is_generated(top: str, is_generated: bool, tmp_path: Path) -> None:
    text = f"{top}import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n    print(x)\n    return x\n"
    settings = load_settings(tmp_path, None, target_torch="2.13", no_cache=True)
    repair = repair_file(tmp_path / "net.py", (), settings, WantedRewrites(), text=text)
    assert repair.changed is not is_generated


SIZES = """import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, sizes: torch.Tensor):
        n = sizes.max()
        return x.view(n, -1).reshape(-1, n)
"""


def test_findings_that_start_at_one_place_each_have_an_outcome(written: Written) -> None:
    (path,), settings = written({"net.py": SIZES})
    found = check_paths([path], settings)
    places = [(one.rule, one.site.line, one.site.column) for one in found.findings]
    assert len(places) > len(set(places))
    (repair,) = repair_found(found, settings, WantedRewrites(), jobs=1).files
    outcomes = [*(one.finding for one in (*repair.applied, *repair.refused)), *repair.without]
    assert sorted(one.site.end_column for one in outcomes) == sorted(one.site.end_column for one in found.findings)


GUESSED = """\
import torch
from solvers import solve


@torch.compile
def f(x):
    found = solve(x)
    if found.sin().sum() > 0:
        found = found * 2
    return found.mean()
"""


def test_what_only_check_finds_stays_and_says_why(written: Written) -> None:
    (path,), settings = written({"program.py": GUESSED})
    (found,) = check_paths([path], settings, jobs=1).findings
    (file,) = repair_found(check_paths([path], settings, jobs=1), settings, WantedRewrites(), jobs=1).files
    (refused,) = file.refused
    assert (refused.finding.rule, refused.finding.site) == ("BRK101", found.site)
    assert {one.text for one in refused.reasons} == {GUESSED_VALUE}
