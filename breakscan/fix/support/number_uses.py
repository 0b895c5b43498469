"""The uses of a Python number that was read from a tensor: whether the 0-d tensor can replace it in all of them."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.aliases import change_behind, reads
from breakscan.fix.support.assignments import defined, plain_value
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.copies import names_of
from breakscan.fix.support.devices import on_one_device
from breakscan.fix.support.difference import EXCEPTIONS, Difference, Effect, ShowsOnly, assumes, differs
from breakscan.fix.support.dtypes import of_one_dtype
from breakscan.fix.support.edit import Declined
from breakscan.fix.support.names import written
from breakscan.fix.support.numbers import is_number, written_number
from breakscan.fix.support.operators import operator_of, takes_alike
from breakscan.fix.support.walking import findall
from breakscan.model.facts import Fact
from breakscan.rulebook.torch_facts.not_measured import DIVISIONS

DOUBLE = differs(
    "the result is computed in the tensor's precision, not in double, and division by zero does not raise",
    *(Effect.VALUES, Effect.DTYPES, Effect.NO_LONGER_RAISES),
)
DIVIDED = differs(
    "a number divided by a tensor is multiplied by its inverse, which rounds differently and may overflow",
    Effect.VALUES,
)
REMAINDER = differs("the backward pass through the remainder of a number by a tensor does not raise", Effect.GRADIENTS)
GPU_DIVISION = differs(
    "on a GPU, division by a number is multiplication by its inverse, so the last digit may differ",
    Effect.VALUES,
    only=ShowsOnly.DEVICES,
)
GPU_ROUNDING = differs(
    "on a GPU, the value is first rounded to the dtype of the tensor beside it, a number is not",
    Effect.VALUES,
    only=ShowsOnly.DEVICES,
)
DOES_NOT_FIT = differs(
    "a value that the dtype of the tensor beside it cannot hold does not raise", Effect.NO_LONGER_RAISES
)
CALLER = differs("the caller gets a 0-d tensor instead of a Python number", Effect.TYPES)
ASSERT = differs("in compiled code, a failing assertion is a RuntimeError", *EXCEPTIONS, only=ShowsOnly.COMPILED)

_ARITHMETIC = cst.Add | cst.Subtract | cst.Multiply | cst.Divide | cst.FloorDivide | cst.Modulo
_EXACT = cst.Add | cst.Subtract | cst.Multiply
_ORDERS = cst.LessThan | cst.LessThanEqual | cst.GreaterThan | cst.GreaterThanEqual | cst.Equal | cst.NotEqual
_OPERANDS = ("other", "value", "min", "max")
"""The names of arguments for which a function treats a number and a tensor alike."""


class Uses:
    """Follows a number to all its uses, and collects the differences that a 0-d tensor makes.

    Declines if a use takes only a Python number.
    """

    def __init__(self, context: RewriteContext, tensor: cst.BaseExpression, dtype: str | None, text: str) -> None:
        self.context = context
        self.tensor = tensor
        self.dtype = dtype
        """The dtype of the 0-d tensor that replaces the number."""
        self.text = text
        self.differences: dict[Difference, None] = {}
        self.is_kept = False
        """Whether the value is kept after its statement."""
        self._followed: set[cst.CSTNode] = set()

    def note(self, *differences: Difference) -> None:
        self.differences.update(dict.fromkeys(differences))

    def follow(self, node: cst.BaseExpression) -> None:
        """Follows the use of an expression's value."""
        if node in self._followed:
            return
        self._followed.add(node)
        above = self.context.parent(node)
        if isinstance(above, cst.BinaryOperation):
            self._in_arithmetic(above, node)
        elif isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Minus | cst.Plus):
            self._must_be_no_bool(above)
            self.follow(above)
        elif isinstance(above, cst.Comparison | cst.ComparisonTarget):
            self._in_comparison(above, node)
        elif isinstance(above, cst.Arg):
            self._in_call(above)
        elif isinstance(above, cst.Assign):
            self._in_assignment(above)
        elif isinstance(above, cst.AugAssign):
            self._in_augmented(above)
        elif isinstance(above, cst.Assert) and above.test is node and self.dtype == "bool":
            self._in_assert(above)
        elif isinstance(above, cst.Return | cst.Element | cst.DictElement | cst.Tuple | cst.List | cst.Dict):
            self._in_return(above, node)
        else:
            self._elsewhere(above)

    def _fact(self, node: cst.BaseExpression) -> Fact:
        """What is known about an expression; for the target of an augmented assignment, about the value of its name."""
        fact = self.context.fact(node)
        return fact if fact.kind != "unknown" else self.context.fact(defined(self.context, node))

    # -- uses that take both ------------------------------------------------------------------------------------

    def _beside(self, other: cst.BaseExpression, in_place: bool = False) -> None:
        """Records the differences in an operation with another tensor."""
        fact = self._fact(other)
        if not fact.certain:
            self.note(assumes(f"`{self.context.code(other)}` is assumed to be a tensor", only=ShowsOnly.NO_TENSOR))
        text, of = self.context.code(other), self.text
        if not on_one_device(self.context.fact(self.tensor), fact):
            self.note(assumes(f"`{of}` must be on the same device as `{text}`", only=ShowsOnly.DEVICES))
        if not self._fits(other):
            self.note(GPU_ROUNDING)
        if not in_place and (fact.dtype != "float" or self.dtype not in ("int", "bool")):
            self._beside_dtype(other, fact)

    def _fits(self, other: cst.BaseExpression) -> bool:
        """Whether the dtype of another tensor can hold the value exactly."""
        known = other if self.context.fact(other).kind != "unknown" else defined(self.context, other)
        return self.dtype == "bool" or of_one_dtype(self.context, self.tensor, known)

    def _beside_dtype(self, other: cst.BaseExpression, fact: Fact) -> None:
        """Records that the dtype of the 0-d tensor may affect the result, as that of a number does not."""
        if of_one_dtype(self.context, self.tensor, other):
            return
        if fact.dtype in ("int", "bool") and self.dtype not in ("int", "bool"):
            self.note(differs(f"the result has the dtype of `{self.text}`, not the default dtype", Effect.DTYPES))
        elif fact.zero_dim is not False or fact.dtype is None:
            said = f"the dtype of `{self.text}` affects the result if `{self.context.code(other)}` is 0-d"
            self.note(differs(said, Effect.DTYPES))

    def _must_be_no_bool(self, node: cst.BaseExpression) -> None:
        """Python does arithmetic with bools, but torch raises for bool tensors."""
        if self.dtype == "bool":
            raise Declined(f"`{self.context.code(node)}` would raise for a bool tensor")
        if self.dtype is None:
            self.note(assumes(f"`{self.text}` is assumed not to be a bool tensor"))

    def _in_arithmetic(self, above: cst.BinaryOperation, node: cst.BaseExpression) -> None:
        other = above.right if above.left is node else above.left
        text = self.context.code(other)
        if isinstance(above.operator, cst.Subtract) and not of_one_dtype(self.context, self.tensor, other):
            self._must_be_no_bool(above)
        if self.context.fact(other).is_tensor:
            if not isinstance(above.operator, _ARITHMETIC) and not self._is_power_of_float(above, other):
                raise Declined(f"`{self.context.code(above)}` may give a different result with two tensors")
            if isinstance(above.operator, cst.Power):
                self.note(differs("the last digit of the power may differ", Effect.VALUES))
            if above.left is node and isinstance(above.operator, cst.Divide):
                self.note(DIVIDED)
            elif above.left is node and isinstance(above.operator, cst.Modulo):
                self.note(REMAINDER)
            elif isinstance(above.operator, cst.Divide | cst.FloorDivide):
                self.note(GPU_DIVISION)
            self._beside(other)
            return
        if not isinstance(above.operator, _ARITHMETIC):
            raise Declined(f"`{self.context.code(above)}` may give a different result with a tensor")
        if not is_number(self.context, other) and self.context.fact(other).kind not in ("constant", "shape"):
            raise Declined(f"the other operand, `{text}`, is not known to be a tensor or a number")
        if not is_number(self.context, other):
            if self.dtype in ("int", "bool"):
                raise Declined(f"the other operand, `{text}`, may be a list")
            self.note(assumes(f"`{text}` is assumed to be a number"))
        if not (self.dtype == "int" and isinstance(above.operator, _EXACT) and _is_int(other)):
            self.note(DOUBLE)
        self.follow(above)

    def _is_power_of_float(self, above: cst.BinaryOperation, other: cst.BaseExpression) -> bool:
        both = self.dtype == "float" and self.context.fact(other).dtype == "float"
        return isinstance(above.operator, cst.Power) and both

    def _in_comparison(self, above: cst.Comparison | cst.ComparisonTarget, node: cst.BaseExpression) -> None:
        comparison = above if isinstance(above, cst.Comparison) else self.context.parent(above)
        if not isinstance(comparison, cst.Comparison) or len(comparison.comparisons) != 1:
            raise Declined("the number is in a chain of comparisons")
        target = comparison.comparisons[0]
        other = target.comparator if comparison.left is node else comparison.left
        if not isinstance(target.operator, _ORDERS):
            raise Declined(f"`{self.context.code(comparison)}` has a different meaning for a tensor")
        if self.context.fact(other).is_tensor:
            self._beside(other)
            return
        parent = self.context.parent(comparison)
        if not isinstance(parent, cst.Assert) or parent.test is not comparison:
            raise Declined(
                f"the branch on `{self.context.code(comparison)}` would become a branch on a tensor, "
                "which breaks too: compare the tensor first"
            )
        if self.dtype != "int" or isinstance(other, cst.Float):
            self.note(differs("the comparison uses the tensor's precision, not double", Effect.VALUES))
        self._in_assert(parent)

    def _is_number_or_size(self, node: cst.BaseExpression) -> bool:
        return is_number(self.context, node) or self.context.fact(node).kind in ("constant", "shape")

    def _in_assert(self, above: cst.Assert) -> None:
        if above.msg is not None and not isinstance(above.msg, cst.SimpleString | cst.ConcatenatedString):
            raise Declined("an assertion on a tensor still breaks the graph if its message is formatted")
        if above.msg is not None and findall(above.msg, m.FormattedString()):
            raise Declined("an assertion on a tensor still breaks the graph if its message is formatted")
        self.note(ASSERT)

    def _in_call(self, arg: cst.Arg) -> None:
        call = self.context.parent(arg)
        if not isinstance(call, cst.Call) or arg.star:
            raise Declined("it is not known what receives the number")
        function, method = called(self.context, call)
        name = (method or function or "").rpartition(".")[2]
        keyword = arg.keyword.value if arg.keyword is not None else None
        if function in ("builtins.max", "builtins.min") and len(call.args) > 1 and keyword is None:
            self._beside_in_max(call, arg)
        elif function == "builtins.abs":
            self._must_be_no_bool(call)
            self.follow(call)
        elif function == "torch.full" and (keyword == "fill_value" or call.args.index(arg) == 1):
            return
        elif function == "torch.where" and keyword is None and call.args.index(arg) > 0:
            self._in_where(call, arg)
        elif takes_alike(self.context, call, arg):
            self._in_operation(call, arg, name, method is not None)
        else:
            raise self._refused(call, keyword)

    def _refused(self, call: cst.Call, keyword: str | None) -> Declined:
        text = self.context.code(call.func)
        known = operator_of(self.context, call)
        if known is not None and keyword is not None and known.takes_number(None, keyword):
            return Declined(f"`{keyword}` of `{text}` must be a Python number")
        if known is not None and known.alike and len(call.args) > 1:
            return Declined(f"`{text}` has additional arguments")
        return Declined(f"`{text}` may need a Python number")

    def _beside_in_max(self, call: cst.Call, arg: cst.Arg) -> None:
        for one in call.args:
            if one is not arg and not self._is_number_or_size(one.value):
                raise Declined(f"the other argument, `{self.context.code(one.value)}`, is not known to be a number")
        if self.dtype != "float":
            raise Declined(f"`{self.context.code(call)}` may return a number or a tensor")
        self.follow(call)

    def _in_where(self, call: cst.Call, arg: cst.Arg) -> None:
        other = next((one.value for one in call.args[1:] if one is not arg), None)
        if other is not None and self.context.fact(other).is_tensor:
            if not self._fits(other):
                self.note(DOES_NOT_FIT)
            self._beside(other)
        else:
            self.note(differs(f"the result has the dtype of `{self.text}`, not the default dtype", Effect.DTYPES))

    def _in_operation(self, call: cst.Call, arg: cst.Arg, name: str, is_method: bool) -> None:
        text = self.context.code(call.func)
        if name.endswith("_"):
            self._must_not_overlap(text)
        owner = call.func.value if is_method and isinstance(call.func, cst.Attribute) else call.args[0].value
        if not is_method and call.args[0] is arg:
            raise Declined(f"`{text}` may need a Python number")
        keyword = arg.keyword.value if arg.keyword is not None else None
        if keyword not in (None, *_OPERANDS):
            raise Declined(f"`{keyword}` of `{text}` must be a Python number")
        if not self.context.fact(owner).is_tensor:
            raise Declined(f"`{self.context.code(owner)}` is not known to be a tensor")
        if self.dtype in ("bool", None) and self.context.fact(owner).dtype not in ("float", "int"):
            said = f"`{text}` may raise for bool tensors beside a Python bool, and not beside a tensor"
            self.note(differs(said, Effect.NO_LONGER_RAISES))
        if name.removesuffix("_") in DIVISIONS:
            self.note(GPU_DIVISION)
        if not self._fits(owner):
            self.note(DOES_NOT_FIT)
        self._beside(owner, in_place=name.endswith("_"))

    # -- uses that keep the value -------------------------------------------------------------------------------

    def _in_assignment(self, above: cst.Assign) -> None:
        line = self.context.parent(above)
        target = above.targets[0].target
        if len(above.targets) != 1 or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise Declined("the number is assigned to several names")
        if not isinstance(target, cst.Name):
            raise Declined(f"`{self.context.code(target)}` stores the number, and other code may need a Python number")
        assert plain_value(line, target.value) is not None
        name = target.value
        if self._is_bound_elsewhere(name, target):
            raise Declined(f"`{name}` is also assigned other values")
        found = reads(self.context, line, target)
        if not found:
            raise Declined(f"`{name}` is not read in this function")
        for one in found:
            if self.context.enclosing(cst.FunctionDef, one) is not self.context.function:
                raise Declined(f"an inner function reads `{name}`")
        if not self.is_new(self.tensor):
            self._must_not_change(above)
        for one in found:
            self.follow(one)

    def _is_bound_elsewhere(self, name: str, target: cst.Name) -> bool:
        if any(param.name.value == name for param in _parameters(self.context.function)):
            return True
        if findall(self.context.function, m.Global() | m.Nonlocal()):
            return True
        lines = findall(self.context.function.body, m.SimpleStatementLine() | m.For() | m.With() | m.CompFor())
        own = self.context.line(target)
        for line in lines:
            part: cst.CSTNode | Iterable[cst.CSTNode] = line
            if isinstance(line, cst.For | cst.CompFor):
                part = cst.AssignTarget(line.target)
            elif isinstance(line, cst.With):
                part = line.items
            if line is not own and name in written(part):
                return True
        return False

    def is_new(self, node: cst.BaseExpression) -> bool:
        """Whether an expression creates a new tensor, which no other code can change."""
        facts = self.context.fact(node).tensor
        return not isinstance(node, cst.Name) and facts is not None and facts.is_new

    def _must_not_change(self, above: cst.CSTNode) -> None:
        change = change_behind(self.context, names_of(self.context, self.tensor), above)
        if change is None:
            start = self.context.tree.span(above)[2:]
            for call in findall(self.context.function, m.Call()):
                if call not in self.context.tree.parents or self.context.tree.span(call)[:2] < start:
                    continue
                function, method = called(self.context, cst.ensure_type(call, cst.Call))
                if method is None and not (function or "").startswith(("torch.", "builtins.")):
                    change = self.context.code(call)
                    break
        if change is not None:
            raise Declined(f"`{change}` may change `{self.context.code(self.tensor)}` before the number is used")

    def _in_augmented(self, above: cst.AugAssign) -> None:
        if not self._fact(above.target).is_tensor:
            raise Declined(f"`{self.context.code(above.target)}` is a Python number")
        if not isinstance(above.operator, cst.AddAssign | cst.SubtractAssign | cst.MultiplyAssign | cst.DivideAssign):
            raise Declined(f"`{self.context.code(above)}` may give a different result with two tensors")
        self._must_not_overlap(self.context.code(above.target))
        if isinstance(above.operator, cst.DivideAssign):
            self.note(GPU_DIVISION)
        self._beside(above.target, in_place=True)

    def _must_not_overlap(self, text: str) -> None:
        """An in-place operation raises if its input is a part of its output."""
        if not self.is_new(defined(self.context, self.tensor)):
            raise Declined(f"`{self.text}` may overlap the memory that `{text}` changes in place")

    def _in_return(self, above: cst.CSTNode, node: cst.CSTNode) -> None:
        if isinstance(above, cst.DictElement) and above.value is not node:
            raise Declined("the number is a dictionary key")
        up: cst.CSTNode | None = above
        while isinstance(up, cst.Element | cst.DictElement | cst.Tuple | cst.List | cst.Dict):
            up = self.context.parent(up)
        if not isinstance(up, cst.Return):
            raise Declined("code that reads the container may need a Python number")
        if self.dtype != "float" or up is above:
            raise Declined("the caller may need a Python number for an index, a size or a branch")
        self.is_kept = True
        self.note(CALLER)

    def _elsewhere(self, above: cst.CSTNode | None) -> None:
        if isinstance(above, cst.If | cst.While | cst.IfExp | cst.BooleanOperation | cst.UnaryOperation | cst.Assert):
            raise Declined(
                "the branch on the value would become a branch on a tensor, which breaks too: compare the tensor first"
            )
        if isinstance(above, cst.Slice):
            raise Declined("the number is a slice bound, so a shape depends on it")
        if isinstance(above, cst.FormattedStringExpression):
            raise Declined("the number is formatted into a string")
        if isinstance(above, cst.Index):
            raise Declined("the number indexes an object that is not known to be a tensor")
        raise Declined("the code that uses the number may need a Python number")


def _is_int(node: cst.BaseExpression) -> bool:
    return isinstance(written_number(node), int)


def _parameters(function: cst.FunctionDef) -> list[cst.Param]:
    return [one for one in findall(function.params, m.Param()) if isinstance(one, cst.Param)]
