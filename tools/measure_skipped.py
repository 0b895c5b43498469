"""Writes ``breakscan/rulebook/torch_facts/data/skipped/<version>.json``: what the installed torch skips.

``python -m tools.measure_skipped`` reads ``torch._dynamo.trace_rules``, and asks it about every public name of the
modules of torch in ``MODULES``.  ``CALLS`` are calls of a package that is on no list, most of whose functions end in C:
they are compiled where the package is installed, else what was written for them stays.  ``SINGLE_CALLS`` are calls of
single functions, which say nothing of others of their package.  The functions of ``ASKED_FOR_STATE`` that take no
arguments and are named as a question are compiled as well: they give a Python value, which a graph cannot hold.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import re
import warnings
from pathlib import Path
from typing import Any

import torch
from torch._dynamo import trace_rules
from torch._dynamo.variables import SkipFunctionVariable

import breakscan
from breakscan.model.torch_versions import minor_version

DYNAMO: Any = importlib.import_module("torch._dynamo")
FOLDER = Path(breakscan.__file__).parent / "rulebook/torch_facts/data/skipped"
MODULES = (
    "torch.futures",
    "torch.hub",
    "torch.nn.utils.rnn",
    "torch.optim.lr_scheduler",
    "torch.quasirandom",
    "torch.utils.data",
    "torch.utils.dlpack",
    "torch.utils.flop_counter",
)
ASKED_FOR_STATE = (
    *("torch", "torch._C", "torch.accelerator", "torch.autograd", "torch.autograd.profiler", "torch.backends.cuda"),
    *(
        "torch.backends.cudnn",
        "torch.backends.mkldnn",
        "torch.backends.mps",
        "torch.compiler",
        "torch.cpu",
        "torch.cuda",
    ),
    *("torch.distributed", "torch.jit", "torch.mps", "torch.xpu"),
)
_QUESTION = re.compile(
    r"_?(is|get|has|max_memory|memory|preferred)_|_?(device_count|kineto_available|.*_(enabled|allowed))$"
)
_NO_QUESTION = re.compile(r"rng_state|snapshot|current_graph|list_gpu")
"""They change with each call, or write."""
SINGLE_CALLS = {
    "numpy.polynomial.chebyshev.chebgauss": "3",
    "numpy.polynomial.hermite.hermgauss": "3",
    "numpy.polynomial.laguerre.laggauss": "3",
    "numpy.polynomial.legendre.leggauss": "3",
    "torch.Tensor._make_subclass": "torch.Tensor, y",
    "torch.Tensor._make_wrapper_subclass": "Wrapper, y.shape",
    "torch.jit.fork": "torch.sin, y",
    "torch.jit.isinstance": "y, torch.Tensor",
}
TRACED_AS_TORCH = frozenset({"numpy"})
"""On the list, but run as operations of torch: ``measure_numpy``."""
CALLS = {
    "PIL.Image.fromarray": "numpy.zeros((2, 2), 'uint8')",
    "PIL.Image.new": "'L', (2, 2)",
    "cv2.GaussianBlur": "numpy.zeros((4, 4)), (3, 3), 0",
    "cv2.cvtColor": "numpy.zeros((4, 4, 3), 'uint8'), 6",
    "cv2.getRotationMatrix2D": "(1, 1), 30, 1",
    "cv2.resize": "numpy.zeros((4, 4)), (2, 2)",
    "pywt.ContinuousWavelet": "'morl'",
    "pywt.Wavelet": "'haar'",
    "pywt.central_frequency": "'haar'",
    "pywt.dwt_max_level": "8, 2",
    "pywt.wavedec": "[1, 2, 3, 4], 'haar'",
    "pywt.wavelist": "",
    "scipy.interpolate.interp1d": "[0, 1], [0, 1]",
    "scipy.linalg.block_diag": "a, a",
    "scipy.linalg.expm": "a",
    "scipy.linalg.sqrtm": "a",
    "scipy.ndimage.distance_transform_edt": "a",
    "scipy.ndimage.gaussian_filter": "a, 1.0",
    "scipy.optimize.linear_sum_assignment": "a",
    "scipy.signal.convolve2d": "a, a",
    "scipy.signal.get_window": "'hann', 8",
    "scipy.sparse.coo_matrix": "a",
    "scipy.spatial.Delaunay": "a[:, :2]",
    "scipy.spatial.distance.cdist": "a, a",
    "scipy.special.erf": "0.3",
    "scipy.special.expit": "a",
    "scipy.special.logsumexp": "a",
    "scipy.special.softmax": "a",
    "scipy.stats.norm.cdf": "0.3",
    "scipy.stats.pearsonr": "a[0], a[1]",
    "scipy.stats.spearmanr": "a[0], a[1]",
}
PROGRAM = """
class Wrapper(torch.Tensor):
    __torch_dispatch__ = classmethod(lambda *given: None)


def f(x):
    y = x.sin()
    a = y.numpy()
    r = {call}
    return y.cos()
"""


def skipped_names() -> list[str]:
    """The public functions and classes of ``MODULES`` that the rules of Dynamo skip."""
    found: list[str] = []
    for module in MODULES:
        owner = importlib.import_module(module)
        own = [name for name, value in vars(owner).items() if getattr(value, "__module__", "") == module]
        listed = getattr(owner, "__all__", [name for name in own if not name.startswith("_")])
        names = [name for name in sorted(listed) if callable(getattr(owner, name))]
        skipped = [name for name in names if trace_rules.lookup(getattr(owner, name)) is SkipFunctionVariable]
        found += [f"{module}.{name}" for name in skipped]
    return found


def asked_for_state() -> list[str]:
    """The functions of ``ASKED_FOR_STATE`` that give a Python value when they are called without arguments, and end
    the graph."""
    found: list[str] = []
    for module in ASKED_FOR_STATE:
        owner = importlib.import_module(module)
        names = [name for name in sorted(dir(owner)) if _QUESTION.match(name) and not _NO_QUESTION.search(name)]
        found += [f"{module}.{name}" for name in names if _gives_value(owner, name) and breaks(f"{module}.{name}", "")]
    return found


def _gives_value(owner: Any, name: str) -> bool:
    function = getattr(owner, name)
    if not callable(function) or isinstance(function, type):
        return False
    try:
        given = function()
    except Exception:
        return False  # it needs arguments, or a device
    return given is not None and not isinstance(given, torch.Tensor)


def breaks(name: str, arguments: str) -> bool:
    """True if a call splits the graph, or makes Dynamo give the function up."""
    space: dict[str, Any] = {}
    exec(f"import numpy, torch, {_module_of(name)}\n" + PROGRAM.format(call=f"{name}({arguments})"), space)
    graphs = 0

    def backend(graph: Any, example_inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph.forward

    given = torch.rand(4, 4)
    space["f"](given)
    DYNAMO.reset()
    DYNAMO.utils.counters.clear()
    try:
        compiled: Any = torch.compile(space["f"], backend=backend)
        compiled(given)
    except Exception as error:
        print(f"{name} raises when it is compiled: {error}")
        return True
    return graphs != 1 or bool(DYNAMO.utils.counters["graph_break"])


def _module_of(name: str) -> str:
    """The innermost module that a dotted name goes through."""
    module = name.rpartition(".")[0]
    try:
        importlib.import_module(module)
    except ImportError:
        return _module_of(module)
    return module


def installed(name: str) -> bool:
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{minor_version(torch.__version__)}.json"
    called = json.loads(path.read_text(encoding="utf-8"))["called"] if path.exists() else {}
    called |= {name: breaks(name, arguments) for name, arguments in CALLS.items() if installed(name)}
    found = {
        "packages": sorted(set(trace_rules.THIRDPARTY_SKIPLIST) - TRACED_AS_TORCH),
        "names": [
            *skipped_names(),
            *(name for name, given in SINGLE_CALLS.items() if breaks(name, given)),
            *asked_for_state(),
        ],
        "called": called,
    }
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
