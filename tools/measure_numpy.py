"""Writes ``torch_facts/data/numpy/<version>.json``: which functions of NumPy the installed torch traces, and
what they return there.

``python -m tools.measure_numpy`` calls every public function of NumPy with arrays, with numbers, with lists and with
nothing, first as it is and then compiled, each between two operations of torch.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import types
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import torch

import breakscan
from breakscan.model.torch_versions import minor_version

DYNAMO: Any = importlib.import_module("torch._dynamo")
FOLDER = Path(breakscan.__file__).parent / "rulebook/torch_facts/data/numpy"
NAMESPACES = ("", "linalg.", "fft.", "random.", "ndarray.")
DTYPES = {"f": "", "i": ".long()", "b": ".bool()"}
OF_ARRAYS = (
    *("a", "a, a", "a, a, a", "[a, a]", "a, 1", "a, 2", "a, (16,)", "a, 0, 1", "a, 1, 0", "a[0], a[0]", "a[0]"),
    *("a, [0], [1]", "a, a[0], 0", "a, int", "np.sum, 0, a", "np.sum, a", "a, -1, 1", "a, 0, 3", "a, [a]"),
)
OF_INTEGERS = ("n", "n, 3", "n, 0, 9", "0, n, 3")
OF_FLOATS = ("2.5", "2.5, 1.5", "2.5, 0.5, 1.5", "0.5, 2.5, 3")
OTHERS = ("", "(2, 3)", "[1, 2]", "(2, 3), 1.5", "4, 4, 4", "0, 1, (2,)", "4, size=(2,)", "'float32'", "(2, 2), (2, 2)")
LEFT_OUT = frozenset(
    {"info", "test", "show_config", "show_runtime", "memmap", "DataSource", "fromfile", "loadtxt", "set_bit_generator"}
)
"""Functions that write, read, explain, or break what is measured after them."""
MOST_TRIED = 4
UNTRACED, PYTHON, ARRAY, ARRAYS = "untraced", "python", "array", "arrays"


def names() -> Iterator[str]:
    """The public functions of NumPy, by their names behind ``numpy.``."""
    for prefix in NAMESPACES:
        owner = getattr(numpy, prefix[:-1]) if prefix else numpy
        for name in sorted(set(dir(owner))):
            value = getattr(owner, name, None)
            plain = callable(value) and not isinstance(value, types.ModuleType) and not name.startswith("_")
            writes = name in LEFT_OUT or name.startswith(("save", "dump", "tofile", "genfrom"))
            if plain and not writes and not (isinstance(value, type) and issubclass(value, BaseException | Warning)):
                yield prefix + name


def program(call: str, dtype: str = "", use: str = "r", given_back: str = "y.cos()") -> Any:
    """A function with a call of NumPy between two operations of torch."""
    text = (
        "def f(x):\n    y = x.sin()\n    n = y.shape[0]\n"
        f"    a = y{dtype}.numpy()\n    r = {call}\n    s = {use}\n    return {given_back}\n"
    )
    space: dict[str, Any] = {"np": numpy}
    exec(text, space)
    return space["f"]


def result(call: str, dtype: str = "") -> Any:
    """The results of NumPy, in a tuple; None where it refuses the call."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return (program(call, dtype, given_back="s")(torch.ones(4, 4)),)
    except BaseException:
        return None


def compiles(call: str, dtype: str = "", use: str = "r") -> bool | None:
    """True if a call is traced without a graph break; None where the compiler raises."""
    graphs = 0

    def backend(module: Any, example_inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return module.forward

    DYNAMO.reset()
    DYNAMO.utils.counters.clear()
    try:
        compiled: Any = torch.compile(program(call, dtype, use), backend=backend, dynamic=False)
        compiled(torch.ones(4, 4))
    except Exception:
        return None
    return graphs == 1 and not DYNAMO.utils.counters["graph_break"]


def accepted(name: str, templates: tuple[str, ...], dtype: str = "") -> Iterator[tuple[str, Any]]:
    """The calls that NumPy takes, each with its result."""
    for template in templates:
        call = written(name, template)
        found = result(call, dtype)
        if found is not None and found[0] is not NotImplemented:
            yield call, found[0]


def written(name: str, template: str) -> str:
    """A call with the arguments of a template; a method is called on the first of them."""
    if not name.startswith("ndarray."):
        return f"np.{name}({template})"
    owner, _, others = template.partition(", ")
    return f"{owner}.{name.removeprefix('ndarray.')}({others})" if owner == "a" else "None.none()"


def letter(value: Any) -> str:
    kind = getattr(getattr(value, "dtype", None), "kind", "?")
    return {"f": "f", "i": "i", "u": "i", "b": "b"}.get(kind, "-")


def is_array(value: Any) -> bool:
    return isinstance(value, numpy.ndarray | numpy.generic)


def kind_of(value: Any) -> str:
    if is_array(value):
        return ARRAY
    several = isinstance(value, (tuple, list)) and len(value) > 0 and all(map(is_array, value))
    return ARRAYS if several else PYTHON


def of_numbers(name: str, templates: tuple[str, ...]) -> str:
    """The results of a call with numbers alone: ``k`` a number that is known during tracing, ``u`` one that is not,
    ``a`` an array with dimensions, ``.`` nothing that is traced."""
    for call, value in islice(accepted(name, templates), MOST_TRIED):
        if compiles(call):
            if not is_array(value):
                continue
            if value.ndim:
                return "a"
            return "k" if compiles(call, use="float(r)") else "u"
    return "."


def measured(name: str) -> str | None:
    """One text for a function: ``untraced``, ``python``, or the kind with the dtype classes of the results for arrays
    of floats, integers and booleans, whether an array gives a number, and what integers and floats give."""
    kinds: set[str] = set()
    tried = 0
    dtypes = ""
    whole = "-"
    for code, dtype in DTYPES.items():
        found = "."
        for call, value in islice(accepted(name, OF_ARRAYS, dtype), MOST_TRIED):
            done = compiles(call, dtype)
            tried += done is False
            if done:
                kinds.add(kind_of(value))
                found = letter(value) if is_array(value) else "-"
                if code == "f" and is_array(value) and call.endswith(("(a)", "()")):
                    whole = "-" if value.ndim else "0"
                break
        dtypes += found
    numbers = of_numbers(name, OF_INTEGERS) + of_numbers(name, OF_FLOATS)
    for call, value in accepted(name, (*OTHERS, *OF_INTEGERS, *OF_FLOATS)):
        if kinds or tried > 4 * MOST_TRIED:
            break
        done = compiles(call)
        tried += done is False
        if done:
            kinds.add(kind_of(value))
    if not kinds:
        return UNTRACED if tried else None
    if len(kinds) > 1:
        return None
    kind = kinds.pop()
    return kind if kind == PYTHON else f"{kind} {dtypes} {whole} {numbers}"


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    groups: dict[str, list[str]] = {}
    for name in names():
        printing, errors = numpy.get_printoptions(), numpy.geterr()
        found = measured(name)
        numpy.set_printoptions(**printing)
        numpy.seterr(**errors)
        if found is not None:
            groups.setdefault(found, []).append(name)
    rows = [f"{json.dumps(text)}: {json.dumps(' '.join(found))}" for text, found in sorted(groups.items())]
    FOLDER.mkdir(exist_ok=True)
    version = minor_version(torch.__version__)
    (FOLDER / f"{version}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
