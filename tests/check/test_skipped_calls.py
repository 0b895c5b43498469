"""Calls of what Dynamo does not trace by its own rules: listed packages, and classes and functions of torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked import breaks, found

from breakscan.model.torch_versions import PINNED, minor_version
from breakscan.rulebook.torch_facts.table import skipped

PROGRAM = """
from numpy.polynomial.legendre import leggauss
from torch.quasirandom import SobolEngine
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, default_collate
from torch.utils import data


class Own(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return self.rows[index]


class Wrapper(torch.Tensor):
    __torch_dispatch__ = classmethod(lambda *given: None)


loader = DataLoader([1, 2])
engine = SobolEngine(2)


def f(x):
    y = x.sin()
    {use}
    return y.cos()
"""
BROKEN = [
    "rows = TensorDataset(y)",
    "loaded = DataLoader([1, 2], batch_size=1)",
    "first = default_collate([y, y])",
    "first = Subset([1, 2, 3], [0])",
    "batches = data.BatchSampler([1, 2], 1, False)",
    "points = engine.draw(3)",
    "nodes, weights = leggauss(3)",
    "nodes, weights = np.polynomial.hermite.hermgauss(3)",
    "wrapped = torch.Tensor._make_wrapper_subclass(Wrapper, y.shape)",
    "is_tensor = torch.jit.isinstance(y, torch.Tensor)",
]
COMPILED = ["rows = Own([1, 2])", "first = Own([y, y])[0]", "number = torch.jit.annotate(int, 3)"]

PACKAGES = """
import pandas as pd
import xarray
from scipy import special
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import roc_auc_score
from sklearn.cluster import KMeans


def f(x: torch.Tensor):
    y = x.sin()
    score = roc_auc_score(y.numpy(), y.numpy())
    groups = KMeans(2).fit_predict(y.numpy())
    rows, columns = linear_sum_assignment(y.numpy())
    frame = pd.DataFrame(y.numpy())
    soft = special.softmax(y.numpy())
    array = xarray.DataArray(y.numpy())
    return y.cos()
"""


@pytest.mark.parametrize("use", BROKEN)
def test_what_torch_skips_of_its_own_is_found(use: str, tmp_path: Path) -> None:
    source = PROGRAM.format(use=use)
    assert found(source, tmp_path) == {(source[: source.index(use)].count("\n") + 1, "BRK420")}


@pytest.mark.parametrize("use", COMPILED)
def test_a_class_of_the_program_is_traced(use: str, tmp_path: Path) -> None:
    assert not found(PROGRAM.format(use=use), tmp_path)


def test_a_loader_from_outside_is_found(tmp_path: Path) -> None:
    source = PROGRAM.format(use="for row in loader:\n        y = y + row")
    assert {rule for _, rule in found(source, tmp_path)} == {"BRK420"}


@pytest.mark.torch
@pytest.mark.parametrize("use", [*BROKEN, *COMPILED, "for row in loader:\n        y = y + row"])
def test_the_compiler_agrees(use: str, tmp_path: Path) -> None:
    assert breaks(PROGRAM.format(use=use), tmp_path) is (use not in COMPILED)


def test_packages_on_the_list_and_packages_that_were_tried(tmp_path: Path) -> None:
    lines = {line for line, rule in found(PACKAGES, tmp_path) if rule == "BRK420"}
    assert lines == {12, 13, 14, 15, 17}


@pytest.mark.torch
def test_the_list_is_that_of_the_installed_torch() -> None:
    rules = pytest.importorskip("torch._dynamo.trace_rules")
    torch = pytest.importorskip("torch")
    if minor_version(torch.__version__) == minor_version(PINNED):
        assert skipped(minor_version(PINNED)).packages == set(rules.THIRDPARTY_SKIPLIST) - {"numpy"}
