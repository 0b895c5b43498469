"""The results of torch's operators when they are run: kind, dtype class and dimensions, on torch's own sample inputs.

Part of ``generate_torch_facts.py``; nothing that checks imports it.  The samples are those that torch is tested with
(``torch.testing``), on tiny CPU tensors.  Needs numpy and expecttest besides torch.
"""

from __future__ import annotations

import importlib
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

DTYPES = {"f": "float32", "i": "int64", "b": "bool"}
UNSUPPORTED = "."
VARYING = "-"
SAMPLES = 40
KEEPS_DIMENSIONS = frozenset({"dim", "axis", "keepdim", "keepdims", "reduction", "size_average", "reduce"})


@dataclass
class Measured:
    """The results of the runs of one operator.

    ``dtypes``: number of results, 0 for a bare tensor → letter of the input dtype → the letters of the results.
    ``whole``: for a number of tensors given, and nothing that keeps a dimension, whether all results were 0-d though
    no input was.  ``refused``: input dtypes without a kernel for some sample.  ``broadcasts``: whether the result had
    the broadcast shape of the tensors given.
    """

    is_function: bool = False
    is_method: bool = False
    kinds: set[str] = field(default_factory=set)
    dtypes: dict[int, dict[str, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    whole: dict[int, set[bool]] = field(default_factory=lambda: defaultdict(set))
    broadcasts: set[bool] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def pattern(self) -> str | None:
        """The class of a bare result for float, int and bool inputs, such as ``fii``."""
        return _pattern(self.taken(0), 1) if 0 in self.dtypes else None

    def several(self) -> list[str]:
        """One text for each number of results, such as ``fib iii``: a word for each result."""
        return [_pattern(self.taken(count), count) for count in sorted(self.dtypes) if count]

    def taken(self, count: int) -> dict[str, set[str]]:
        return {letter: seen for letter, seen in self.dtypes[count].items() if letter not in self.refused}


def measured() -> dict[str, Measured]:
    """Every public operator of torch that its own tests have samples for, by its name behind ``torch.``."""
    torch = importlib.import_module("torch")
    operators = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
    found: dict[str, Measured] = defaultdict(Measured)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    for operator in operators:
        names = [n.removeprefix("torch.") for n in (operator.name, *(a.name for a in operator.aliases))]
        into = [found[n] for n in names if _is_public(n) and _place(torch, n, found[n])]
        if into:
            _measure(torch, operator, into)
    return {name: one for name, one in sorted(found.items()) if one.kinds}


def measured_factories(names: list[str]) -> dict[str, str]:
    """Of functions that make a tensor from a size alone, the dtype class as a pattern."""
    torch = importlib.import_module("torch")
    found: dict[str, str] = {}
    for name in names:
        try:
            made = getattr(torch, name)(3)
        except Exception:  # any function of torch may refuse, in any way
            continue
        if isinstance(made, torch.Tensor) and made.dim():
            found[name] = _letter(torch, made.dtype) * len(DTYPES)
    return found


def _is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split(".")) and not name.startswith(("masked.", "ops."))


def _place(torch: Any, name: str, one: Measured) -> bool:
    owner = torch
    for part in name.split("."):
        owner = getattr(owner, part, None)
    one.is_function = owner is not None
    one.is_method = hasattr(torch.Tensor, name)
    return one.is_function or one.is_method


def _measure(torch: Any, operator: Any, into: list[Measured]) -> None:
    for letter, name in DTYPES.items():
        dtype = getattr(torch, name)
        if dtype in operator.dtypes:
            for sample in _samples(torch, operator, dtype):
                _run(torch, operator, letter, sample, into)
                _reduce(torch, operator, sample, into)
        elif dtype is torch.bool and torch.int64 in operator.dtypes:
            # Several operators take a mask though their tests do not try it: cumsum.
            for sample in _samples(torch, operator, torch.int64):
                if isinstance(sample.input, torch.Tensor):
                    _run(torch, operator, letter, sample.transform(lambda value: _as_bool(torch, value)), into)
    for count in [count for count, seen in into[0].whole.items() if seen == {True}]:
        # The samples may be of one dimension only.
        try:
            result = operator.op(*[torch.ones(2, 2, 2)] * count)
        except Exception:  # what the operator refuses cannot speak against it
            continue
        if isinstance(result, torch.Tensor) and result.dim():
            for one in into:
                one.whole[count].add(False)


def _as_bool(torch: Any, value: Any) -> Any:
    return value.bool() if isinstance(value, torch.Tensor) and value.dtype is torch.int64 else value


def _samples(torch: Any, operator: Any, dtype: Any) -> Iterator[Any]:
    for sample in islice(operator.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES):
        sample.kwargs.pop("dtype", None)
        if not any(isinstance(value, torch.dtype) for value in (*sample.args, *sample.kwargs.values())):
            yield sample


def _run(torch: Any, operator: Any, letter: str, sample: Any, into: list[Measured]) -> None:
    given = [sample.input, *sample.args]
    tensors = [value for value in given if isinstance(value, torch.Tensor)]
    shapes = [value.shape for value in tensors]
    try:
        result = operator.op(*given, **sample.kwargs)
    except NotImplementedError:
        for one in into:
            one.refused.add(letter)
        return
    except Exception:  # what the operator refuses says nothing of its results
        return
    several = isinstance(result, (tuple, list)) and all(isinstance(r, torch.Tensor) for r in result)
    results = list(result) if several else [result]
    if not results or not isinstance(results[0], torch.Tensor):
        kind = "python" if isinstance(result, (bool, int, float)) else "other"
        for one in into:
            one.kinds.add(kind)
        return
    letters = "".join(_letter(torch, r.dtype) for r in results)
    for one in into:
        one.kinds.add("tensors" if several else "tensor")
        one.dtypes[len(results) if several else 0][letter].add(letters)
        if tensors and not several:
            one.broadcasts.add(_is_broadcast(torch, shapes, result.shape))


def _reduce(torch: Any, operator: Any, sample: Any, into: list[Measured]) -> None:
    """Runs the sample without what keeps dimensions."""
    given = [sample.input, *sample.args]
    if not all(isinstance(value, torch.Tensor) and value.dim() for value in given):
        return
    options = {key: value for key, value in sample.kwargs.items() if key not in KEEPS_DIMENSIONS}
    try:
        result = operator.op(*given, **options)
    except Exception:  # what the operator refuses says nothing of its results
        return
    results = result if isinstance(result, (tuple, list)) else [result]
    for one in into:
        one.whole[len(given)].add(all(isinstance(r, torch.Tensor) and r.dim() == 0 for r in results))


def _is_broadcast(torch: Any, shapes: list[Any], shape: Any) -> bool:
    try:
        return bool(torch.broadcast_shapes(*shapes) == shape)
    except RuntimeError:
        return False


def _letter(torch: Any, dtype: Any) -> str:
    if dtype.is_floating_point:
        return "f"
    return VARYING if dtype.is_complex else "b" if dtype is torch.bool else "i"


def _pattern(letters: dict[str, set[str]], count: int) -> str:
    columns = []
    for letter in DTYPES:
        seen = letters.get(letter)
        columns.append(UNSUPPORTED * count if not seen else next(iter(seen)) if len(seen) == 1 else VARYING * count)
    return " ".join("".join(word) for word in zip(*columns, strict=True))
