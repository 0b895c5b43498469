"""The positions of the nodes of a file, in a third of the time that ``PositionProvider`` of libcst takes."""

from __future__ import annotations

from types import TracebackType

import libcst as cst
from libcst.metadata import PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

from breakscan.model.facts import Span


def spans_in(module: cst.Module) -> dict[cst.CSTNode, Span]:
    """The spans of the nodes of a module, in lines and columns from 1."""
    state = _State(module.default_indent, module.default_newline)
    module._codegen(state)
    return state.spans


class _State(PositionProvidingCodegenState):
    def __init__(self, indent: str, newline: str) -> None:
        super().__init__(indent, newline, PositionProvider())
        self.spans: dict[cst.CSTNode, Span] = {}
        self.starts: list[tuple[int, int]] = []

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        if value.isprintable():
            self.column += len(value)
        else:
            self._update_position(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.starts.append((self.line, self.column + 1))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.starts.pop()
        if node not in self.spans:
            self.spans[node] = (*start, self.line, self.column + 1)

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Recorded:
        return _Recorded(self, node, start_node, end_node)


class _Recorded:
    """Notes where the code of a node starts and ends, without the whitespace around it."""

    def __init__(
        self, state: _State, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.state = state
        self.node = node
        self.start_node = start_node
        self.end_node = end_node

    def __enter__(self) -> None:
        self.start = self.state.line, self.state.column + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spans = self.state.spans
        start = self.start if self.start_node is None else spans[self.start_node][:2]
        end = (self.state.line, self.state.column + 1) if self.end_node is None else spans[self.end_node][2:]
        spans[self.node] = (*start, *end)
