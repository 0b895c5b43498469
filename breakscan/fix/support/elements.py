"""The elements of a parameter that a function loops over: whether Python numbers can replace 0-d tensors."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_read
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined
from breakscan.fix.support.names import read, written
from breakscan.fix.support.operators import takes_alike
from breakscan.fix.support.walking import findall, nodes_named
from breakscan.rulebook.torch_facts.not_measured import FILLED_WITH_NUMBERS, OF_THE_DEFAULT_DTYPE
from breakscan.rulebook.torch_facts.operators import operator

_LOOPS = (cst.For, cst.CompFor)
_MAKES = OF_THE_DEFAULT_DTYPE | FILLED_WITH_NUMBERS
_CONVERSIONS = frozenset({"builtins.float", "builtins.int", "builtins.range"})
_KEEPING = frozenset({"builtins.max", "builtins.min", "builtins.abs"})
_BIT_OPERATORS = cst.BitAnd | cst.BitOr | cst.BitXor | cst.MatrixMultiply


def targets(context: RewriteContext, function: cst.FunctionDef, parameter: str) -> list[cst.BaseExpression]:
    """The targets of the loops over a parameter.  Declines if the parameter is used for anything else."""
    found: list[cst.BaseExpression] = []
    for one in nodes_named(function.body, parameter):
        if not is_read(context, one):
            continue
        above, positions = _iterated(context, one)
        if above is None:
            continue
        target: cst.BaseExpression = above.target
        for position in positions:
            if not isinstance(target, cst.Tuple | cst.List) or len(target.elements) <= position:
                raise Declined(f"the loop over `{parameter}` does not unpack its elements")
            target = target.elements[position].value
        found.append(target)
    return found


def _iterated(context: RewriteContext, name: cst.Name) -> tuple[cst.For | cst.CompFor | None, list[int]]:
    """The loop over a name, and the path to its element in the loop's target; no loop for ``len``."""
    node: cst.CSTNode = name
    positions: list[int] = []
    while True:
        above = context.parent(node)
        if isinstance(above, _LOOPS) and above.iter is node:
            return above, positions
        call = context.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(above, cst.Arg) and isinstance(call, cst.Call) and not above.star:
            function, at = context.code(call.func), call.args.index(above)
            if function == "len" and node is name:
                return None, []
            if (function == "enumerate" and at == 0) or (function == "zip" and above.keyword is None):
                positions.insert(0, 1 if function == "enumerate" else at)
                node = call
                continue
        raise Declined(f"`{name.value}` is used for more than iterating over its elements")


class Numbers:
    """Follows the elements to all their uses; declines at a use that may need a tensor.

    ``names`` are the names of elements and of numbers computed from elements, ``rows`` those of elements of which only
    the parts are used.
    """

    def __init__(self, context: RewriteContext, function: cst.FunctionDef, elements: list[cst.BaseExpression]) -> None:
        self.context = context
        self.function = function
        self.names: set[str] = set()
        self.rows: set[str] = set()
        self._own: set[str] = set()
        """The names of elements themselves, which are views of the tensor."""
        self._is_size = False
        """Whether a use takes only a number, so the element is not a row, which behaves differently as a list."""
        followed: set[str] = set()
        unsure = [self._bind(one) for one in elements]
        while self.names - followed:
            for name in sorted(self.names - followed):
                followed.add(name)
                for one in self._reads(name):
                    self._follow(one)
        if any(unsure) and not self._is_size:
            raise Declined("an element of the loop may be a row, which behaves differently as a Python list")

    def _reads(self, name: str) -> list[cst.Name]:
        found = nodes_named(self.function.body, name)
        return [one for one in found if is_read(self.context, one) and not self._is_target(one)]

    def _is_target(self, name: cst.Name) -> bool:
        node: cst.CSTNode = name
        while isinstance(above := self.context.parent(node), cst.Element | cst.Tuple | cst.List):
            node = above
        return isinstance(above, cst.AssignTarget) or (isinstance(above, _LOOPS) and above.target is node)

    def _bind(self, target: cst.BaseExpression) -> bool:
        """Records the names of an element; whether it is a name whose value may be a row or a number."""
        if isinstance(target, cst.Tuple | cst.List) and all(isinstance(one.value, cst.Name) for one in target.elements):
            names = {cst.ensure_type(one.value, cst.Name).value for one in target.elements}
            self.names |= names
            self._own |= names
            return False
        if not isinstance(target, cst.Name):
            raise Declined("the loop does not assign its elements to plain names")
        reads = self._reads(target.value)
        parts = [above for one in reads if (above := self._part_of(one)) is not None]
        if len(parts) < len(reads):
            if parts:
                raise Declined(f"`{target.value}` is used both as a row and as a number")
            self.names.add(target.value)
            self._own.add(target.value)
            return True
        self.rows.add(target.value)
        for part in parts:
            if isinstance(part, cst.Subscript):
                self._follow(part)
            else:
                self._bind(part)
        return False

    def _part_of(self, row: cst.Name) -> cst.Subscript | cst.Tuple | None:
        """``row[0]``, or the targets of ``height, width = row``."""
        above = self.context.parent(row)
        one = m.Subscript(slice=[m.SubscriptElement(m.Index(m.Integer()))])
        if isinstance(above, cst.Subscript) and above.value is row and m.matches(above, one):
            return above
        if isinstance(above, cst.Assign) and len(above.targets) == 1:
            target = above.targets[0].target
            return target if isinstance(target, cst.Tuple) else None
        return None

    # -- how a number is used -----------------------------------------------------------------------------------

    def _follow(self, node: cst.BaseExpression) -> None:
        above = self.context.parent(node)
        if isinstance(above, cst.ComparisonTarget):
            above = self.context.parent(above)
        if isinstance(above, cst.BinaryOperation) and not isinstance(above.operator, _BIT_OPERATORS):
            if not self._stays_tensor(above.right if above.left is node else above.left):
                self._follow(above)
        elif isinstance(above, cst.UnaryOperation) and not isinstance(above.operator, cst.BitInvert):
            self._follow(above)
        elif isinstance(above, cst.Comparison) and len(above.comparisons) == 1:
            self._in_comparison(above, node)
        elif isinstance(above, cst.BooleanOperation):
            self._follow(above)
        elif isinstance(above, cst.If | cst.While | cst.Assert) and above.test is node:
            return
        elif isinstance(above, cst.IfExp):
            if above.test is not node:
                self._follow(above)
        elif isinstance(above, cst.Slice):
            self._is_size = True
        elif isinstance(above, cst.Index):
            self._as_index(above)
        elif isinstance(above, cst.Arg):
            self._in_call(above)
        elif isinstance(above, cst.Element):
            self._in_list(self.context.parent(above))
        elif isinstance(above, cst.ListComp | cst.GeneratorExp) and above.elt is node:
            self._in_list(above)
        elif isinstance(above, cst.Assign):
            self._in_assignment(above, node)
        elif isinstance(above, cst.AugAssign):
            self._in_augmented(above, node)
        else:
            raise self._refused(node)

    def _refused(self, node: cst.CSTNode) -> Declined:
        return Declined(f"`{self.context.code(node)}` is used where a tensor may be needed, so it cannot become a list")

    def _in_comparison(self, above: cst.Comparison, node: cst.BaseExpression) -> None:
        target = above.comparisons[0]
        if isinstance(target.operator, cst.Is | cst.IsNot | cst.In | cst.NotIn):
            raise self._refused(above)
        if not self._stays_tensor(target.comparator if above.left is node else above.left):
            self._follow(above)

    def _as_index(self, index: cst.Index) -> None:
        element = self.context.parent(index)
        owner = self.context.parent(element) if element is not None else None
        if not isinstance(owner, cst.Subscript) or not self.context.fact(owner.value).is_tensor:
            raise self._refused(owner or index)

    def _in_call(self, arg: cst.Arg) -> None:
        call = self.context.parent(arg)
        if not isinstance(call, cst.Call) or arg.star:
            raise self._refused(arg)
        function, method = called(self.context, call)
        if self._takes_number(call, arg) or function in _CONVERSIONS:
            self._is_size = True
        elif function in _KEEPING:
            self._follow(call)
        elif not (method and takes_alike(self.context, call, arg)) and not (function or "").startswith("math."):
            raise Declined(f"`{self.context.code(call.func)}` may need a tensor")

    def _takes_number(self, call: cst.Call, arg: cst.Arg) -> bool:
        """Whether an argument is a number or a list of numbers, or the data of a new tensor."""
        function, _ = called(self.context, call)
        keyword = arg.keyword.value if arg.keyword is not None else None
        if function is not None and function.startswith("torch."):
            if function.removeprefix("torch.") in _MAKES:
                return True
            known, first = operator(self.context.torch_version, function), 0
        elif isinstance(call.func, cst.Attribute):
            known, first = operator(self.context.torch_version, f"torch.Tensor.{call.func.attr.value}"), 1
        else:
            return False
        return known is not None and known.takes_number(call.args.index(arg) + first, keyword)

    def _in_list(self, node: cst.CSTNode | None) -> None:
        above = self.context.parent(node) if node is not None else None
        call = self.context.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(call, cst.Call) and isinstance(above, cst.Arg) and self._takes_number(call, above):
            self._is_size = True
        elif isinstance(above, cst.Element):
            self._in_list(self.context.parent(above))
        elif isinstance(call, cst.Call) and called(self.context, call)[0] == "builtins.sum":
            self._follow(call)
        elif node is not None:
            raise self._refused(node)

    def _in_assignment(self, above: cst.Assign, node: cst.BaseExpression) -> None:
        if len(above.targets) != 1 or isinstance(node, cst.Name):
            raise self._refused(node)
        target = above.targets[0].target
        if isinstance(target, cst.Name):
            self.names.add(target.value)
        elif not isinstance(target, cst.Subscript) or not self._stays_tensor(target.value):
            raise self._refused(node)

    def _in_augmented(self, above: cst.AugAssign, node: cst.BaseExpression) -> None:
        if above.target is node:
            if isinstance(node, cst.Name) and node.value in self._own:
                raise Declined(f"`{self.context.code(above)}` changes the tensor that the loop iterates over")
        elif isinstance(above.target, cst.Name):
            if not self._holds_tensors(above.target.value):
                self.names.add(above.target.value)
        elif not isinstance(above.target, cst.Subscript) or not self._stays_tensor(above.target.value):
            raise self._refused(node)

    def _holds_tensors(self, name: str) -> bool:
        """Whether all values assigned to a name are tensors, even if the elements are numbers."""
        values = [
            cst.ensure_type(one, cst.Assign).value
            for one in findall(self.function.body, m.Assign())
            if any(m.matches(target.target, m.Name(name)) for target in cst.ensure_type(one, cst.Assign).targets)
        ]
        return bool(values) and all(self._stays_tensor(one) for one in values)

    def _stays_tensor(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a tensor, even if the elements are numbers."""
        if isinstance(node, cst.BinaryOperation):
            return self._stays_tensor(node.left) or self._stays_tensor(node.right)
        if isinstance(node, cst.UnaryOperation):
            return self._stays_tensor(node.expression)
        if isinstance(node, cst.Subscript):
            return self._stays_tensor(node.value)
        if not self.context.fact(node).is_tensor:
            return False
        if isinstance(node, cst.Call):
            function, _ = called(self.context, node)
            if (function or "").startswith("torch."):
                return True
            return isinstance(node.func, cst.Attribute) and self._stays_tensor(node.func.value)
        return not self.names.intersection((*read(node), *written(node)))
