"""Tests: what is known of them while Dynamo traces, what they narrow, and the conditions that their outcomes are."""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.signatures import none_test_subject
from breakscan.check.project.index import BUILTINS
from breakscan.model.findings import Condition, ConditionKind, Mode
from breakscan.rulebook.torch_facts import not_measured as facts
from breakscan.source.walking import is_name, walk

_FALSE = frozenset(
    {"torch.jit.is_tracing", "torch._C._get_tracing_state", "torch._C._is_tracing", "torchvision._is_tracing"}
)

TELLING = {*facts.TRUE_WHILE_TRACING, *facts.FALSE_WHILE_TRACING, *(name.rpartition(".")[2] for name in _FALSE)}
"""The last parts of the names of functions that return whether Dynamo traces."""


def truth_while_tracing(dotted: str, mode: Mode) -> bool | None:
    """The result of a function of that name in this mode of compiling; None if it does not depend on the mode."""
    last = dotted.rsplit(".", 1)[-1]
    if last == "is_exporting" and mode.exports:
        return True
    if last in facts.ONLY_WHILE_DYNAMO_TRACES and mode is Mode.EXPORT:
        return False if dotted.startswith("torch.") else None
    if last in facts.TRUE_WHILE_TRACING:
        return True
    return False if last in facts.FALSE_WHILE_TRACING or dotted in _FALSE else None


def _is_tensor_class(dotted: str | None) -> bool:
    """True if a name is ``torch.Tensor``, a type of tensors such as ``torch.LongTensor``, or ``Parameter``."""
    head, _, last = (dotted or "").rpartition(".")
    return dotted == "torch.nn.Parameter" or (head == "torch" and last.endswith("Tensor"))


def known_truth(frame: Frame, test: ast.expr) -> bool | None:
    """The certain outcome of the test while Dynamo traces, or None."""
    if test.__class__ not in _TESTS:
        return None
    for possible in (True, False) if frame.nones else ():
        if not calls_with(frame, test, possible):
            return not possible
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = known_truth(frame, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        known = [known_truth(frame, value) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in known:
            return decisive
        return None if None in known else not decisive
    if isinstance(test, (ast.Name, ast.Attribute)):
        if frame.index.dotted(test) in ("typing.TYPE_CHECKING", "TYPE_CHECKING"):
            return False
        if isinstance(test, ast.Attribute) and is_name(test.value, frame.receiver) and test.attr in frame.outcomes:
            return frame.outcomes[test.attr]
        value = _known(frame, test)
        if isinstance(value, av.NoneValue):
            return False
        if not isinstance(value, av.Constant):
            return None
        return bool(value.literal) if value.literal is not None and not value.by_default else value.truth
    if isinstance(test, ast.Call):
        return _known_call(frame, test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        none_test = _known_none_test(frame, test)
        return _known_comparison(frame, test, by_default=False) if none_test is None else none_test
    return None


_TESTS = frozenset({ast.Constant, ast.UnaryOp, ast.BoolOp, ast.Name, ast.Attribute, ast.Call, ast.Compare})
"""The kinds of expressions whose truth may be known."""


def _known_comparison(frame: Frame, test: ast.Compare, *, by_default: bool) -> bool | None:
    """The result of comparing a known constant with literals; with ``by_default``, of the default of a parameter."""
    right = test.comparators[0]
    if isinstance(test.ops[0], ast.In | ast.NotIn) and isinstance(right, ast.Name) and not by_default:
        held = frame.names.get(right.id)
        if isinstance(held, av.Container) and held.elements == () and not held.keys and not held.element:
            return isinstance(test.ops[0], ast.NotIn)
    value = _known(frame, test.left)
    if isinstance(value, av.Size) and not isinstance(value, av.DataSize) and not by_default:
        unset = isinstance(test.ops[0], ast.Eq | ast.NotEq) and ast.unparse(right) == "-1"
        return isinstance(test.ops[0], ast.NotEq) if unset else None  # a size is never -1
    if not isinstance(value, av.Constant) or value.literal is None or value.by_default is not by_default:
        return None
    op = type(test.ops[0])
    if isinstance(right, ast.Constant) and isinstance(right.value, str | int | float) and op in COMPARE:
        both_numbers = not isinstance(value.literal, str) and not isinstance(right.value, str)
        if both_numbers or op in (ast.Eq, ast.NotEq):
            return bool(COMPARE[op](value.literal, right.value))
    if isinstance(right, ast.Tuple | ast.List | ast.Set) and op in (ast.In, ast.NotIn):
        listed = [element.value for element in right.elts if isinstance(element, ast.Constant)]
        if len(listed) == len(right.elts):
            return (value.literal in listed) is (op is ast.In)
    return None


COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = dict(
    zip(
        (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
        (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
        strict=True,
    )
)


def _known_call(frame: Frame, test: ast.Call) -> bool | None:
    if _asks_a_local(frame, test.func):
        return None
    dotted = frame.index.dotted(test.func) or ""
    known = truth_while_tracing(dotted, frame.program.mode)
    if known is not None:
        return known
    if dotted == "bool" and test.args:
        return known_truth(frame, test.args[0])
    if (dotted == "isinstance" and len(test.args) == 2) or dotted == "torch.is_tensor":
        value = _known(frame, test.args[0]) if test.args else None
        tensors = dotted == "torch.is_tensor" or _is_tensor_class(frame.index.dotted(test.args[1]))
        if value is not None and tensors and value.sure is av.Sure.CERTAIN:
            if isinstance(value, av.Tensor) and not value.maybe_none:
                return True if _asks_for_any_tensor(frame, test) else None
            if isinstance(value, av.Constant | av.NoneValue | av.Size):
                return False
    if _asks_for_number(frame, test):
        value = _known(frame, test.args[0])
        if isinstance(value, av.Tensor) and not value.array and not value.optional and value.sure is av.Sure.CERTAIN:
            return False
    return _known_helper(frame, dotted) if dotted else None


def _asks_a_local(frame: Frame, called: ast.expr) -> bool:
    """True if the method of a local variable is called, as in most calls, which have nothing to do with tracing."""
    if not isinstance(called, ast.Attribute) or called.attr in TELLING:
        return False
    root = called.value
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id == "torch" or root.id not in frame.names:
        return False
    return root.id not in frame.index.imports and not frame.index.stars


def _known_helper(frame: Frame, dotted: str) -> bool | None:
    """The result of a function of the program while it is compiled, if it only tests that."""
    head = dotted.split(".", 1)[0]
    if head in frame.names or head in BUILTINS or head == "torch":
        return None

    info = frame.index.function_named(dotted)
    if info is None:
        return None
    key = "helper", frame.program.mode, info
    return frame.program.project.once(key, info.index, lambda: frame.program.truth_while_traced(info))


def _known_none_test(frame: Frame, test: ast.Compare) -> bool | None:
    subject = none_test_subject(test)
    value = _known(frame, subject) if subject is not None else None
    if value is None:
        return None
    if isinstance(value, av.NoneValue):
        return isinstance(test.ops[0], ast.Is)
    if isinstance(value, av.Tensor | av.Size) and value.sure is av.Sure.CERTAIN and not value.maybe_none:
        return isinstance(test.ops[0], ast.IsNot)
    return None


def calls_with(frame: Frame, test: ast.expr, outcome: bool) -> tuple[Mapping[str, bool], ...]:
    """The calls of the function, as far as the way here allows them, in which a test may have that outcome."""
    calls = frame.nones
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is outcome:
        return tuple(call for call in calls if all(call in calls_with(frame, one, outcome) for one in test.values))
    subject = none_test_subject(test) if calls else None
    if subject is None or not isinstance(test, ast.Compare):
        return calls
    text, is_none = ast.unparse(subject), isinstance(test.ops[0], ast.Is) is outcome
    return tuple(call for call in calls if call.get(text, is_none) is is_none)


def attribute_key(node: ast.expr) -> str | None:
    """The key under which a frame keeps what it knows of ``name.attribute`` besides the class."""
    if node.__class__ is ast.Attribute and node.value.__class__ is ast.Name:
        return f"{node.value.id}.{node.attr}"
    return None


def _key(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.target.id if isinstance(node, ast.NamedExpr) else attribute_key(node)


def _known(frame: Frame, node: ast.expr) -> av.Value | None:
    """The value of a name, or of an attribute of one."""
    key = _key(node)
    if key is not None and key in frame.names:
        return frame.names[key]
    if isinstance(node, ast.Attribute):
        owner = av.class_of(frame.look_up(node.value.id)) if isinstance(node.value, ast.Name) else None
        stored = frame.program.attributes.stored(owner, node.attr) if owner is not None else None
        seen = frame.as_seen(node, stored or av.UNKNOWN)
        return stored if isinstance(seen, av.Unknown) else seen
    if key is None:
        return None
    return frame.look_up(key) if "." not in key else None


def narrow(frame: Frame, test: ast.expr, outcome: bool) -> list[Condition]:
    """Narrows the names of the frame for the case that the test has that outcome. Returns the conditions that this case
    stands under: a dtype or device, an input that may be left out, a flag that is off by default."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return narrow(frame, test.operand, not outcome)
    if isinstance(test, ast.BoolOp):
        operands = test.values
        if isinstance(test.op, ast.And) is not outcome:
            operands = [value for value in operands if not _is_out(frame, value, outcome)]
            if len(operands) != 1:
                return []  # any of them may be the one that decides
        return [condition for value in operands for condition in narrow(frame, value, outcome)]
    if isinstance(test, ast.NamedExpr):
        test = test.target
    if isinstance(test, ast.Name):
        return _narrow_name(frame, test, outcome)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _narrow_compare(frame, test, outcome)
    if isinstance(test, ast.Call):
        return _narrow_call(frame, test, outcome)
    usual = ("training", "requires_grad", "_validate_args") if outcome else ("training", "requires_grad")
    if isinstance(test, ast.Attribute) and test.attr in usual:
        # Dynamo turns the validation of distributions off that were not asked to validate.
        return [av.has_outcome(test, outcome)]
    if isinstance(test, ast.Attribute) and (value := _known(frame, test)) is not None and value.optional is not None:
        is_unusual = value.optional.kind is ConditionKind.FLAG and value.optional.outcome is outcome
        return [Condition(ConditionKind.FLAG, ast.unparse(test), outcome)] if is_unusual else []
    return []


def _is_out(frame: Frame, operand: ast.expr, outcome: bool) -> bool:
    """True if an operand does not have that outcome: ``isinstance(x, int)`` of what is taken for a tensor is False."""
    known = known_truth(frame, operand)
    if known is not None:
        return known is not outcome
    if not outcome or not isinstance(operand, ast.Call) or not _asks_for_number(frame, operand):
        return False
    return isinstance(_known(frame, operand.args[0]), av.Tensor)


def _asks_for_number(frame: Frame, test: ast.Call) -> bool:
    """``isinstance(x, int)``."""
    is_test = frame.index.dotted(test.func) == "isinstance" and len(test.args) == 2
    return is_test and frame.index.dotted(test.args[1]) in _NUMBERS


def rare_equality(test: ast.expr, outcome: bool) -> list[Condition]:
    """The condition that a test is for one value among many: a text, or a number of elements."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq | ast.NotEq):
        return []
    other = test.comparators[0]
    if not isinstance(other, ast.Constant):
        return []
    counts = isinstance(test.left, ast.Call) and isinstance(test.left.func, ast.Attribute)
    of_elements = counts and isinstance(other.value, int) and test.left.func.attr == "numel"  # type: ignore[attr-defined]
    is_text = isinstance(other.value, str)
    equal = isinstance(test.ops[0], ast.Eq) is outcome
    return [av.has_outcome(test, outcome)] if is_text or (of_elements and equal) else []


def _narrow_name(frame: Frame, test: ast.Name, outcome: bool) -> list[Condition]:
    name = test.id
    value = frame.look_up(name)
    if isinstance(value, av.Constant) and value.by_default and bool(value.literal) is not outcome:
        return [av.has_outcome(test, outcome)]
    if value.optional and not isinstance(value, av.Tensor) and not isinstance(value, av.TensorNumber):
        unusual = value.optional.kind is not ConditionKind.FLAG or value.optional.outcome
        return [value.optional] if outcome is unusual else []
    if outcome and value.maybe_none and name in frame.names:
        frame.names[name] = replace(value, maybe_none=False)
    return []


def _narrow_compare(frame: Frame, test: ast.Compare, outcome: bool) -> list[Condition]:
    subject = none_test_subject(test)
    if subject is None:
        value = getattr(test.comparators[0], "value", None)
        if isinstance(test.ops[0], ast.Is | ast.IsNot) and isinstance(value, bool):
            same = isinstance(test.ops[0], ast.Is) is value
            return narrow(frame, test.left, outcome is same)
        usual = _known_comparison(frame, test, by_default=True)
        if usual is not None:
            return [av.has_outcome(test, outcome)] if usual is not outcome else []
        if any(map(_is_device_or_dtype, (test.left, *test.comparators))):
            constants = (node.value for node in walk(test) if isinstance(node, ast.Constant))
            texts = [text for text in constants if isinstance(text, str)]
            equal = isinstance(test.ops[0], ast.Eq) is outcome
            elsewhere = isinstance(test.ops[0], _EQUALITY) and any(t.startswith("cuda") is not equal for t in texts)
            kind = ConditionKind.DEVICE if elsewhere else ConditionKind.TEST
            return [replace(av.has_outcome(test, outcome), kind=kind)]
        return _narrow_rank(frame, test, outcome)
    key, value = _key(subject), _known(frame, subject)
    if key is None or value is None:
        return []
    if isinstance(test.ops[0], ast.Is) is outcome:
        frame.names[key] = av.NONE
        return []
    frame.names[key] = replace(value, maybe_none=False, optional=None)
    return [value.optional] if value.optional else []


def _narrow_rank(frame: Frame, test: ast.Compare, outcome: bool) -> list[Condition]:
    """``x.dim() == 0``: hardly any tensor is a single number; ``x.dim() == 1`` shows that one number is an index."""
    counted, names = test.left, facts.COUNTS_DIMENSIONS
    if isinstance(counted, ast.Call) and is_name(counted.func, "len") and counted.args:
        counted, names = counted.args[0], frozenset({"shape", "size"})
    counted = counted.func if isinstance(counted, ast.Call) and not counted.args else counted
    equal = isinstance(test.ops[0], ast.Eq) is outcome and isinstance(test.ops[0], _EQUALITY)
    if not equal or not isinstance(counted, ast.Attribute) or counted.attr not in names:
        return []
    rank = getattr(test.comparators[0], "value", None)
    key, value = _key(counted.value), _known(frame, counted.value)
    if rank == 1 and key is not None and isinstance(value, av.Tensor):
        frame.names[key] = replace(value, one_dim=True)
    return [av.has_outcome(test, outcome)] if rank == 0 else []


_EQUALITY = (ast.Eq, ast.NotEq)


def _is_device_or_dtype(node: ast.expr) -> bool:
    """``x.dtype``, ``x.device`` and ``x.device.type``."""
    if isinstance(node, ast.Attribute) and node.attr == "type":
        return isinstance(node.value, ast.Attribute) and node.value.attr == "device"
    return isinstance(node, ast.Attribute) and node.attr in ("dtype", "device")


def _narrow_call(frame: Frame, test: ast.Call, outcome: bool) -> list[Condition]:
    dotted = frame.index.dotted(test.func) or ""
    if "is_tracing" in dotted or "is_compiling" in dotted:
        # A helper of the program: what it returns is not known, only what it is about.
        return [av.has_outcome(test, outcome)]
    if dotted == "torch.cuda.is_available" and not outcome:
        return [Condition(ConditionKind.DEVICE, ast.unparse(test), outcome)]
    key, value = (_key(test.args[0]), _known(frame, test.args[0])) if test.args else (None, None)
    if key is None or value is None:
        return []
    asks_class = dotted == "isinstance" and len(test.args) == 2
    if dotted == "torch.is_tensor" or (asks_class and _is_tensor_class(frame.index.dotted(test.args[1]))):
        return _narrow_tensor_test(frame, key, value, outcome) if outcome or _asks_for_any_tensor(frame, test) else []
    if dotted == "numpy.isscalar" and outcome and isinstance(value, av.Tensor):
        frame.names[key] = av.CONSTANT
    return _narrow_to_class(frame, test, key, value) if asks_class and outcome else []


def _asks_for_any_tensor(frame: Frame, test: ast.Call) -> bool:
    """True if a test for a tensor holds for tensors of every dtype."""
    return len(test.args) < 2 or frame.index.dotted(test.args[1]) == "torch.Tensor"


def _narrow_tensor_test(frame: Frame, key: str, value: av.Value, outcome: bool) -> list[Condition]:
    if not outcome:
        if isinstance(value, av.Tensor):
            frame.names[key] = av.UNKNOWN  # something other than a tensor
        return []
    made = value if isinstance(value, av.Tensor) else av.Tensor()
    proved = isinstance(value, av.Tensor) and value.sure is av.Sure.CERTAIN
    condition = None if proved else value.optional or Condition(ConditionKind.TENSOR, key)
    frame.names[key] = replace(made, sure=av.Sure.CERTAIN, maybe_none=False, optional=condition)
    return [condition] if condition else []


_NUMBERS = frozenset({"int", "float", "bool", "str", "complex", "numbers.Number", "numbers.Real", "numbers.Integral"})


def _narrow_to_class(frame: Frame, test: ast.Call, key: str, value: av.Value) -> list[Condition]:
    """For the case that ``isinstance`` says yes, of a class that is no tensor's."""
    wanted = test.args[1]
    classes = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
    names = {frame.index.dotted(name) or "?" for name in classes}
    if "?" in names or any(map(_is_tensor_class, names)):
        return []
    of_numbers = names <= _NUMBERS
    if isinstance(value, av.Tensor | av.Unknown):
        frame.names[key] = av.CONSTANT if of_numbers else av.UNKNOWN
    given = frame.function is not None and key in frame.parameters
    if of_numbers and given and (isinstance(value, av.Unknown) or (isinstance(value, av.Tensor) and value.optional)):
        return [Condition(ConditionKind.INSTANCE, key, classes=tuple(sorted(names)))]
    return []
