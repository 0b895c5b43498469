"""The bytecode that Dynamo made of a function, as Python that a person can read.  Nearly all of it runs straight on: a
graph is called, the operation that broke it runs, the rest of the function is called.  So Python runs it, on values
that write down what is done with them, and do nothing else.  Dynamo's lists and bookkeeping are gone then."""

import dis
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from breakscan.model.words import clipped
from breakscan.recording.parsers.frames import resumed_at
from breakscan.recording.records import PythonLine

_BOOKKEEPING = ("record_pregraph_bytecode_enter", "record_pregraph_bytecode_exit")
_STORES = ("object_setattr_ignore_descriptor", "object.__setattr__")
_OF_NESTED = ("__nested_resume_fns", "__nested_frame_values")  # with ``nested_graph_breaks`` alone
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
_LONGEST = 60  # characters of a constant
_MOST_ARGUMENTS = 8
_MOST_LINES = 200
_MOST_TESTS = 6
_CALLER: CodeType = compile("lambda *values, **named: name(*values, **named)", __file__, "eval").co_consts[0]
_SIGNS = {
    "add": "+", "and": "&", "eq": "==", "floordiv": "//", "ge": ">=", "gt": ">", "le": "<=", "lshift": "<<", "lt": "<",
    "matmul": "@", "mod": "%", "mul": "*", "ne": "!=", "or": "|", "pow": "**", "rshift": ">>", "sub": "-",
    "truediv": "/", "xor": "^",
}  # fmt: skip
_UNARY = {"neg": "-", "pos": "+", "invert": "~"}


class _UnreadableError(Exception):
    """Raised where there is too much to read."""


def python_lines(code: CodeType, names: Mapping[str, Any]) -> tuple[PythonLine, ...]:
    """The lines of a function that Dynamo made; ``names`` are its globals.  ``...`` ends what cannot be read."""
    return (PythonLine(_head(code), 0), *_ways(code, names, []))


def goes_on_at(code: CodeType) -> int | None:
    """The line at which the code for the rest of a function goes on; None for other code."""
    if resumed_at(code.co_name) is None:
        return None
    jumps = (one.argval for one in dis.get_instructions(code) if one.opname in ("JUMP_FORWARD", "JUMP_ABSOLUTE"))
    target = next(jumps, 0)
    return max(((at, line) for at, line in dis.findlinestarts(code) if at <= target and line), default=(0, None))[1]


def _parameters(code: CodeType) -> list[Parameter]:
    function = FunctionType(code, {}, closure=tuple(CellType() for _ in code.co_freevars))
    return [*signature(function).parameters.values()]


def _head(code: CodeType) -> str:
    shown = Signature([one for one in _parameters(code) if one.name not in _OF_NESTED])
    return f"def {_function(code.co_name)}{shown}:".replace("___stack", "stack")


def _function(name: str) -> str:
    line = resumed_at(name)
    return name if line is None else f"resume_at_{line}"


def _ways(code: CodeType, names: Mapping[str, Any], choices: list[bool]) -> list[PythonLine]:
    """The lines after the last of the ``choices``, which tests come out as: those where all further tests hold, then
    those where the last of them does not, and so on."""
    run = _Run(code, names, choices)
    lines = run.lines()
    for number in range(run.tests - 1, len(choices) - 1, -1):
        lines += _ways(code, names, [*choices, *([True] * (number - len(choices))), False])
    return lines


@dataclass(slots=True)
class _Statement:
    """A line: ``tests`` are those before it, ``name`` is that of its call's value, once something uses it."""

    text: str
    depth: int
    line: int | None
    tests: int
    graph: bool = False
    rest: CodeType | None = None
    name: str = ""


class _Run:
    """One way through the code."""

    def __init__(self, code: CodeType, names: Mapping[str, Any], choices: Sequence[bool]) -> None:
        self.tests = 0
        self.depth = 1
        self.statements: list[_Statement] = []
        self._choices = choices
        self._values = 0
        self._line = code.co_firstlineno
        functions = {one.co_name: one for one in code.co_consts if isinstance(one, CodeType)}
        functions |= {name: rest for name in code.co_names if (rest := _rest(names.get(name))) is not None}
        known = {name: self._named(name, functions.get(name)) for name in (*code.co_names, *functions)}
        self._code = code.replace(co_filename=__file__, co_consts=tuple(map(self._constant, code.co_consts)))
        cells = tuple(CellType(self._named(name)) for name in code.co_freevars)
        given: dict[bool, list[str]] = {False: [], True: []}
        for one in _parameters(code):
            given[one.kind >= Parameter.KEYWORD_ONLY].append(str(one))
        try:
            # What it imports is not there.
            made = FunctionType(self._code, {**known, "__builtins__": {}}, closure=cells)
            returned = made(*map(self._named, given[False]), **{name: self._named(name) for name in given[True]})
            last = self.statements[-1] if self.statements else None
            if last and not last.name and isinstance(returned, _Value) and _of(returned).statement is last:
                last.text = f"return {last.text}"
            else:
                self.write(f"return {_text(returned)}")
        except Exception:
            self.statements.append(_Statement("...", self.depth, None, self.tests))

    def lines(self) -> list[PythonLine]:
        """The lines after the last choice."""
        return [
            PythonLine(
                f"{one.name} = {one.text}" if one.name else one.text,
                one.depth,
                one.line,
                one.graph,
                one.rest.co_name if one.rest else None,
                goes_on_at(one.rest) if one.rest else None,
            )
            for one in self.statements
            if one.tests >= len(self._choices)
        ]

    def _named(self, name: str, rest: CodeType | None = None) -> "_Value":
        return _Value(_Expression(self, name.replace("___stack", "stack"), rest=rest))

    def _constant(self, value: Any) -> Any:
        """The constant, if it can do nothing; code becomes code that calls what has its name."""
        if isinstance(value, CodeType):
            return _CALLER.replace(co_names=(value.co_name,), co_freevars=value.co_freevars)
        if type(value) is tuple:
            return tuple(map(self._constant, value))
        return value if isinstance(value, (*_PLAIN, slice)) else self._named(_unread(value))

    def write(self, text: str, *, graph: bool = False, rest: CodeType | None = None) -> _Statement:
        """A new statement, with its line if that differs from that of the one before."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not self._code:
            frame = frame.f_back
        line = frame.f_lineno if frame else self._line
        one = _Statement(text, self.depth, line if line != self._line else None, self.tests, graph, rest)
        self._line = line
        self.statements.append(one)
        if len(self.statements) > _MOST_LINES:
            raise _UnreadableError
        return one

    def holds(self, test: str) -> bool:
        """Writes a test, and returns how it comes out this time."""
        self.write(f"if {test}:")
        held = self.tests >= len(self._choices) or self._choices[self.tests]
        self.tests += 1
        self.depth += held
        if self.tests > _MOST_TESTS:
            raise _UnreadableError
        return held

    def name(self, statement: _Statement) -> str:
        """The name of the value of a statement, which it gets here."""
        if not statement.name:
            self._values += not statement.graph
            statement.name = "graph_out" if statement.graph else f"value_{self._values}"
        return statement.name


@dataclass(slots=True)
class _Expression:
    """A text, after that of ``owner`` if it has one, or the value of a statement; ``rest``: that of the function."""

    run: _Run
    text: str = ""
    owner: Any = None
    statement: _Statement | None = None
    rest: CodeType | None = None

    @property
    def words(self) -> str:
        if self.statement is not None:
            return self.run.name(self.statement)
        if self.rest is not None:
            return _function(self.rest.co_name)
        return self.text if self.owner is None else f"{_part(self.owner)}{self.text}"


class _Value:
    """A value of the code that runs: all that is done with it is written down."""

    __slots__ = ("expression",)

    def __init__(self, expression: _Expression) -> None:
        object.__setattr__(self, "expression", expression)

    def __getattribute__(self, name: str) -> Any:
        return _Value(_Expression(_of(self).run, f".{name}", self))

    def __getitem__(self, key: Any) -> Any:
        return _Value(_Expression(_of(self).run, f"[{_key(key)}]", self))

    def __setattr__(self, name: str, value: Any) -> None:
        _of(self).run.write(f"{_part(self)}.{name} = {_text(value)}")

    def __setitem__(self, key: Any, value: Any) -> None:
        _of(self).run.write(f"{_part(self)}[{_key(key)}] = {_text(value)}")

    def __delitem__(self, key: Any) -> None:
        _of(self).run.write(f"del {_part(self)}[{_key(key)}]")

    def __iter__(self) -> Iterator[Any]:
        return iter([_Value(_Expression(_of(self).run, f"*{_part(self)}"))])

    def __contains__(self, item: Any) -> bool:
        return _of(self).run.holds(f"{_part(item)} in {_part(self)}")

    def __bool__(self) -> bool:
        return _of(self).run.holds(_text(self))

    def __repr__(self) -> str:
        return _of(self).words

    def __format__(self, how: str) -> str:
        return f"{{{_text(self)}{':' if how else ''}{how}}}"

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, *values: Any, **named: Any) -> Any:
        expression = _of(self)
        run = expression.run
        if values and type(values[0]) is tuple and isinstance(next(iter(values[0]), None), CellType):
            # It makes the function for the rest, with the variables that they share.
            for name, cell in zip(expression.rest.co_freevars if expression.rest else (), values[0], strict=False):
                if cell != CellType() and _text(cell.cell_contents) != name:
                    run.write(f"{name} = {_text(cell.cell_contents)}")
            return self
        if expression.text in (".__enter__", ".__exit__"):
            if expression.text == ".__enter__":
                run.write(f"with {_text(expression.owner)}:")
            run.depth = max(1, run.depth + (1 if expression.text == ".__enter__" else -1))
            return None
        name = _part(self)
        if name.endswith(_BOOKKEEPING):
            return None
        if name.endswith(_STORES) and len(values) == 3 and isinstance(values[1], str):
            setattr(values[0], values[1], values[2])
            return None
        nested = sum(one in _OF_NESTED for one in expression.rest.co_varnames) if expression.rest else 0
        given = [one for at, one in enumerate(values) if at >= nested or not isinstance(one, list) or one]
        shown = [_text(one) for one in given[:_MOST_ARGUMENTS]]
        shown += [key if key.startswith("**") else f"{key}={_text(one)}" for key, one in named.items()]
        shown += [f"… {len(given) - _MOST_ARGUMENTS} more"] if len(given) > _MOST_ARGUMENTS else []
        graph = name.startswith("__compiled_fn_")
        call = f"{'graph' if graph else name}({', '.join(shown)})"
        return _Value(_Expression(run, statement=run.write(call, graph=graph, rest=expression.rest)))


def _operators() -> None:
    def binary(sign: str, *, swapped: bool = False) -> Any:
        def operate(self: _Value, other: Any) -> _Value:
            left, right = (other, self) if swapped else (self, other)
            return _Value(_Expression(_of(self).run, f"{_part(left)} {sign} {_part(right)}"))

        return operate

    for name, sign in _SIGNS.items():
        setattr(_Value, f"__{name}__", binary(sign))
        if sign not in ("==", ">=", ">", "<=", "<", "!="):
            setattr(_Value, f"__r{name}__", binary(sign, swapped=True))
    for name, sign in _UNARY.items():
        setattr(
            _Value, f"__{name}__", lambda self, sign=sign: _Value(_Expression(_of(self).run, f"{sign}{_part(self)}"))
        )


_operators()


def _of(value: _Value) -> _Expression:
    expression: _Expression = object.__getattribute__(value, "expression")
    return expression


def _rest(function: Any) -> CodeType | None:
    """The code for the rest of a function that a function is, or that it makes a function of."""
    if not isinstance(function, FunctionType):
        return None
    held = (cell.cell_contents for cell in function.__closure__ or () if cell != CellType())
    codes = [function.__code__, *(one for one in held if isinstance(one, CodeType))]
    return next((code for code in codes if resumed_at(code.co_name) is not None), None)


def _text(value: Any) -> str:
    """The expression, without a call of any ``__repr__`` of the program's."""
    kind = type(value)
    if kind in (list, tuple):
        inner = ", ".join(map(_text, value))
        return f"[{inner}]" if kind is list else f"({inner}{',' * (len(value) == 1)})"
    if kind is dict:
        items = (
            key if type(key) is str and key.startswith("**") else f"{_text(key)}: {_text(one)}"
            for key, one in value.items()
        )
        return f"{{{', '.join(items)}}}"
    if kind is FunctionType:
        return _function(value.__code__.co_names[0])
    if isinstance(value, _PLAIN):
        return clipped(repr(value), _LONGEST)
    return repr(value) if kind is _Value else _unread(value)


def _unread(value: Any) -> str:
    # The classes of torch in C, such as its dtypes, are of a module that is called torch.
    return repr(value) if type(value).__module__ == "torch" else f"<{type(value).__name__}>"


def _part(value: Any) -> str:
    """The expression as part of another one."""
    text = _text(value)
    is_whole = not isinstance(value, _Value) or " " not in text or _of(value).owner is not None
    return text if is_whole else f"({text})"


def _key(key: Any) -> str:
    if isinstance(key, slice):
        return ":".join("" if end is None else _text(end) for end in (key.start, key.stop))
    return _text(key)
