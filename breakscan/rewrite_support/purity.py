"""Whether code may run although it would not have, or again, or not at all, and nobody notices but by its result."""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext

PURE_BUILTINS = frozenset({"abs", "bool", "float", "int", "isinstance", "len", "max", "min", "range", "round", "slice"})
PURE_MODULES = ("torch.", "math.", "torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.fft.")
RANDOM = frozenset(
    {
        *("alpha_dropout", "bernoulli", "binomial", "cauchy", "dropout", "dropout1d", "dropout2d", "dropout3d"),
        *("exponential", "feature_alpha_dropout", "geometric", "gumbel_softmax", "log_normal", "manual_seed"),
        *("multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like"),
        *("random", "randperm", "rrelu", "scaled_dot_product_attention", "seed", "set_rng_state", "uniform"),
    }
)
READS_VALUES = frozenset(
    {
        *("allclose", "bincount", "cpu", "cuda", "equal", "is_nonzero", "item", "masked_select", "nonzero", "numpy"),
        *("repeat_interleave", "tolist", "unique", "unique_consecutive", "one_hot", "backward", "retain_grad"),
        *("register_hook", "share_memory", "data_ptr", "storage", "untyped_storage", "set_", "save", "load"),
        *("compile", "no_grad", "enable_grad", "set_grad_enabled", "use_deterministic_algorithms", "set_default_dtype"),
        *("set_num_threads", "set_printoptions", "_assert", "_assert_async", "_check", "cond", "while_loop"),
    }
)
"""Those that ask for values, leave the device, or change more than what they return."""
MAY_RAISE = frozenset(
    {
        *("cholesky", "cholesky_ex", "eig", "eigh", "embedding", "gather", "index_select", "inv", "inverse", "lstsq"),
        *("one_hot", "qr", "scatter", "scatter_add", "solve", "svd", "take", "take_along_dim", "nll_loss"),
        *("cross_entropy", "binary_cross_entropy", "multinomial", "bincount"),
    }
)
"""Functions of torch that raise, or read beyond the end, for some values of a tensor."""


def why_not_pure(context: RewriteContext, node: cst.CSTNode, *, modules: bool = False) -> str | None:
    """Why running an expression changes more than what it returns, as a sentence's end; None where it does not.

    Only what is known to be pure counts as pure: functions of torch and math that change nothing, methods of tensors
    without a trailing underscore, operators, and attributes.  With ``modules``, calls of modules are let through.
    """
    found = _Impurities(context, modules)
    node.visit(found)
    return found.reasons[0] if found.reasons else None


def why_may_raise(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """Why running an expression may raise for some values of its tensors, as a sentence's end; None where not."""
    found = _Raises(context)
    node.visit(found)
    return found.reasons[0] if found.reasons else None


def called(context: RewriteContext, node: cst.Call) -> tuple[str | None, str | None]:
    """The dotted name of a function, and the name of a method of a tensor, that a call calls; None where unknown."""
    if (method := context.method(node)) is not None:
        return None, method
    name = context.dotted(node.func)
    if isinstance(node.func, cst.Name) and (name is None or name == node.func.value):
        name = f"builtins.{node.func.value}"
    return name, None


class Effects(cst.CSTVisitor):
    """Gathers why code does more than return a value; what calls do is left to subclasses."""

    def __init__(self, context: RewriteContext) -> None:
        self.context = context
        self.reasons: list[str] = []

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.reasons.append(f"`{self.context.code(node)}` assigns a name")

    def visit_Await(self, node: cst.Await) -> None:
        self.reasons.append("it awaits")

    def visit_Yield(self, node: cst.Yield) -> None:
        self.reasons.append("it yields")

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False


class _Impurities(Effects):
    def __init__(self, context: RewriteContext, modules: bool) -> None:
        super().__init__(context)
        self.modules = modules

    def visit_Call(self, node: cst.Call) -> None:
        text = self.context.code(node.func)
        if self.modules and self.context.fact(node.func).kind == "module":
            return
        function, method = called(self.context, node)
        name = (method or function or "").rpartition(".")[2]
        if method is None and not self._is_pure(function):
            self.reasons.append(f"`{text}` may do more than return a value")
        elif name in RANDOM:
            self.reasons.append(f"`{text}` draws random numbers")
        elif name.endswith("_") and not name.endswith("__"):
            self.reasons.append(f"`{text}` changes a tensor in place")
        elif name in READS_VALUES:
            self.reasons.append(f"`{text}` needs a tensor's values, or changes more than it returns")
        elif any(arg.keyword is not None and arg.keyword.value in ("out", "inplace") for arg in node.args):
            self.reasons.append(f"`{text}` writes into one of its arguments")

    def _is_pure(self, function: str | None) -> bool:
        if function is None:
            return False
        package, _, name = function.partition(".")
        return name in PURE_BUILTINS if package == "builtins" else function.startswith(PURE_MODULES)


class _Raises(cst.CSTVisitor):
    def __init__(self, context: RewriteContext) -> None:
        self.context = context
        self.reasons: list[str] = []

    def visit_Call(self, node: cst.Call) -> None:
        function, method = called(self.context, node)
        if (method or function or "").rpartition(".")[2] in MAY_RAISE:
            self.reasons.append(f"`{self.context.code(node.func)}` raises for some values")

    def visit_Subscript(self, node: cst.Subscript) -> None:
        for element in node.slice:
            index = element.slice.value if isinstance(element.slice, cst.Index) else None
            if index is None or self._is_in_range(index):
                continue
            if self.context.fact(index).is_tensor and self.context.fact(index).dtype != "bool":
                self.reasons.append(f"`{self.context.code(node)}` raises for indices out of range")

    def _is_in_range(self, index: cst.BaseExpression) -> bool:
        """Whether an index is one of places in a tensor, so that shapes decide, not values: ``torch.argsort(x)``."""
        if isinstance(index, cst.Subscript):
            index = index.value
        if not isinstance(index, cst.Call):
            return False
        function, method = called(self.context, index)
        return (method or function or "").rpartition(".")[2] in ("argmax", "argmin", "argsort", "sort", "topk")

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if isinstance(node.operator, cst.FloorDivide | cst.Modulo) or (
            isinstance(node.operator, cst.Divide)
            and self.context.fact(node.right).kind in ("number", "shape", "unknown")
        ):
            divisor = self.context.fact(node.right)
            if divisor.dtype != "float" and not divisor.literal:
                self.reasons.append(f"`{self.context.code(node)}` may divide by zero")
