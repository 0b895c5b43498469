"""The results of the functions, methods and attributes of torch and NumPy: the generated tables, and what stubs do not
say; and the names that Dynamo does not trace.

The tables about NumPy are measured: ``tools/measure_numpy.py`` and ``tools/measure_skipped.py``."""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TypeVar

from breakscan.model.words import grouped
from breakscan.rulebook.torch_facts.operators import Operator, measured, operator

T = TypeVar("T")

FLOAT_IN_PRACTICE = frozenset({"linear", "conv1d", "conv2d", "conv3d"})
"""Functions that also take ints, but rarely get them."""
DTYPE_CLASS = {
    **dict.fromkeys(("float", "float16", "float32", "float64", "half", "double", "bfloat16"), "float"),
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "uint8", "long", "short"), "int"),
    "bool": "bool",
}
TENSOR_TYPES = {
    "Tensor": None,
    **dict.fromkeys(("FloatTensor", "HalfTensor", "DoubleTensor", "BFloat16Tensor"), "float"),
    **dict.fromkeys(("LongTensor", "IntTensor", "ShortTensor", "ByteTensor"), "int"),
    "BoolTensor": "bool",
}
FACTORIES = frozenset({"tensor", "as_tensor", "from_numpy", "asarray", "frombuffer", "zeros", "ones", "full", "empty"})


@dataclass(frozen=True, slots=True)
class TorchApi:
    """Names by what they return: ``tensor``, ``tensors``, ``varies`` (either), ``size``, ``python`` or ``other``.

    The keys of ``functions`` are dotted names; those of the tables below it are what stands behind ``torch.``, and for
    methods the bare name.  Ask them by :meth:`dtype_class`, :meth:`result_dtypes` and the like.

    ``dtypes``: the letters of the class of a single result for float, int and bool inputs (``fii``; ``.`` not taken,
    ``-`` differs).  ``several``: the same for functions with more than one result, a word each, and one text for each
    number of results there can be; ``fib*`` for any number of them.  ``several_when``: the arguments that request more
    than one result.  ``fields``: names of the results.  ``whole``: with how many tensors, and nothing that keeps a
    dimension, the result is 0-d.  ``broadcasts``: names whose result has the broadcast shape of the tensors given."""

    version: str
    methods: dict[str, str]
    attributes: dict[str, str]
    functions: dict[str, str]
    modules: frozenset[str]
    modules_with_parameters: frozenset[str]
    dtypes: dict[str, str]
    several: dict[str, list[str]]
    several_when: dict[str, frozenset[str]]
    fields: dict[str, tuple[str, ...]]
    whole: dict[str, frozenset[int]]
    broadcasts: frozenset[str]

    def dtype_class(self, name: str, given: str | None) -> str | None:
        """The dtype class of a single result, where the tensors given have the class ``given``."""
        return _class_in(self.dtypes.get(name, ""), given)

    def result_dtypes(self, name: str, given: str | None, asked: frozenset[str] = frozenset()) -> list[str | None]:
        """The dtype class of each of several results; empty where their number is not known.  ``asked`` are the
        names of the arguments that the call gives."""
        texts = [text for text in self.several.get(name, []) if not text.endswith("*")]
        if len(texts) > 1:
            count = 1 + len(asked & self.several_when.get(name, frozenset()))
            texts = [text for text in texts if text.count(" ") + 1 == count]
        return [_class_in(word, given) for word in texts[0].split()] if texts else []

    def element_dtype(self, name: str, given: str | None) -> str | None:
        """The dtype class that all of several results have."""
        classes = {_class_in(word.rstrip("*"), given) for text in self.several.get(name, []) for word in text.split()}
        return classes.pop() if len(classes) == 1 else None

    def operator(self, name: str) -> Operator | None:
        """The measured facts about a function or method, see :func:`.operator`."""
        return operator(self.version, name)

    def numpy(self, name: str) -> "NumpyFunction | None":
        """The treatment of ``numpy.<name>``; methods of arrays are ``ndarray.<name>``."""
        return _numpy(self.version).get(name)

    @property
    def skipped(self) -> "Skipped":
        """The names that Dynamo does not trace."""
        return skipped(self.version)

    def is_whole(self, name: str, tensors: int) -> bool:
        """True if the result is 0-d where that many tensors are given, and nothing that keeps a dimension."""
        return tensors in self.whole.get(name, ())


KEEPS_DIMENSIONS = frozenset({"dim", "axis", "keepdim", "keepdims", "reduction", "size_average", "reduce"})
"""Arguments without which a function of ``TorchApi.whole`` gives a 0-d result."""
SETS_THE_REDUCTION = frozenset({"reduce", "reduction", "size_average"})
"""Those that are arguments and attributes of loss modules too."""

_LETTERS = {"float": 0, "int": 1, "bool": 2}
_CLASSES = {"f": "float", "i": "int", "b": "bool"}


def _class_in(pattern: str, given: str | None) -> str | None:
    if given is not None and len(pattern) == 3 and pattern[_LETTERS[given]] != ".":
        return _CLASSES.get(pattern[_LETTERS[given]])
    seen = set(pattern) - {"."}
    return _CLASSES.get(seen.pop()) if len(seen) == 1 else None


@cache
def load_api(version: str) -> TorchApi:
    """The facts of a version such as ``2.13``; where it has no table, those of the nearest version before it."""
    data = measured(version)
    functions = {f"torch.{name}": kind for name, kind in _by_name(data["functions"]).items()}
    for namespace, kinds in {**data["namespaces"], "nn.functional": data["functional"]}.items():
        functions |= {f"torch.{namespace}.{name}": kind for name, kind in _by_name(kinds).items()}
    for name in FACTORIES:
        functions[f"torch.{name}"] = "tensor"
    several = grouped((name, text) for text, names in data["dtypes_of_several"].items() for name in names)
    whole: dict[str, frozenset[int]] = {}
    for count, names in data["whole"].items():
        whole |= {name: whole.get(name, frozenset()) | {int(count)} for name in names}
    return TorchApi(
        version=version,
        methods=_by_name(data["methods"]),
        attributes=_by_name(data["attributes"]),
        functions=functions,
        modules=frozenset(f"torch.nn.{name}" for name in data["modules"]["all"]),
        modules_with_parameters=frozenset(f"torch.nn.{name}" for name in data["modules"]["with_parameters"]),
        dtypes=_short_too(_by_name(data["dtypes"])),
        several=_short_too(several),
        several_when={name: frozenset(text.split()) for name, text in _by_name(data["several_when"]).items()},
        fields={name: tuple(text.split()) for name, text in _by_name(data["fields"]).items()},
        whole=_short_too(whole),
        broadcasts=frozenset(_short_too(dict.fromkeys(data["broadcasts"]))),
    )


def _short_too(facts: dict[str, T]) -> dict[str, T]:
    """With the last part of each name as a name too, where it is none yet: a method often does what a function of
    ``torch.nn.functional`` or ``torch.special`` does."""
    return {name.rpartition(".")[2]: fact for name, fact in reversed(facts.items())} | facts


def _by_name(groups: dict[str, list[str]]) -> dict[str, str]:
    return {name: value for value, names in groups.items() for name in names}


class Returned(Enum):
    """The kind of result of a traced call."""

    UNTRACED = "untraced"
    """Nothing: the call breaks the graph."""
    PYTHON = "python"
    ARRAY = "array"
    ARRAYS = "arrays"


class OfNumbers(Enum):
    """The kind of result of a call with Python numbers alone."""

    KNOWN = "k"
    """A number that Dynamo computes while it traces: ``int()`` of it compiles, a test of it does not."""
    READ = "u"
    """A number that is known only when the graph runs."""
    ARRAY = "a"
    UNTRACED = "."


@dataclass(frozen=True, slots=True)
class NumpyFunction:
    """``dtypes`` are the letters of the dtype class of the result for arrays of floats, integers and booleans.
    ``whole`` says that one array gives a number."""

    returned: Returned
    dtypes: str = "..."
    whole: bool = False
    of_integers: OfNumbers = OfNumbers.UNTRACED
    of_floats: OfNumbers = OfNumbers.UNTRACED

    def dtype_class(self, given: str | None) -> str | None:
        """The dtype class of the result for arrays of the class ``given``."""
        letters = set(self.dtypes) - {"."} if given is None else {self.dtypes[_LETTERS[given]]}
        return _CLASSES.get(letters.pop()) if len(letters) == 1 else None


@cache
def _numpy(version: str) -> dict[str, NumpyFunction]:
    groups = measured(version, "numpy")
    return {name: function for text, names in groups.items() for function in [_parsed(text)] for name in names.split()}


def _parsed(text: str) -> NumpyFunction:
    kind, *more = text.split()
    if not more:
        return NumpyFunction(Returned(kind))
    dtypes, whole, numbers = more
    return NumpyFunction(Returned(kind), dtypes, whole == "0", OfNumbers(numbers[0]), OfNumbers(numbers[1]))


@dataclass(frozen=True, slots=True)
class Skipped:
    """``packages`` are skipped as a whole.  ``called`` says of calls of other packages whether each broke the graph."""

    packages: frozenset[str]
    names: frozenset[str]
    called: dict[str, bool]
    called_packages: frozenset[str]

    def by_rule(self, dotted: str) -> bool:
        """True if the rules of Dynamo say that a name is not traced."""
        package, owner = dotted.partition(".")[0], dotted.rpartition(".")[0]
        return package in self.packages or dotted in self.names or owner in self.names

    def in_practice(self, dotted: str) -> bool:
        """True if calls of a name, or of others of its package, were seen to break the graph; but for private ones."""
        return self.called.get(dotted, "._" not in dotted and dotted.partition(".")[0] in self.called_packages)


@cache
def skipped(version: str) -> Skipped:
    """The names that a version such as ``2.13`` does not trace."""
    data = measured(version, "skipped")
    called = data["called"]
    packages = frozenset(name.partition(".")[0] for name in called)
    return Skipped(frozenset(data["packages"]), frozenset(data["names"]), called, packages)
