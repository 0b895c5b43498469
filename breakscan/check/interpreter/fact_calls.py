"""What is known about the result of a torch function or tensor method, from what is known about its arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from breakscan.check.interpreter.values import Constant, PythonValue, Tensor, Unknown, Value, literal_of
from breakscan.model.facts import SCALAR, Dtype, DtypeOf, Exactly, Input, RankBounds, ResultOf, Symbol, TensorFacts
from breakscan.rulebook.torch_facts.not_measured import (
    DIMENSIONS_OF_NEW,
    FILLED_WITH_NUMBERS,
    INPLACE_AT,
    MADE_FROM_SIZES,
    OF_THE_DEFAULT_DTYPE,
    SHAPED_LIKE_THE_ARGUMENT,
)
from breakscan.rulebook.torch_facts.operators import Often, Operator, Shape, operator
from breakscan.rulebook.torch_facts.promotion import SYNONYMS, dtype_class

# Bounds for the number of dimensions of a tensor.


Known = Callable[[ast.expr], "tuple[Value, TensorFacts] | None"]


def named(rank: RankBounds, symbol: Symbol) -> RankBounds:
    """The rank of a value that has a symbol."""
    if rank.most is not None and rank.most == rank.least:
        return rank
    return RankBounds(rank.least, rank.most, rank.over | {symbol}, rank.under | {symbol}, rank.below)


def largest(ranks: Sequence[RankBounds]) -> RankBounds:
    """The rank of a broadcast: that of the operand with the most dimensions."""
    if not ranks:
        return RankBounds()
    sized = [one for one in ranks if one.most != 0] or list(ranks)
    mosts = [one.most for one in ranks if one.most is not None]
    return RankBounds(
        max(one.least for one in ranks),
        max(mosts) if len(mosts) == len(ranks) else None,
        frozenset().union(*(one.over for one in ranks)),
        frozenset.intersection(*(one.under for one in sized)),
        frozenset.intersection(*(one.below for one in sized)),
    )


def with_fewer(base: RankBounds, taken: int | None) -> RankBounds:
    """The rank after some dimensions were taken away: ``taken`` of them, or None for at least one."""
    least = max(base.least - taken, 0) if taken is not None else 0
    most = None if base.most is None else max(base.most - (taken or 1), 0)
    return RankBounds(least, most, frozenset(), base.under, base.below | base.under)


def of_part(base: RankBounds, indices: Sequence[ast.expr], known: Known) -> RankBounds | None:
    """The rank of ``x[indices]``: every number takes one dimension away, a slice none."""
    taken = 0
    for index in indices:
        if isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value is ...):
            continue
        found = known(index)
        if found is None or not isinstance(found[0], PythonValue) or isinstance(literal_of(found[0]), bool | str):
            return None
        if isinstance(found[0], Constant) and not isinstance(found[0].literal, int):
            return None
        taken += 1
    return with_fewer(base, taken) if taken else base


def of_sizes(sizes: Sequence[ast.expr], known: Known) -> RankBounds | None:
    """The rank of a tensor with the sizes that a call gives: ``view(2, -1)``, ``zeros((2, 3))``, ``zeros(x.shape)``."""
    if any(isinstance(size, ast.Starred) for size in sizes) or not sizes:
        return None
    if len(sizes) > 1:
        return RankBounds(len(sizes), len(sizes))
    size = sizes[0]
    if isinstance(size, ast.Tuple | ast.List):
        return (
            None
            if any(isinstance(one, ast.Starred) for one in size.elts)
            else RankBounds(len(size.elts), len(size.elts))
        )
    owner = size.func if isinstance(size, ast.Call) and not size.args else size
    if isinstance(owner, ast.Attribute) and owner.attr == ("size" if isinstance(size, ast.Call) else "shape"):
        of = known(owner.value)
        return of[1].rank if of is not None and isinstance(of[0], Tensor) else None
    found = known(size)
    if found is not None and isinstance(literal_of(found[0]), int):
        return RankBounds(1, 1)
    return None


def of_method(name: str, node: ast.Call, base: RankBounds, known: Known) -> RankBounds | None:
    """The rank of the result of a method that is asked for sizes or dimensions."""
    keywords = {keyword.arg for keyword in node.keywords}
    if name in ("view", "reshape"):
        return None if keywords else of_sizes(node.args, known)
    if name in ("flatten", "ravel"):
        return None if node.args or keywords else RankBounds(1, 1)
    if name in SHAPED_LIKE_THE_ARGUMENT and len(node.args) == 1:
        other = known(node.args[0])
        return other[1].rank if other is not None else None
    if name == "expand" and not keywords:
        return RankBounds(max(base.least, len(node.args)), None, base.over)
    if name == "unsqueeze":
        return RankBounds(base.least + 1, None if base.most is None else base.most + 1, base.over)
    if name == "squeeze":
        return RankBounds(0, base.most, frozenset(), base.under, base.below)
    if name.startswith("new_"):
        return of_sizes(node.args[:1] if name == "new_full" else node.args, known)
    return None


def of_factory(name: str, node: ast.Call, known: Known) -> RankBounds | None:
    """The rank of a tensor that a function makes from sizes or numbers."""
    if name in DIMENSIONS_OF_NEW:
        return RankBounds(DIMENSIONS_OF_NEW[name], DIMENSIONS_OF_NEW[name])
    by_name = [keyword.value for keyword in node.keywords if keyword.arg == "size"]
    if name in MADE_FROM_SIZES:
        return of_sizes(by_name or (node.args[:1] if name == "full" else node.args), known)
    return None


@dataclass(slots=True)
class Given:
    """One argument: its expression, its value, and what is known about it."""

    node: ast.expr
    value: Value
    facts: TensorFacts


@dataclass(slots=True)
class TorchCall:
    """A call of a torch function or tensor method.  ``given`` starts with the tensor of a method."""

    name: str
    node: ast.Call
    method: bool
    given: tuple[Given, ...]
    named: dict[str, Given]
    known: Known
    version: str
    asked_dtype: Dtype | None = None
    asked_device: Symbol | None = None
    reshaped: Callable[[], frozenset[Symbol]] | None = None
    """Gives the shape of the result where nothing but the shape of the only tensor and the other arguments decides it:
    few calls need it."""


def result(call: TorchCall, leaf: TensorFacts) -> TensorFacts:
    """The facts about the result.  ``leaf`` are those of a value of which nothing is known."""
    if "out" in call.named:
        return leaf
    if call.name in _CONVERSIONS:
        return _converted(call, leaf)
    known = operator(call.version, call.name)
    tensors = _tensors(call, known)
    new = _makes_new(call, known)
    return TensorFacts(
        call.asked_dtype or _dtype(call, known, leaf),
        _shape(call, known, tensors, leaf),
        _rank(call, known, tensors, leaf),
        made(leaf) if new else _storage(known, tensors, leaf),
        call.asked_device or _device(tensors, leaf),
        _layout(call, known, tensors, leaf),
        _requires_grad(call, known, tensors),
        new,
    )


def is_number(facts: TensorFacts) -> bool:
    """Whether they are the facts of a Python number."""
    return isinstance(facts.dtype, DtypeOf | Exactly) and facts.dtype.number is True


def _tensors(call: TorchCall, known: Operator | None) -> list[Given]:
    """The arguments that are tensors, and the operands that may be."""
    promoted = () if known is None else known.promotes or ()
    operands = [one for place, one in enumerate(call.given) if place in promoted]
    operands += [one for name, one in call.named.items() if name in _OPERANDS]
    may_be = [one for one in operands if isinstance(one.value, Unknown) and not is_number(one.facts)]
    return [one for one in (*call.given, *call.named.values()) if isinstance(one.value, Tensor) or one in may_be]


_CONVERSIONS = frozenset({"to", "type", "type_as"})
"""Methods whose arguments say what the dtype and the device become."""


def _dtype(call: TorchCall, known: Operator | None, leaf: TensorFacts) -> Dtype:
    if not call.method and call.name in OF_THE_DEFAULT_DTYPE:
        return Exactly("default")
    if not call.method and call.name in FILLED_WITH_NUMBERS:
        return _filled(call) or leaf.dtype
    if known is None or known.result not in ("tensor", "varies"):
        return leaf.dtype
    given = [*call.given, *(one for name, one in call.named.items() if name in _OPERANDS)]
    places = (0,) if known.promotes is None and len(given) == 1 else known.promotes or ()
    chosen = [given[position] for position in places if position < len(given)]
    if not chosen:
        return leaf.dtype
    return ResultOf(call.name, tuple(Input(one.facts.dtype, one.facts.shape) for one in chosen))


_OPERANDS = ("input", "other", "min", "max", "value", "end", "weight", "exponent")


def _filled(call: TorchCall) -> Dtype | None:
    """``torch.tensor(0.0)``, ``torch.full(size, 0.0)``, ``torch.arange(n)``."""
    numbers = [literal_of(one.value) for one in (call.given[1:2] if call.name == "full" else call.given)]
    if not numbers or any(type(number) not in (int, float, bool) for number in numbers):
        return None
    if any(isinstance(number, float) for number in numbers):
        return Exactly("default")
    return Exactly("bool" if isinstance(numbers[0], bool) else "int64")


def _converted(call: TorchCall, leaf: TensorFacts) -> TensorFacts:
    """``x.to(other)``, ``x.to(dtype)``, ``x.to(device=..., dtype=...)``, ``x.type_as(other)``."""
    if not call.method or not call.given:
        return leaf
    of = call.given[0].facts
    dtype: Dtype = call.asked_dtype or of.dtype
    device = call.asked_device or of.device
    others = call.given[1:]
    unclear = False
    for other in others:
        if isinstance(other.value, Tensor):
            dtype, device = other.facts.dtype, other.facts.device
        elif isinstance(literal_of(other.value), str) and call.name == "to":
            device = other.facts.device
        elif isinstance(asked := dtype_asked(other), DtypeOf | Exactly | ResultOf):
            dtype = asked
        elif is_device(other.node):
            device = other.facts.device
        elif not isinstance(literal_of(other.value), bool):
            unclear = True
    if unclear or (call.named.keys() - {"dtype", "device", "non_blocking", "copy", "memory_format"}):
        return TensorFacts(leaf.dtype, of.shape, of.rank, of.storage | leaf.storage, leaf.device, leaf.layout, None)
    requires_grad = False if of.requires_grad is False else None
    layout = leaf.layout if "memory_format" in call.named else of.layout
    return TensorFacts(dtype, of.shape, of.rank, of.storage, device, layout, requires_grad)


def is_device(node: ast.expr) -> bool:
    """Whether an expression is a device, by its name."""
    return (isinstance(node, ast.Attribute) and node.attr == "device") or (
        isinstance(node, ast.Name) and node.id == "device"
    )


def dtype_asked(given: Given) -> Dtype | None:
    """The dtype that an argument asks for: ``torch.float16``, ``x.dtype``, a name that holds one of these."""
    if isinstance(given.facts.dtype, Exactly) and not given.facts.dtype.number:
        return given.facts.dtype
    if isinstance(given.node, ast.Attribute) and given.node.attr == "dtype":
        return given.facts.dtype
    if isinstance(given.node, ast.Name) and "dtype" in given.node.id:
        return given.facts.dtype
    return None


def exact_dtype(dotted: str) -> Exactly | None:
    """The dtype of a dotted name such as ``torch.half``."""
    if not dotted.startswith("torch."):
        return None
    name = dotted.rpartition(".")[2]
    name = SYNONYMS.get(name, name)
    return Exactly(name) if dtype_class(name) is not None else None


def _shape(call: TorchCall, known: Operator | None, tensors: Sequence[Given], leaf: TensorFacts) -> frozenset[Symbol]:
    for rule in _rules(call, known):
        if rule is Shape.FIRST and tensors:
            return tensors[0].facts.shape
        if rule is Shape.BROADCAST and tensors:
            return frozenset().union(*(one.facts.shape for one in tensors))
        if rule is Shape.ZERO_DIM:
            return frozenset()
    decided = known is not None and known.reads_values is Often.NEVER and len(tensors) == 1
    return call.reshaped() if decided and call.reshaped is not None else leaf.shape


def _rules(call: TorchCall, known: Operator | None) -> list[Shape]:
    """The rules for the shape of the result, the most exact first."""
    if known is None:
        return []
    plain = not call.named and all(isinstance(one.value, Tensor) for one in call.given)
    found = known.plain_shapes if plain and known.plain_shapes is not None else known.shapes
    return [rule for rule in _ORDER if rule in (found or ())]


_ORDER = (
    *(Shape.ZERO_DIM, Shape.BROADCAST, Shape.FIRST, Shape.ONE_DIM),
    *(Shape.RANK_OF_FIRST, Shape.RANK_OF_BROADCAST),
)


def _rank(call: TorchCall, known: Operator | None, tensors: Sequence[Given], leaf: TensorFacts) -> RankBounds:
    for rule in _rules(call, known):
        if rule is Shape.ZERO_DIM:
            return SCALAR
        if rule is Shape.ONE_DIM:
            return RankBounds(1, 1)
        if rule in (Shape.FIRST, Shape.RANK_OF_FIRST) and tensors:
            return tensors[0].facts.rank
        if tensors:
            return named(largest([one.facts.rank for one in tensors]), leaf.device)
    if not call.method:
        return of_factory(call.name, call.node, call.known) or leaf.rank
    base = call.given[0].facts.rank
    found = of_method(call.name, call.node, base, call.known)
    if found is None and known is not None and Shape.ZERO_DIM in (known.plain_shapes or ()):
        dims = len(call.given) - 1 + len(call.named)
        found = with_fewer(base, None) if dims == 1 and "keepdim" not in call.named else None
    return named(found, leaf.device) if found is not None else leaf.rank


def _makes_new(call: TorchCall, known: Operator | None) -> bool:
    """Whether the result is a new tensor, with storage of its own."""
    if not call.method and call.name in OF_THE_DEFAULT_DTYPE | (FILLED_WITH_NUMBERS - {"as_tensor"}):
        return True
    flag = INPLACE_AT.get(call.name.removeprefix("nn.functional."))
    if known is None or "inplace" in call.named or (flag is not None and len(call.given) > flag):
        return False
    return known.shares_storage is Often.NEVER and known.returns_input is Often.NEVER


def _storage(known: Operator | None, tensors: Sequence[Given], leaf: TensorFacts) -> frozenset[Symbol]:
    """The values whose storage the result may share."""
    if known is None or known.shares_storage is None or known.returns_input is None or not tensors:
        return leaf.storage
    return frozenset().union(*(one.facts.storage for one in tensors))


def made(leaf: TensorFacts) -> frozenset[Symbol]:
    """The storage of a tensor that is made here."""
    return frozenset({Symbol(leaf.device.name, leaf.device.at, new=True)})


def _device(tensors: Sequence[Given], leaf: TensorFacts) -> Symbol:
    devices = {one.facts.device for one in tensors}
    return devices.pop() if len(devices) == 1 else leaf.device


def _layout(call: TorchCall, known: Operator | None, tensors: Sequence[Given], leaf: TensorFacts) -> Symbol:
    layouts = {one.facts.layout for one in tensors if one.facts.shape}
    kept = known is not None and known.keeps_layout and "memory_format" not in call.named
    return layouts.pop() if kept and len(layouts) == 1 else leaf.layout


def _requires_grad(call: TorchCall, known: Operator | None, tensors: Sequence[Given]) -> bool | None:
    """Whether the result requires a gradient; what is no operator, such as a module, may have parameters."""
    without = known is not None and bool(tensors) and all(one.facts.requires_grad is False for one in tensors)
    if call.name == "detach" or without:
        return False
    made_here = not tensors and not call.method and call.name in OF_THE_DEFAULT_DTYPE | FILLED_WITH_NUMBERS
    return False if made_here and "requires_grad" not in call.named else None
