"""The calls of ``torch.compile`` in a file, and the tree of the file for edits of them."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import libcst as cst

from breakscan.fix.apply import applied
from breakscan.fix.support.build import argument, copied
from breakscan.fix.support.context import Edit, FileTree
from breakscan.fix.support.walking import walk
from breakscan.model.facts import FileFacts
from breakscan.model.remedy import COMPILE
from breakscan.prove.proof import Texts

_OPTIONS = frozenset(
    "fullgraph dynamic backend mode options name disable recompile_limit isolate_recompiles shapes_spec".split()
)
"""The keyword arguments of ``torch.compile``: other methods ``compile``, such as those of Keras, have others."""
_MAYBE_SKIPPED = (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp)


class Form(Enum):
    """The form in which ``torch.compile`` is called."""

    DECORATOR = "decorator"
    CALL = "call"
    """``torch.compile(model)``, or ``torch.compile(dynamic=True)(model)``."""
    METHOD = "method"
    """``model.compile()``."""


@dataclass(frozen=True, slots=True)
class CompileCall:
    """A call of ``torch.compile``: ``node`` is the decorator, or the expression whose value is what it returns;
    ``call`` has its arguments, None for ``@torch.compile`` alone; ``subject`` is the expression that is compiled, None
    for a decorator; ``target`` is its text, or the qualified name of what is decorated; ``given`` are arguments that it
    has from elsewhere, such as a partial."""

    form: Form
    node: cst.Decorator | cst.Call
    call: cst.Call | None
    subject: cst.BaseExpression | None
    target: str
    given: tuple[cst.Arg, ...] = ()

    @property
    def options(self) -> dict[str, cst.Arg]:
        """Its keyword arguments by name."""
        own = self.call.args if self.call is not None else ()
        every = [one for one in (*self.given, *own) if one.keyword is not None and one.value is not self.subject]
        return {one.keyword.value: one for one in every if one.keyword is not None}

    def arguments(self, file: "UserFile") -> str:
        """The code of its arguments besides the subject."""
        return ", ".join(file.code(one.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for one in self.options.values())

    def with_keyword(self, name: str, value: str) -> Edit | None:
        """The edit that gives it a keyword argument; None where that changes nothing."""
        was, new = self.options.get(name), cst.parse_expression(value)
        if value == "None" if was is None else was.value.deep_equals(new):
            return None
        if self.call is None:
            assert isinstance(self.node, cst.Decorator)
            decorator = cst.Call(self.node.decorator, [argument(new, name)])
            return Edit({self.node: self.node.with_changes(decorator=decorator)})
        if was is not None and was in self.call.args:
            return Edit({was: was.with_changes(value=new)})
        return Edit({self.call: with_option(self.call, name, value)})


@dataclass(frozen=True, slots=True)
class _Maker:
    """A function that returns compiled code.  ``takes_options`` says that it takes arguments of ``torch.compile``
    besides what it compiles; ``call`` is the call that makes it, and ``given`` the arguments that it has already."""

    takes_options: bool
    call: cst.Call | None = None
    given: tuple[cst.Arg, ...] = ()


CallKey = tuple[str, int]
"""A target, and the number of a call among those of a file with that target: equal after edits elsewhere."""


class UserFile(FileTree):
    """The tree of a file.  Raises ValueError if it cannot be parsed."""

    def __init__(self, text: str) -> None:
        super().__init__(text, FileFacts())
        self.needs: list[str] = []
        """The modules that new code needs to import."""

    @cached_property
    def imports(self) -> dict[str, str]:
        """The dotted name of each name that the file imports, wherever it does."""
        return {name: dotted for node in walk(self.module) for name, dotted in imported(node)}

    @cached_property
    def _top_imports(self) -> list[tuple[str, str]]:
        """The imports that all of the file sees."""
        outer = (one for one in self.module.body if not isinstance(one, cst.FunctionDef | cst.ClassDef))
        return [found for statement in outer for node in walk(statement) for found in imported(node)]

    @cached_property
    def last_import(self) -> int | None:
        """The number of the last import at the top of the file before something is compiled."""
        last, compiling = None, {call.node for call in self.calls}
        for number, statement in enumerate(self.module.body):
            parts = list(walk(statement))
            if not compiling.isdisjoint(parts):
                break
            if not isinstance(statement, cst.FunctionDef | cst.ClassDef) and any(list(imported(one)) for one in parts):
                last = number
        return last

    def dotted(self, node: cst.CSTNode) -> str | None:
        """The dotted name of an imported object."""
        if isinstance(node, cst.Name):
            return self.imports.get(node.value)
        if isinstance(node, cst.Attribute):
            owner = self.dotted(node.value)
            return f"{owner}.{node.attr.value}" if owner else None
        return None

    def named(self, dotted: str) -> str:
        """The code for an object of a module; of torch, by the name under which the file imports it."""
        package = dotted.partition(".")[0]
        alias = next((name for name, its in self._top_imports if its == package), None)
        if alias is None and package not in self.needs:
            self.needs.append(package)
        return f"{alias or package}{dotted[len(package) :]}"

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node, in one line."""
        return " ".join(self.module.code_for_node(node).split())

    @cached_property
    def functions(self) -> dict[str, cst.FunctionDef]:
        """The functions by their qualified names; of several, the last."""
        return {self.qualified_name(one): one for one in walk(self.module) if isinstance(one, cst.FunctionDef)}

    def qualified_name(self, node: cst.FunctionDef | cst.ClassDef) -> str:
        """The name as Python gives it, but without ``<locals>``."""
        around = (one.name.value for one in self.around(node) if isinstance(one, cst.FunctionDef | cst.ClassDef))
        return ".".join([*list(around)[::-1], node.name.value])

    @cached_property
    def calls(self) -> tuple[CompileCall, ...]:
        """The calls of ``torch.compile``, in the order of the text."""
        return tuple(call for node in walk(self.module) if (call := self._call_of(node)) is not None)

    def key_of(self, call: CompileCall) -> CallKey:
        same = [one for one in self.calls if one.target == call.target]
        return call.target, same.index(call)

    def find(self, key: CallKey) -> CompileCall | None:
        """The call with a key."""
        target, number = key
        return next(itertools.islice((one for one in self.calls if one.target == target), number, None), None)

    def _call_of(self, node: cst.CSTNode) -> CompileCall | None:
        if isinstance(node, cst.Decorator):
            above, maker = self.parents[node], self._maker(node.decorator)
            if maker is None or not isinstance(above, cst.FunctionDef | cst.ClassDef):
                return None
            return CompileCall(Form.DECORATOR, node, maker.call, None, self.qualified_name(above), maker.given)
        if not isinstance(node, cst.Call) or isinstance(self.parents[node], cst.Decorator):
            return None
        maker = self._maker(node.func)
        if maker is not None:
            subject = next(
                (one.value for one in node.args if one.keyword is None or one.keyword.value == "model"), None
            )
            call = node if maker.takes_options else maker.call
            return CompileCall(Form.CALL, node, call, subject, self.code(subject), maker.given) if subject else None
        if (
            isinstance(node.func, cst.Attribute)
            and node.func.attr.value == "compile"
            and not self.dotted(node.func)
            and all(one.keyword and one.keyword.value in _OPTIONS for one in node.args)
        ):
            return CompileCall(Form.METHOD, node, node, node.func.value, self.code(node.func.value))
        return None

    def _maker(self, node: cst.BaseExpression, names: frozenset[str] = frozenset()) -> _Maker | None:
        """The function that ``torch.compile``, a partial of it, ``torch.compile(…)`` without anything to compile, or a
        name for one of these is."""
        if self.dotted(node) == COMPILE:
            return _Maker(True)
        if isinstance(node, cst.Name):
            bound = self._assigned.get(node.value, ()) if node.value not in names else ()
            maker = self._maker(bound[0], names | {node.value}) if len(bound) == 1 else None
            return replace(maker, call=None) if maker is not None and maker.takes_options else maker
        if not isinstance(node, cst.Call):
            return None
        is_partial = self.dotted(node.func) == "functools.partial" and bool(node.args)
        inner = self._maker(node.args[0].value if is_partial else node.func, names)
        options = node.args[is_partial:]
        if inner is None or not inner.takes_options:
            return None
        if any(one.keyword is None or one.keyword.value == "model" for one in options):
            return None
        return _Maker(is_partial, node, (*options, *inner.given))

    @cached_property
    def _assigned(self) -> dict[str, list[cst.BaseExpression]]:
        """The values that are assigned to names, wherever that is."""
        found: dict[str, list[cst.BaseExpression]] = {}
        for node in walk(self.module):
            if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Name):
                found.setdefault(node.targets[0].target.value, []).append(node.value)
        return found

    def small_statement(self, node: cst.CSTNode) -> cst.BaseSmallStatement | None:
        """The simple statement that holds a node and evaluates it whenever it runs."""
        for one in (node, *self.around(node)):
            if isinstance(one, cst.BaseSmallStatement):
                return one
            if isinstance(one, (*_MAYBE_SKIPPED, cst.BaseCompoundStatement)):
                return None
        return None

    def split(
        self,
        small: cst.BaseSmallStatement,
        before: Sequence[cst.BaseStatement],
        becomes: cst.BaseSmallStatement | None,
        after: Sequence[cst.BaseStatement] = (),
    ) -> Edit | None:
        """The edit of a simple statement that has its line for itself: it becomes another one, with statements before
        and after."""
        line = self.parents[small]
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
            return None
        parts: list[cst.BaseStatement]
        parts = [*before, *([] if becomes is None else [cst.SimpleStatementLine([becomes])]), *after]
        if parts:
            parts[0] = parts[0].with_changes(leading_lines=line.leading_lines)
        # The comment behind the line stays with its last part.
        if parts and isinstance(parts[-1], cst.SimpleStatementLine):
            parts[-1] = parts[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
        return Edit({line: parts or None})

    def without(self, call: CompileCall) -> Edit | None:
        """The edit that leaves a call out: what it compiles runs as it is."""
        if call.form is Form.DECORATOR:
            return Edit({call.node: None})
        assert call.subject is not None
        small = self.small_statement(call.node)
        if small is not None and self._is_statement(small, call):
            _, body, loop, *_ = (*self.around(small), None, None)
            if isinstance(loop, cst.For) and loop.body is body and len(loop.body.body) == 1 and is_simple(loop.iter):
                # ``for block in model.blocks: block.compile()``
                return Edit({loop: None})
            return self.split(small, [], None)
        return Edit({call.node: copied(call.subject)}) if call.form is Form.CALL else None

    def _is_statement(self, small: cst.BaseSmallStatement, call: CompileCall) -> bool:
        """Return whether nothing is left of a statement without the call: ``model = torch.compile(model)``."""
        if isinstance(small, cst.Expr):
            return small.value is call.node
        if not isinstance(small, cst.Assign) or small.value is not call.node or len(small.targets) != 1:
            return False
        return self.code(small.targets[0].target) == call.target

    def in_place_of(self, call: CompileCall, lines: Callable[[str, str], str]) -> Edit | None:
        """The edit that writes ``lines(owner, arguments)`` in place of a call, whose result is then what it compiled:
        ``owner`` is the code of that, ``arguments`` the keyword arguments."""
        small = self.small_statement(call.node)
        if small is None or call.subject is None:
            return None
        arguments = call.arguments(self)
        if is_simple(call.subject):
            new = list(cst.parse_module(lines(call.target, arguments)).body)
            becomes = None if self._is_statement(small, call) else small.deep_replace(call.node, copied(call.subject))
            return self.split(small, new, becomes)  # type: ignore[arg-type]
        if isinstance(small, cst.Assign) and small.value is call.node and is_simple(small.targets[0].target):
            owner = self.code(small.targets[0].target)
            new = list(cst.parse_module(lines(owner, arguments)).body)
            return self.split(small, [], small.with_changes(value=copied(call.subject)), new)
        return None


def imported(node: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """The names that an import statement binds, with their dotted names."""
    if isinstance(node, cst.Import):
        for alias in node.names:
            name = alias.evaluated_name
            package = name.partition(".")[0]
            yield (alias.evaluated_alias or name, name) if alias.asname else (package, package)
    elif isinstance(node, cst.ImportFrom) and node.module is not None and not isinstance(node.names, cst.ImportStar):
        source = cst.Module([]).code_for_node(node.module)
        for alias in node.names if not node.relative else ():
            yield alias.evaluated_alias or alias.evaluated_name, f"{source}.{alias.evaluated_name}"


def is_simple(node: cst.CSTNode | None) -> bool:
    """True for a name, and for an attribute of one: to read it twice does no harm."""
    return isinstance(node, cst.Name) or (isinstance(node, cst.Attribute) and is_simple(node.value))


def with_option(call: cst.Call, name: str, value: str) -> cst.Call:
    """The call with one more keyword argument, on a line of its own if the others have theirs."""
    new = argument(cst.parse_expression(value), name)
    if not call.args:
        return call.with_changes(args=[new])
    *heads, last = call.args
    space = call.whitespace_before_args if isinstance(last.comma, cst.Comma) else cst.SimpleWhitespace(" ")
    between = heads[0].comma if heads else cst.Comma(whitespace_after=space)
    new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    last = last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*heads, last, new])


TextEdit = Callable[[UserFile], Edit | None]


def writer(*edits: tuple[str, TextEdit]) -> Callable[[Texts], Texts | None]:
    """The function that makes edits in files, one after another; it returns None where one of them does not fit."""

    def write(texts: Texts) -> Texts | None:
        changed: dict[str, str] = {}
        for path, edit in edits:
            text = changed.get(path, texts.get(path))
            new = edited(text, edit) if text is not None else None
            if new is None:
                return None
            changed[path] = new
        return changed

    return write


def edited(text: str, edit: TextEdit) -> str | None:
    """The text with an edit; None where it does not fit, or does not compile."""
    try:
        file = UserFile(text)
        made = edit(file)
        if made is None:
            return None
        new = applied(file, [made], file.needs)
        compile(new, "<edited>", "exec", dont_inherit=True)
    except (ValueError, SyntaxError, cst.CSTValidationError, cst.ParserSyntaxError):
        return None
    return new if new != text else None
