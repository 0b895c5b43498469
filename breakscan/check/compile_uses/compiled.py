"""What is compiled, and with which options."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscan.check.project.index import ClassInfo
from breakscan.model.findings import Condition
from breakscan.source.walking import FunctionNode

CUDA_GRAPH_MODES = frozenset({"reduce-overhead", "max-autotune"})


@dataclass(frozen=True, slots=True)
class BoundName:
    """What is compiled: a function, or a module with the class in which it is defined."""

    function: FunctionNode | None = None
    owner: ClassInfo | None = None
    bound: bool = False
    """Whether the function's first parameter is the object itself."""


@dataclass(eq=False, slots=True)
class Compiled:
    """One call to ``torch.compile``, one decorator, or one ``module.compile()``."""

    node: ast.expr
    keywords: dict[str, ast.expr]
    target: BoundName | None
    source: ast.expr | None = None
    """The expression that was compiled."""
    in_place: bool = False

    def option(self, name: str) -> object:
        """The value of an option that is written as a literal, else None."""
        value = self.keywords.get(name)
        return value.value if isinstance(value, ast.Constant) else None

    @property
    def uses_cuda_graphs(self) -> bool:
        if "backend" in self.keywords and self.option("backend") != "inductor":
            return False
        options = self.keywords.get("options")
        if isinstance(options, ast.Dict):
            for key, value in zip(options.keys, options.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "triton.cudagraphs":
                    return isinstance(value, ast.Constant) and value.value is True
        return self.option("mode") in CUDA_GRAPH_MODES


@dataclass(frozen=True, slots=True)
class Hit:
    """Something compiled under a name.  ``condition`` is the test under which it is compiled, if there is one."""

    compiled: Compiled
    condition: Condition | None = None
