"""Interprets code that runs once and is never compiled: the top level of a file, and what sets up an object.

What it shows is kept with the file, for the other files that import it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from breakscan.check.interpreter.annotations import annotated_value
from breakscan.check.interpreter.class_attributes import Store
from breakscan.check.interpreter.dynamo_config import DynamoConfig
from breakscan.check.interpreter.expressions import evaluate
from breakscan.check.interpreter.frame import Frame, Interpreter
from breakscan.check.interpreter.statements import run_body, run_statement
from breakscan.check.interpreter.values import CONSTANT, NONE, Tensor, Value, elements_of
from breakscan.check.project.imports import Drawn
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex


@dataclass(frozen=True, slots=True)
class Setup:
    """What code shows that runs once: the names that it binds, what it stores in attributes, and what it sets in
    torch's configuration."""

    names: dict[str, Value]
    stores: list[Store]
    config: DynamoConfig
    drawn: Drawn


class Setups:
    """Reads set-up code for one program."""

    def __init__(self, program: Interpreter, config: DynamoConfig) -> None:
        self._program = program
        self._reading = config
        """Takes the settings that are found: while code is read, those of this code alone."""

    def read_module(self, index: ModuleIndex, names: dict[str, Value]) -> dict[str, Value]:
        """Fills the names that the top level of a file assigns, and returns those that hold in any program."""

        def read() -> None:
            frame = Frame(self._program, None, names, index=index)
            frame.silent = True
            self._block(frame, index.tree.body)

        return self._once(index, index, read, names).names

    def read_class(self, info: ClassInfo) -> None:
        """Stores what the body and ``__init__`` of a class set."""
        self._once(info.index, info, lambda: self._class(info))

    def read_method(self, method: FunctionInfo) -> None:
        """Stores what a method sets."""
        self._once(method.index, method, lambda: self._method(method, {}))

    def _once(
        self, index: ModuleIndex, key: object, read: Callable[[], None], names: dict[str, Value] | None = None
    ) -> Setup:
        attributes = self._program.attributes
        known = index.remembered.get(key)
        if not isinstance(known, Setup) or not self._program.project.draw_again(known.drawn):
            # What is kept holds for any program: it must not include what this one has set so far.
            outer, self._reading = self._reading, DynamoConfig()
            attributes.recorders.append([])
            reader, attributes.reader = attributes.reader, None
            closures, self._program.closures = self._program.closures, index.closures
            with self._program.project.recording() as drawn:
                read()
            known = Setup(dict(names or {}), attributes.recorders.pop(), self._reading, drawn)
            self._reading = outer
            attributes.reader = reader
            self._program.closures = closures
            if not self._program.project.is_full:
                index.remembered[key] = known
        else:
            for owner, name, value in known.stores:
                attributes.store(owner, name, value)
        self._reading.flags |= known.config.flags
        self._reading.ignored_callees |= known.config.ignored_callees
        return known

    def _block(self, frame: Frame, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self._reading.read_assignment(frame.index, node)
                run_statement(frame, node)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self._reading.read_call(frame.index, node.value)
            elif isinstance(node, ast.If | ast.Try):
                self._block(frame, node.body)
                self._block(frame, node.orelse)

    def _class(self, info: ClassInfo) -> None:
        attributes, signatures = self._program.attributes, self._program.signatures
        for node in info.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                attributes.store(info, node.target.id, annotated_value(info.index, node.annotation))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        attributes.store(info, target.id, NONE if node.value.value is None else CONSTANT)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Call):
                self._class_value(info, node)
        init = info.methods.get("__init__")
        if init is not None:
            self._method(init, signatures.left_out(init))

    def _class_value(self, info: ClassInfo, node: ast.Assign) -> None:
        """Stores what the body of a class computes, where it is a tensor, or a tuple with one."""
        frame = Frame(self._program, None, {}, index=info.index)
        frame.silent = True
        value = evaluate(frame, node.value)
        if isinstance(value, Tensor) or any(isinstance(part, Tensor) for part in elements_of(value) or ()):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._program.attributes.store(info, target.id, value)

    def _method(self, method: FunctionInfo, known: dict[str, Value]) -> None:
        signatures = self._program.signatures
        receiver = signatures.receiver(method)
        body = method.node.body
        if receiver and isinstance(body, list):
            frame = Frame(self._program, method, {**signatures.declared(method), **receiver, **known})
            frame.silent = True
            run_body(frame, body)
