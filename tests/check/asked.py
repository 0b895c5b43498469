"""Programs that are asked of both: does ``check`` find a break in ``f``, and does the installed torch break there?"""

import importlib.util
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from breakscan.check.pipeline.check import check_paths
from breakscan.model.findings import Kind
from breakscan.rulebook.config import Settings

IMPORTS = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
"""The first lines of the snippets that the fixture ``check`` checks."""

PREAMBLE = """import torch
from torch import nn
import numpy as np


class Holder:
    pass


def hold(value):
    holder = Holder()
    setattr(holder, "".join(["he", "ld"]), value)
    return holder


"""
"""``hold(value).held`` is a value of which ``check`` knows nothing."""


def write(source: str, folder: Path) -> Path:
    path = folder / "asked_program.py"
    path.write_text(PREAMBLE + textwrap.dedent(source), encoding="utf-8")
    return path


def found(source: str, folder: Path) -> set[tuple[int, str]]:
    """The lines of ``f``'s program with a finding, counted from the first one of ``source``, and the rules."""
    path = write(source + "\n\ntorch.compile(f)\n", folder)
    result = check_paths([path], Settings(root=folder, target_torch="2.13", regions="all"), on_purpose=True)
    assert not result.errors
    first = PREAMBLE.count("\n")
    return {(one.site.line - first, one.rule) for one in result.findings if one.kind is Kind.GRAPH_BREAK}


def breaks(source: str, folder: Path) -> bool:
    """True if Dynamo splits ``f(torch.randn(4, 4))`` or gives it up, in its default mode."""
    torch = pytest.importorskip("torch")
    module = _imported(write(source, folder))
    graphs = 0

    def backend(graph: object, example_inputs: object) -> object:
        nonlocal graphs
        graphs += 1
        return graph.forward  # type: ignore[attr-defined]

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    given = torch.randn(4, 4)
    module.f(given)
    torch.compile(module.f, backend=backend)(given)
    counters = torch._dynamo.utils.counters
    return graphs != 1 or bool(counters["graph_break"]) or bool(counters["unimplemented"])


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
