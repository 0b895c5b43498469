"""What a program sets in ``torch._dynamo.config``."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from breakscan.check.project.index import ModuleIndex


@dataclass(slots=True)
class DynamoConfig:
    """``flags`` are the settings that are switched on, ``ignored_callees`` the functions that Dynamo leaves out of
    graphs."""

    flags: set[str] = field(default_factory=set)
    ignored_callees: set[str] = field(default_factory=set)

    def read_call(self, index: ModuleIndex, call: ast.Call) -> None:
        """Reads ``torch._dynamo.config.ignore_logging_functions.add(print)`` and similar calls."""
        name = index.dotted(call.func) or ""
        if name.startswith("torch._dynamo.config.") and name.endswith("_logging_functions.add") and call.args:
            self.ignored_callees.add(index.dotted(call.args[0]) or "")

    def read_assignment(self, index: ModuleIndex, node: ast.Assign | ast.AnnAssign) -> None:
        """Reads ``torch._dynamo.config.capture_scalar_outputs = True`` and similar assignments."""
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            name = index.dotted(target) or ""
            on = isinstance(node.value, ast.Constant) and node.value.value is True
            if on and name.startswith("torch._dynamo.config."):
                self.flags.add(name.rsplit(".", 1)[-1])
