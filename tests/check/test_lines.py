"""Programs that differ in one line, asked of both: calls of what Dynamo does not trace by its own rules, results of
NumPy, which are tensors or numbers that Dynamo may know, and recurrent modules, which end the graph where one is read.
"""

from pathlib import Path

import pytest
from asked import breaks, found

from breakscan.model.torch_versions import PINNED, minor_version
from breakscan.rulebook.torch_facts.table import OfNumbers, Returned, load_api, skipped

SKIPPED = """
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
SKIPPED_BROKEN = [
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
    "for row in loader:\n        y = y + row",
]
SKIPPED_COMPILED = ["rows = Own([1, 2])", "first = Own([y, y])[0]", "number = torch.jit.annotate(int, 3)"]

NUMPY = """
def f(x: torch.Tensor):
    y = x.sin()
    n = y.shape[0]
    a = y.numpy()
    {use}
    return y.cos()
"""
NUMPY_BROKEN = {
    "r = int(np.prod(y.shape))": "BRK203",
    "r = y.view(int(np.prod(y.shape)))": "BRK203",
    "r = np.prod(y.shape).item()": "BRK201",
    "r = np.ceil(y.shape[0] / 2).astype('int').item()": "BRK201",
    "r = int(np.floor(n / 2).astype(int))": "BRK203",
    "r = float(np.mean([1, 2]))": "BRK202",
    "r = int(np.abs(n))": "BRK203",
    "y = y + 1 if np.sqrt(n) > 3 else y": "BRK103",
    "y = y + 1 if np.max(y.shape) > 3 else y": "BRK103",
    "y = y + 1 if a.sum() > 0 else y": "BRK103",
    "r = bool(np.any(a > 0))": "BRK204",
    "r = np.sqrt(n).tolist()": "BRK205",
    "r = int(a.astype(np.float64).mean())": "BRK203",
    "r = not np.prod(y.shape)": "BRK106",
    "r = np.nanmean(a)": "BRK414",
    "r = y[: np.prod(y.shape)]": "BRK211",
    "y = y[np.argmax([1, 2]) :]": "BRK211",
    "r = np.random.permutation(4)": "BRK411",
}
NUMPY_COMPILED = [
    "r = int(np.ceil(y.shape[0] / 2))",
    "r = int(np.sqrt(n))",
    "r = y[: int(np.sqrt(n) * 2)]",
    "r = float(np.log2(8) + 1)",
    "r = y / np.sqrt(n)",
    "r = y * np.prod(y.shape)",
    "r = np.maximum(a, 0.0).sum(axis=0)",
    "r = np.sqrt(n).astype(np.float32)",
    "r = a.size + 1 if a.size > 3 else 0",
]


RECURRENT = """
{imports}
class Own(nn.GRU):
    pass


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = {made}

    def forward(self, x):
        y = x.sin()
        {use}
        return y.cos()


model = Model()


def f(x):
    return model(x)
"""

CALL = "y, _ = self.held(y)"
MADE_AND_USED = [
    ("", "nn.LSTM(4, 4)", CALL),
    ("from torch.nn import LSTM as Layer", "Layer(4, 4)", CALL),
    ("from torch.nn.modules.rnn import GRU", "GRU(4, 4)", CALL),
    ("import torch.nn.modules as modules", "modules.RNN(4, 4)", CALL),
    ("", "Own(4, 4)", CALL),
    ("", "nn.LSTM(4, 4)", "y = y * self.held.hidden_size"),
    ("", "nn.GRU(4, 4)", "assert self.held is not None"),
    ("", "nn.GRU(4, 4) if torch.get_num_threads() else nn.LSTM(4, 4)", CALL),
    ("", "nn.ModuleList([nn.GRU(4, 4)])", "y, _ = self.held[0](y)"),
]
NOT_READ = [
    ("", "nn.GRU(4, 4)", "y = y + 1"),
    ("", "nn.LSTMCell(4, 4)", "y, _ = self.held(y)"),
]
CASES = [
    *((SKIPPED.format(use=use), use, "BRK420") for use in SKIPPED_BROKEN),
    *((SKIPPED.format(use=use), use, None) for use in SKIPPED_COMPILED),
    *((NUMPY.format(use=use), use, rule) for use, rule in NUMPY_BROKEN.items()),
    *((NUMPY.format(use=use), use, None) for use in NUMPY_COMPILED),
    *((RECURRENT.format(imports=a, made=b, use=use), use, "BRK609") for a, b, use in MADE_AND_USED),
    *((RECURRENT.format(imports=a, made=b, use=use), use, None) for a, b, use in NOT_READ),
]
"""A program, its line in question, and the rule if it breaks there."""
each_case = pytest.mark.parametrize(("source", "use", "rule"), CASES, ids=[use for _, use, _ in CASES])


@each_case
def test_the_line_is_found_where_it_breaks(source: str, use: str, rule: str | None, tmp_path: Path) -> None:
    line = source[: source.index(use)].count("\n") + 1
    assert found(source, tmp_path) == ({(line, rule)} if rule else set())


@pytest.mark.torch
@each_case
def test_the_compiler_agrees(source: str, use: str, rule: str | None, tmp_path: Path) -> None:
    assert breaks(source, tmp_path) is (rule is not None)


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


def test_packages_on_the_list_and_packages_that_were_tried(tmp_path: Path) -> None:
    lines = {line for line, rule in found(PACKAGES, tmp_path) if rule == "BRK420"}
    assert lines == {12, 13, 14, 15, 17}


@pytest.mark.torch
def test_the_list_is_that_of_the_installed_torch() -> None:
    rules = pytest.importorskip("torch._dynamo.trace_rules")
    torch = pytest.importorskip("torch")
    if minor_version(torch.__version__) == minor_version(PINNED):
        assert skipped(minor_version(PINNED)).packages == set(rules.THIRDPARTY_SKIPLIST) - {"numpy"}


def test_the_table() -> None:
    root, product, absolute, interpolation = (load_api("2.13").numpy(n) for n in ("sqrt", "prod", "abs", "interp"))
    assert (root.of_integers, absolute.of_integers) == (OfNumbers.KNOWN, OfNumbers.READ)
    assert absolute.of_floats is OfNumbers.KNOWN
    assert (product.whole, product.dtype_class("bool")) == (True, "int")
    assert interpolation.returned is Returned.UNTRACED


@pytest.mark.parametrize("use", ["r = a[np.where(a > 0)[0][0]]", "a[np.where(a > 0)[0][0]] = 1.0"])
def test_where_with_a_condition_alone_gives_indices(use: str, tmp_path: Path) -> None:
    assert found(NUMPY.format(use=use), tmp_path) == {(6, "BRK302"), (6, "BRK210")}
