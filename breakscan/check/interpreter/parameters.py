"""The values of a function's parameters: by annotation, by default, by use in the body, and as a run recorded them."""

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from breakscan.check.interpreter import values as av
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.model.findings import Condition, ConditionKind
from breakscan.model.observations import NONE as NONE_TYPE
from breakscan.model.observations import FunctionSeen, TensorSeen, ValueSeen
from breakscan.rulebook.torch_facts.not_measured import COMMON_METHODS, TAKES_TENSOR_FIRST, TELLING_ATTRIBUTES
from breakscan.rulebook.torch_facts.table import DTYPE_CLASS, TENSOR_TYPES, TorchApi
from breakscan.source.walking import is_name, walk

_CONSTANT_TYPES = {"int", "float", "bool", "str", "bytes", "complex", "torch.dtype", "torch.device", "torch.layout"}
_SEQUENCES = {"list", "List", "Sequence", "Iterable", "Iterator", "Collection", "set", "Set", "deque"}
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"}


def annotated_value(index: ModuleIndex, node: ast.expr | None) -> av.Value:
    """The value that an annotation promises; unknown where it promises nothing of use."""
    if node is None:
        return av.UNKNOWN
    if isinstance(node, ast.Constant):
        if node.value is None:
            return av.NONE
        if isinstance(node.value, str):
            try:
                return annotated_value(index, ast.parse(node.value, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return av.UNKNOWN
        return av.UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([annotated_value(index, node.left), annotated_value(index, node.right)])
    if isinstance(node, ast.Subscript):
        return _generic(index, node)
    dotted = index.dotted(node)
    return _plain(index, dotted) if dotted else av.UNKNOWN


def _plain(index: ModuleIndex, dotted: str) -> av.Value:
    last = dotted.rsplit(".", 1)[-1]
    if last in TENSOR_TYPES and (dotted == last or dotted.startswith("torch.")):
        return av.Tensor(dtype=TENSOR_TYPES[last])
    if dotted == "torch.nn.Parameter":
        return av.Tensor(parameter=True)
    if dotted == "torch.Size":
        return av.Size()
    if dotted in _CONSTANT_TYPES:
        return av.CONSTANT
    if dotted in (LOGGER, GENERATOR) or dotted.startswith(("torch.optim.", "torch.nn.attention.")):
        return av.Instance(name=dotted)
    if dotted.startswith("torch.nn."):
        return av.Module(name=dotted)
    owner = index.class_named(dotted)
    is_concrete = owner is not None and "typing.Protocol" not in owner.bases
    return av.instance_of(owner) if is_concrete and owner is not None else _alias(index, dotted)


def _alias(index: ModuleIndex, dotted: str) -> av.Value:
    """The type that a name at the top level of a file is an alias of: ``OptTensor = Optional[Tensor]``."""
    found = index.global_named(dotted)
    if found is None:
        return av.UNKNOWN
    home, name = found.index, found.name

    def read() -> av.Value:
        for node in home.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(is_name(target, name) for target in targets):
                return annotated_value(home, getattr(node, "value", None))
        return av.UNKNOWN

    # An alias that refers to itself, as ``Json = list["Json"]`` does, is unknown inside itself.
    return index.project.once(("alias", home, name), home, read) or av.UNKNOWN


def _generic(index: ModuleIndex, node: ast.Subscript) -> av.Value:
    base = (index.dotted(node.value) or "").rsplit(".", 1)[-1]
    arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if base == "Optional":
        return _union([annotated_value(index, arguments[0]), av.NONE])
    if base == "Union":
        return _union([annotated_value(index, argument) for argument in arguments])
    if base in ("Annotated", "Final", "ClassVar", "Required", "NotRequired"):
        return annotated_value(index, arguments[0])
    if base == "Literal":
        return av.CONSTANT
    if base in ("tuple", "Tuple"):
        if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is ...:
            return av.container_of(annotated_value(index, arguments[0]))
        return av.container([annotated_value(index, argument) for argument in arguments])
    if base in _SEQUENCES:
        return av.container_of(annotated_value(index, arguments[0]))
    if base in _MAPPINGS and len(arguments) == 2:
        return av.container_of(annotated_value(index, arguments[1]), mapping=True)
    return av.UNKNOWN


def _union(values: list[av.Value]) -> av.Value:
    known = [value for value in values if not isinstance(value, av.NoneValue)]
    if not known:
        return av.NONE
    result = av.join_all(known)
    if isinstance(result, av.Tensor) and not all(isinstance(value, av.Tensor) for value in known):
        result = replace(result, optional=Condition(ConditionKind.TENSOR, ""))
    return replace(result, maybe_none=True) if len(known) < len(values) else result


LOGGER = "logging.Logger"
GENERATOR = "torch.Generator"


def makes_logger(dotted: str | None) -> bool:
    """True if a function of this name gives a logger: that of the standard library, or one that is called like it."""
    return (dotted or "").rpartition(".")[2] in ("getLogger", "get_logger")


def _is_mask(node: ast.expr) -> bool:
    """True if it compares, element by element if the names are tensors."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_mask(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        return _is_mask(node.left) and _is_mask(node.right)
    plain = ast.In | ast.NotIn | ast.Is | ast.IsNot
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and not isinstance(node.ops[0], plain)


def compares_attribute(node: ast.expr) -> bool:
    """True if a mask compares an attribute, joins comparisons, or is inverted: no index of a list is written so."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    return _is_mask(node) and (isinstance(node, ast.BinOp) or isinstance(getattr(node, "left", None), ast.Attribute))


def _sides(node: ast.expr) -> set[str]:
    """The names on the left sides of comparisons: the right side is often a number."""
    if isinstance(node, ast.UnaryOp):
        return _sides(node.operand)
    if isinstance(node, ast.BinOp):
        return _sides(node.left) | _sides(node.right)
    return {node.left.id} if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) else set()


# Uses that speak against a tensor.
_CONTRARY = frozenset("items keys values get append extend startswith endswith lower upper format config".split())

_NAMES_OF_SIZES = ("size", "shape", "sizes", "shapes")
_NAMES_OF_COUNTS = ("lengths", "lens")
"""Of tensors with a number for each row."""


def parameter_values(api: TorchApi, info: FunctionInfo, *, entry: bool, compiled: bool) -> dict[str, av.Value]:
    """A value for every parameter but ``self``. ``entry`` marks where the compiler starts, so nothing is known from
    callers: an optional parameter then carries the condition that it is given. ``compiled`` marks a function that is
    handed to the compiler itself, or a ``forward``: its first parameter is taken for a tensor if nothing speaks against
    it."""
    arguments = info.node.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    ordered = ordered[1:] if info.receiver else ordered
    defaults = info.defaults
    evidence = partial(_evidence, api, info)
    index = info.index
    values = {
        # Further parameters are as often flags, sizes and modules as tensors.
        a.arg: _parameter(index, evidence, a, defaults.get(a.arg), entry, compiled and a in ordered[:1])
        for a in [*ordered, *arguments.kwonlyargs]
    }
    if arguments.vararg:
        values[arguments.vararg.arg] = av.container_of(annotated_value(index, arguments.vararg.annotation))
    if arguments.kwarg:
        element = annotated_value(index, arguments.kwarg.annotation)
        values[arguments.kwarg.arg] = av.Container(mapping=True, element=element)
    return values


def promises_number(info: FunctionInfo, name: str) -> bool:
    """True if an annotation, or a default of True or False, says that a parameter is a number or a size."""
    default = info.defaults.get(name)
    if isinstance(default, ast.Constant) and isinstance(default.value, bool):
        return True
    argument = info.argument(name)
    annotation = argument.annotation if argument is not None else None
    return isinstance(annotated_value(info.index, annotation), av.Constant | av.Size)


def _parameter(
    index: ModuleIndex,
    evidence: "Callable[[], _Evidence]",
    argument: ast.arg,
    default: ast.expr | None,
    entry: bool,
    compiled: bool,
) -> av.Value:
    name = argument.arg
    value = annotated_value(index, argument.annotation)
    if isinstance(value, av.Unknown) and (argument.annotation is None or evidence().uses(name)):
        value = _unannotated(evidence, name, default, compiled)
    text = index.module.text
    is_int = isinstance(argument.annotation, ast.Name) and argument.annotation.id == "int"  # a size, mostly
    may_ask = isinstance(value, av.Constant) and not is_int and ("is_tensor(" in text or "Tensor)" in text)
    if may_ask and name in evidence().asked:
        value = av.UNKNOWN  # the default or the annotation is a number, and tensors are taken as well
    if isinstance(value, av.Unknown) and isinstance(default, ast.Call) and makes_logger(index.dotted(default.func)):
        value = av.Instance(av.Sure.LIKELY, name=LOGGER)
    if isinstance(value, av.Tensor) and value.dtype is None and "~" in text and name in evidence().masks:
        value = replace(av.at_most(value, av.Sure.LIKELY), dtype="bool")
    if isinstance(value, av.Tensor) and name.endswith(_NAMES_OF_SIZES):
        value = av.at_most(value, av.Sure.LIKELY)  # sizes are given as often, whatever the annotation says
    if isinstance(value, av.Tensor) and name.endswith(_NAMES_OF_COUNTS):
        value = replace(av.at_most(value, av.Sure.LIKELY), one_dim=True)
    if value.optional:
        value = replace(value, optional=Condition(ConditionKind.TENSOR, name))
    if name == "generator" and isinstance(value, av.Unknown | av.NoneValue | av.Instance):
        is_left_out = isinstance(default, ast.Constant) and default.value is None
        given = Condition(ConditionKind.GIVEN, name) if is_left_out else None
        value = av.Instance(av.Sure.LIKELY, is_left_out, given, name=GENERATOR)
    if isinstance(default, ast.Constant) and isinstance(default.value, bool):
        value = av.CONSTANT  # a flag, whatever its annotation says
    return _with_default(name, value, default) if entry and isinstance(default, ast.Constant) else value


def _with_default(name: str, value: av.Value, default: ast.Constant) -> av.Value:
    """A parameter of a function that is passed to the compiler, whose arguments are unknown."""
    if default.value is None:
        given = Condition(ConditionKind.GIVEN, name)
        if isinstance(value, av.NoneValue):
            return replace(av.UNKNOWN, optional=given)
        return replace(value, maybe_none=True, optional=given)
    if isinstance(default.value, bool) and isinstance(value, av.Constant | av.Unknown):
        return replace(av.CONSTANT, optional=Condition(ConditionKind.FLAG, name, not default.value))
    if isinstance(default.value, str | int | float) and isinstance(value, av.Constant):
        return replace(value, literal=default.value, by_default=True)
    return value


def _unannotated(look: "Callable[[], _Evidence]", name: str, default: ast.expr | None, compiled: bool) -> av.Value:
    if isinstance(default, ast.Constant) and default.value is not None:
        return av.CONSTANT
    if isinstance(default, ast.Tuple | ast.List | ast.Dict | ast.UnaryOp):
        return av.CONSTANT
    evidence = look()
    if name in evidence.doubted and name not in evidence.tensors:
        return av.UNKNOWN
    if evidence.uses(name) or (compiled and default is None and not name.endswith(_NAMES_OF_SIZES)):
        return av.Tensor(av.Sure.LIKELY, dtype="bool" if name in evidence.masks else None)
    return av.NONE if isinstance(default, ast.Constant) else av.UNKNOWN


def used_as_tensor(api: TorchApi, info: FunctionInfo, name: str) -> bool:
    """True if all that a function does with one of its names is what is done with tensors."""
    evidence = _evidence(api, info)
    return evidence.uses(name) and name not in evidence.doubted


def may_be_tensor(api: TorchApi, info: FunctionInfo, name: str) -> bool:
    """True if a function asks whether one of its names is a tensor."""
    return name in _evidence(api, info).asked


def _evidence(api: TorchApi, info: FunctionInfo) -> "_Evidence":
    if info.evidence is None:
        info.evidence = _Evidence(api, info)
    assert isinstance(info.evidence, _Evidence)
    return info.evidence


class _Evidence:
    """The uses of names in the body of a function."""

    def __init__(self, api: TorchApi, info: FunctionInfo) -> None:
        self.tensors: set[str] = set()
        self.doubted: set[str] = set()
        """Names that are used as a tensor hardly is."""
        self.masks: set[str] = set()
        """Names that are used as only a tensor of booleans can be."""
        self.asked: set[str] = set()
        """Names of which the function asks whether they are tensors."""
        self._keys: set[tuple[str, str]] = set()
        """Names, and the expressions that they are indexed with."""
        self._index = info.index
        self._api = api
        self._called = {call.func for call in info.own_calls}
        self._compared: dict[str, set[str]] = {}
        """Names that hold a comparison, each with the names that are compared there."""
        self._indexed: list[tuple[ast.expr, ast.expr]] = []
        readers = {
            ast.Attribute: self._attribute,
            ast.Call: self._call,
            ast.Subscript: self._subscript,
            ast.Slice: self._slice,
            ast.Compare: self._compare,
            ast.UnaryOp: self._invert,
            ast.If: self._test,
            ast.While: self._test,
            ast.IfExp: self._test,
            ast.Assign: self._assign,
        }
        for inner in info.own_nodes:
            reader = readers.get(inner.__class__)
            if reader is not None:
                reader(inner)  # type: ignore[operator]
        for node in info.own_nodes:
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                asked = node.comparators[0]  # `key in info`, then `info[key]`: a dictionary
                if isinstance(asked, ast.Name) and (asked.id, ast.unparse(node.left)) in self._keys:
                    self._speak_against(asked)
        self._masked()

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and _is_mask(node.value):
            self._compared.setdefault(node.targets[0].id, set()).update(_sides(node.value))

    def _masked(self) -> None:
        """``keep = target != -100`` and ``logits[keep]`` show that both are tensors: no list gives or takes a mask."""
        for owner, index in self._indexed:
            if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
                index = index.operand
            if _is_mask(index):
                compared = _sides(index)
            elif isinstance(index, ast.Name) and index.id in self._compared:
                compared = self._compared[index.id] | {index.id}
            else:
                continue
            self.tensors |= compared | ({owner.id} if isinstance(owner, ast.Name) else set())

    def _invert(self, node: ast.UnaryOp) -> None:
        """``x[~m]``: nothing else is sensibly inverted than a mask."""
        if isinstance(node.op, ast.Invert) and isinstance(node.operand, ast.Name):
            self.masks.add(node.operand.id)

    def _subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            self._speak_against(node.value)
        elif isinstance(node.slice, ast.Name | ast.Compare | ast.BinOp | ast.UnaryOp):
            self._indexed.append((node.value, node.slice))
        elif isinstance(node.value, ast.Name):
            # No list or dict is indexed as `x[..., 0]` and `x[:, None]` are.
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            if any(isinstance(part, ast.Slice) or getattr(part, "value", None) is ... for part in parts):
                self.tensors.add(node.value.id)
        if isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Name | ast.Attribute):
            self._keys.add((node.value.id, ast.unparse(node.slice)))

    def _slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper, node.step):
            self._speak_against(bound)

    def _attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            is_own_method = node.attr in self._api.methods and node.attr not in COMMON_METHODS and node in self._called
            if node.attr in _CONTRARY:
                self.doubted.add(node.value.id)
            elif node.attr in TELLING_ATTRIBUTES or is_own_method:
                self.tensors.add(node.value.id)

    def _call(self, node: ast.Call) -> None:
        self._speak_against(node.func)
        if not node.args:
            return
        dotted = self._index.dotted(node.func) or ""
        if dotted == "torch.is_tensor" or (dotted == "isinstance" and self._asks_for_tensor(node)):
            self.asked.add(ast.unparse(node.args[0]))
        if dotted in ("range", "int", "isinstance") and not self._asks_for_tensor(node):
            self._speak_against(node.args[0])
        elif dotted.rsplit(".", 1)[-1] in ("range", "arange"):
            for name in (inner for argument in node.args for inner in walk(argument)):
                if isinstance(name, ast.Name):
                    self._speak_against(name)
        elif dotted.startswith("torch.") and dotted.rsplit(".", 1)[-1] in TAKES_TENSOR_FIRST:
            given = node.args[0]  # a name, or a call of one: what that returns is a tensor
            named, call = (given.func, "()") if isinstance(given, ast.Call) else (given, "")
            self.tensors |= {f"{named.id}{call}"} if isinstance(named, ast.Name) else set()

    def _asks_for_tensor(self, node: ast.Call) -> bool:
        return len(node.args) == 2 and "Tensor" in ast.unparse(node.args[1])

    def _compare(self, node: ast.Compare) -> None:
        """Comparing with a literal or a size speaks for a Python value."""
        if any(isinstance(c, ast.Constant) and c.value is not None for c in node.comparators):
            self._speak_against(node.left)
        sides = [node.left, *node.comparators]
        if any(_is_size(side) for side in sides):
            for side in sides:
                self._speak_against(side)

    def _test(self, node: ast.If | ast.While | ast.IfExp) -> None:
        """A bare name that is tested is a flag: hardly anybody tests a tensor so."""
        test = node.test
        if isinstance(test, ast.UnaryOp):
            test = test.operand
        for operand in test.values if isinstance(test, ast.BoolOp) else [test]:
            self._speak_against(operand)

    def _speak_against(self, node: ast.expr | None) -> None:
        if isinstance(node, ast.Name):
            self.doubted.add(node.id)

    def uses(self, name: str) -> bool:
        """True if the name is used as only a tensor can be."""
        return name in self.tensors or name in self.masks


def _is_size(node: ast.expr) -> bool:
    """``x.shape[k]``, ``x.ndim``, ``len(x)``, ``x.size(k)``."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        node = node.func
        return is_name(node, "len") or (isinstance(node, ast.Attribute) and node.attr == "size")
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "ndim")


# The values of names in a recorded run.
_PYTHON = frozenset({"bool", "int", "float", "str"})
_TELLING = frozenset({"bool", "str", "float"})
"""Integers are sizes and counts as often as settings: another run has others."""
SETTING_UP = frozenset({"__init__", "__post_init__"})
_PARAMETER = "torch.nn.parameter.Parameter"
_MODULES = "torch.nn.modules."


def seen_of(info: FunctionInfo) -> FunctionSeen | None:
    return info.index.project.seen_in(info.index).get(info.qualname)


def observed_parameters(info: FunctionInfo) -> dict[str, av.Value]:
    """The observed values of the names that a function starts with: its parameters, and those of the outer function."""
    seen = seen_of(info)
    if seen is None:
        return {}
    found = ((name, observed_value(value, info.index)) for name, value in seen.names.items())
    return {name: value for name, value in found if value is not None}


def seen_attribute(info: FunctionInfo, seen: FunctionSeen, node: ast.Attribute) -> ValueSeen | None:
    """The observed value of an attribute of a method's object, or of an object that it holds: ``self.config.flag``. It
    is the value at the start of the method: what some function sets later is left out."""
    path: list[str] = []
    owner: ast.expr = node
    while isinstance(owner, ast.Attribute):
        path.append(owner.attr)
        owner = owner.value
    known = seen.names.get(owner.id) if isinstance(owner, ast.Name) and owner.id == info.receiver else None
    if known is None or not _set_later(info).isdisjoint(path):
        return None
    while known is not None and path:
        known = known.entries.get(path.pop())
    return known


def _set_later(info: FunctionInfo) -> frozenset[str]:
    """The attributes that functions of the file, and of the files of its base classes, set after an object is made."""
    project = info.index.project
    assert info.owner is not None
    indices = {info.index, *(base.index for base in project.bases_of(info.owner))}
    return frozenset().union(*(project.once("set later", index, partial(_set_in, index)) for index in indices))


def _set_in(index: ModuleIndex) -> frozenset[str]:
    functions = (info for info in index.all_functions.values() if info.name not in SETTING_UP)
    return frozenset().union(*(info.stored_attributes for info in functions))


def observed_value(seen: ValueSeen, index: ModuleIndex) -> av.Value | None:
    """The value that a name had in all calls that were seen; None where they differ in kind or are unknown."""
    types = frozenset(seen.types) - {NONE_TYPE}
    if not types:
        return av.NONE if seen.types else None
    value = _of_types(types, seen, index)
    return value if value is None or len(types) == len(seen.types) else replace(value, maybe_none=True)


def _of_types(types: frozenset[str], seen: ValueSeen, index: ModuleIndex) -> av.Value | None:
    if seen.tensor is not None:
        return _tensor(types, seen.tensor)
    if types <= _PYTHON:
        return _constant(types, seen)
    if len(types) > 1:
        return None
    (name,) = types
    if name in ("list", "tuple"):
        if seen.items is None:
            return None
        return av.Container(elements=tuple(observed_value(item, index) or av.UNKNOWN for item in seen.items))
    if name == "dict":
        keys = ((key, observed_value(item, index) or av.UNKNOWN) for key, item in seen.entries.items())
        return av.Container(mapping=True, keys=tuple(sorted(keys, key=lambda entry: entry[0])))
    if name.startswith(_MODULES):
        return av.Module(name=f"torch.nn.{name.rpartition('.')[2]}")
    owner = index.class_named(name.removeprefix("__main__.").removeprefix(f"{index.name}."))
    return av.instance_of(owner) if owner is not None else None


def _tensor(types: frozenset[str], seen: TensorSeen) -> av.Tensor | None:
    if not all(name == _PARAMETER or name.startswith("torch.") for name in types):
        return None
    classes = {DTYPE_CLASS.get(dtype) for dtype in seen.dtypes}
    zero_dim = {rank == 0 for rank in seen.ranks}
    return av.Tensor(
        av.Sure.CERTAIN,
        dtype=classes.pop() if len(classes) == 1 else None,
        zero_dim=zero_dim.pop() if len(zero_dim) == 1 else None,
        one_dim=seen.ranks == (1,),
        parameter=types == {_PARAMETER},
    )


def _constant(types: frozenset[str], seen: ValueSeen) -> av.Constant | None:
    if seen.texts is None:
        # A number that is traced as a symbol may come out of a tensor.
        return None
    if len(seen.texts) != 1 or not types <= _TELLING:
        return av.CONSTANT
    try:
        literal = ast.literal_eval(seen.texts[0])
    except (ValueError, SyntaxError):  # ``nan`` and ``inf``
        return av.CONSTANT
    return av.Constant(literal=literal) if isinstance(literal, bool | str | float) else av.CONSTANT


def as_observed(value: av.Value, seen: av.Value) -> av.Value:
    """The value that the code shows, with what a run saw.  What the code proves stays: it may have changed since."""
    if isinstance(value, av.Container) and (value.elements or value.keys) and value.sure is av.Sure.CERTAIN:
        return value
    if isinstance(value, av.Tensor):
        if not isinstance(seen, av.Tensor):
            return value if value.sure is av.Sure.CERTAIN else seen
        if value.dtype and seen.dtype and value.dtype != seen.dtype and value.sure is av.Sure.CERTAIN:
            return value
        return replace(
            seen,
            intermediate=value.intermediate,
            array=value.array,
            parameter=value.parameter or seen.parameter,
            zero_dim=seen.zero_dim if value.zero_dim is None else value.zero_dim,
        )
    if isinstance(value, av.PythonValue) and isinstance(seen, av.Constant):
        is_open = isinstance(value, av.Constant) and (value.literal is None or value.by_default)
        return seen if is_open and seen.literal is not None else value
    vague = isinstance(value, av.Unknown | av.Namespace | av.NoneValue | av.PythonValue)
    return seen if vague or isinstance(seen, av.Tensor | av.NoneValue) else value
