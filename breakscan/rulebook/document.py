"""Reads one rule document: TOML front matter between ``+++`` lines, then Markdown.

The document is the rule, its help page and its tests.  ``docs/rules.md`` describes the form."""

import difflib
import re
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from breakscan.model.findings import ChangeKind, Holder, Kind, Place, Severity
from breakscan.model.words import InputError
from breakscan.rulebook.events import FORMS, OPERANDS, EventKind
from breakscan.source.toml_text import TomlProblem, parse_toml


class RuleError(InputError):
    """A rule document is malformed.  Names the file, the line (from 1) and, if there is one, the key."""

    def __init__(self, path: Path | str, line: int, message: str, key: str | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.key = key
        self.reason = message
        where = f" [{key}]" if key else ""
        super().__init__(f"{path}:{line}:{where} {message}")


ID = re.compile(r"BRK\d\d\d")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
GB = re.compile(r"GB\d{4}")

OWN = 0
"""The family of the rules that projects write for themselves: no shipped rule will ever be in it."""
FAMILIES = {
    OWN: "rules of your own",
    1: "data-dependent control flow",
    2: "tensor to Python values",
    3: "data-dependent shapes",
    4: "calls that Dynamo does not trace",
    5: "Python constructs",
    6: "autograd and modules",
    7: "recompiles and guards",
    8: "misuse of the compile API",
    9: "framework-owned",
}

DEFAULT_SEVERITY = {
    Kind.GRAPH_BREAK: Severity.WARNING,
    Kind.EXPORT: Severity.ERROR,
    Kind.RECOMPILE: Severity.INFO,
    Kind.WRONG_RESULT: Severity.ERROR,
    Kind.MISUSE: Severity.ERROR,
    Kind.PERFORMANCE: Severity.INFO,
}

MESSAGE_FIELDS = frozenset({"callee", "attribute", "text"})
ARGUMENT_STATES = frozenset({"absent", "present"})


@dataclass(frozen=True, slots=True)
class ArgumentPattern:
    """The condition on one argument of a call: one of some words of ``OPERANDS``, ``absent`` or ``present``."""

    index: int | None
    name: str | None
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EventPattern:
    """A static pattern of a rule.  An empty tuple is no condition."""

    event: EventKind
    form: tuple[str, ...] = ()
    operand: tuple[str, ...] = ()
    callee: tuple[str, ...] = ()
    attribute: tuple[str, ...] = ()
    place: tuple[Place, ...] = ()
    arguments: tuple[ArgumentPattern, ...] = ()
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class RecordedPattern:
    """The recorded breaks or recompiles that a rule explains.  An empty tuple is no condition; ``text`` has regular
    expressions, ``change`` and ``holder`` the words of :class:`ChangeKind` and :class:`Holder`."""

    gb: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    form: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    holder: tuple[str, ...] = ()
    times: int = 1
    """The least number of recompiles that the change caused."""


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced Python block of a rule.  ``label`` is ``breaks/1``, ``compiles/2``, …

    ``inputs`` is the source of the arguments of ``f``; ``None`` if the block defines ``make_inputs()``
    (one tuple of arguments) or ``make_calls()`` (a list of them: ``f`` is called once for each).  ``static`` is
    false if only a run can show it: ``check`` need not find it."""

    label: str
    source: str
    line: int
    form: str | None
    inputs: str | None
    static: bool = True

    @property
    def breaks(self) -> bool:
        return self.label.startswith("breaks/")


@dataclass(frozen=True)
class Rule:
    """A rule document.  ``summary``, ``why`` and ``instead`` are single lines without a full stop, and so is
    ``instead_exported``: it is for code that is exported without Dynamo, if ``instead`` is not.  ``flags`` are the
    settings of ``torch._dynamo.config`` each of which makes the code compile.  ``reporting`` code reports something
    that rarely happens: in a branch, the finding is conditional on the test of the branch.  ``deferred`` breaks show
    only where the graph ends, so that a later break that makes the function run eager hides them."""

    id: str
    name: str
    kind: Kind
    severity: Severity
    summary: str
    message: str
    why: str
    instead: str
    instead_exported: str | None
    match: tuple[EventPattern, ...]
    recorded: tuple[RecordedPattern, ...]
    rewrites: tuple[str, ...]
    flags: tuple[str, ...]
    reporting: bool
    deferred: bool
    body: str
    body_line: int
    """The line of the document at which the body starts."""
    path: Path

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The examples under *Breaks* and *Compiles*, read on demand.  Raises RuleError."""
        return tuple(_examples(self.body, self.body_line, self.path))

    def __repr__(self) -> str:
        # All of a document would be some 4,000 characters, in each break that somebody prints.
        return f"<Rule {self.id} {self.name}>"

    @property
    def family(self) -> int:
        return int(self.id[3])

    def examples_of(self, callee: str | None) -> list[str]:
        """The labels of the examples under *Breaks* that call it: the verdict on one function of a rule may change
        between versions while the others stay the same."""
        if callee is None:
            return []
        called = re.compile(rf"\b{re.escape(callee.rsplit('.', 1)[-1])}\(")
        return [example.label for example in self.examples if example.breaks and called.search(example.source)]

    @property
    def gb(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(gb for pattern in self.recorded for gb in pattern.gb))


def rule_words(rule: Rule | None) -> str:
    """``BRK101 branch-on-tensor``; nothing without a rule."""
    return f"{rule.id} {rule.name}" if rule else ""


def read_rule(path: Path, *, own: bool = False, checked: bool = True) -> Rule:
    """The rule in a document; ``own`` if it is one of a project, not of breakscan.  Raises RuleError, with file, line
    and key, if the document is not a valid rule.  What costs most is left out unless it is to be ``checked``: that
    examples are Python, and that the patterns are regular expressions."""
    try:
        parser = _Parser(path.read_text(encoding="utf-8"), path, own)
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(path, 1, f"cannot be read: {error}") from error
    rule = parser.rule()
    if checked:
        parser.check(rule)
    return rule


class TomlTable:
    """A table of a file, whose values are read key by key.  ``fail`` makes the error for a message and a key; ``name``
    begins the keys of the table there."""

    def __init__(self, values: Mapping[str, Any], fail: Callable[[str, str], Exception], name: str = "") -> None:
        self.values = values
        self._fail = fail
        self._name = name

    def error(self, message: str, key: str) -> Exception:
        """The error for a key of this table."""
        return self._fail(message, f"{self._name}{key}")

    def only(self, *keys: str) -> None:
        """Raises the error for a key that is none of these."""
        listed = ", ".join(keys)
        for key in self.values:
            if key not in keys:
                raise self.error(f"unknown key{nearest(key, keys) or f' (known: {listed})'}", key)

    def text(self, key: str, default: str | None = None) -> str:
        """One line of text, required where there is no default."""
        if key not in self.values and default is not None:
            return default
        value = self.values.get(key)
        if not isinstance(value, str) or not value.strip() or "\n" in value or "\0" in value:
            raise self.error("required: one line of text" if value is None else "must be one line of text", key)
        return value.strip()

    def word(self, key: str, allowed: Iterable[str], default: str | None = None) -> str:
        """One of some words."""
        value, known = self.values.get(key, default), list(allowed)
        if value not in known:
            raise self.error(f"must be one of {', '.join(known)}{nearest(value, known)}", key)
        return str(value)

    def strings(self, key: str, allowed: Iterable[str] = ()) -> tuple[str, ...]:
        """A list of strings, or one of them; of some words, if they are given."""
        value = self.values.get(key, [])
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not all(isinstance(one, str) and one and "\0" not in one for one in words):
            raise self.error("must be a string or a list of strings", key)
        known = sorted(allowed)
        for word in words:
            if known and word not in known:
                raise self.error(f"unknown word {word!r}{nearest(word, known)} (known: {', '.join(known)})", key)
        return tuple(words)

    def truth(self, key: str) -> bool:
        """True or false, which is the default."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.error("must be true or false", key)
        return value

    def tables(self, key: str) -> "list[TomlTable]":
        """The tables under a key, which may be a single one."""
        value = self.values.get(key, [])
        tables = value if isinstance(value, list) else [value]
        if not all(isinstance(table, dict) for table in tables):
            raise self.error(f"must be a table [{key}] or tables [[{key}]]", key)
        return [TomlTable(table, self._fail, f"{self._name}{key}.") for table in tables]


class _Parser:
    def __init__(self, text: str, path: Path, own: bool) -> None:
        self.path = path
        self.own = own
        self.lines = text.splitlines()
        marks = [i for i, line in enumerate(self.lines) if line.strip() == "+++"][:2]
        if marks[:1] != [0]:
            raise RuleError(path, 1, "a rule document starts with a line '+++'")
        if len(marks) < 2:
            raise RuleError(path, 1, "the front matter is not closed by a second line '+++'")
        self.end = marks[1]
        try:
            self.front = TomlTable(parse_toml("\n".join(self.lines[1 : self.end])), self.fail)
        except TomlProblem as problem:
            raise RuleError(path, 1 + problem.line if problem.line else self.end, str(problem)) from problem

    def fail(self, message: str, key: str | None = None) -> RuleError:
        return RuleError(self.path, self.line_of(key), message, key)

    def line_of(self, key: str | None) -> int:
        """The front matter line that sets the last part of a dotted key, or line 1."""
        if key is not None:
            last = re.escape(key.rsplit(".", 1)[-1])
            shape = re.compile(rf"\s*({last}\s*=|\[+([\w.]+\.)?{last}\]+|.*[{{,]\s*{last}\s*=)")
            for number, line in enumerate(self.lines[: self.end], 1):
                if shape.match(line):
                    return number
        return 1

    def rule(self) -> Rule:
        allowed = "id name kind severity summary message why instead instead_exported flags reporting deferred"
        front = self.front
        front.only(*allowed.split(), "match", "recorded", "rewrite")
        rule_id = front.text("id")
        if not ID.fullmatch(rule_id):
            form = "it must be BRK and three digits, the first of which is the family"
            raise self.fail(f"{rule_id!r} is not a rule id: {form}", "id")
        if (int(rule_id[3]) == OWN) is not self.own:
            wrong = "may become an id of breakscan" if self.own else "is for rules of projects"
            raise self.fail(f"{rule_id} {wrong}: rules of your own have ids from BRK001 to BRK099", "id")
        name = front.text("name")
        if not NAME.fullmatch(name):
            raise self.fail(f"{name!r} is not a rule name: it must be lower-case words joined by '-'", "name")
        if self.path.name != f"{rule_id}-{name}.md":
            raise self.fail(f"the file must be called {rule_id}-{name}.md", "id")
        kind = Kind(front.word("kind", [k.value for k in Kind]))
        summary = front.text("summary")
        match = tuple(map(self.event_pattern, front.tables("match")))
        recorded = tuple(map(self.recorded_pattern, front.tables("recorded")))
        (rewrite,) = front.tables("rewrite") or [TomlTable({}, self.fail)]
        rewrite.only("ids")
        if not match and not recorded:
            raise self.fail("a rule needs a [match] or a [recorded] table")
        # The body as it is printed has no blank lines around it.
        start = next((i for i in range(self.end + 1, len(self.lines)) if self.lines[i].strip()), self.end + 1)
        return Rule(
            id=rule_id,
            name=name,
            kind=kind,
            severity=Severity(front.word("severity", [s.value for s in Severity], DEFAULT_SEVERITY[kind].value)),
            summary=summary,
            message=self.message(front.text("message", summary)),
            why=front.text("why"),
            instead=front.text("instead"),
            instead_exported=front.text("instead_exported", "") or None,
            match=match,
            recorded=recorded,
            rewrites=rewrite.strings("ids"),
            flags=front.strings("flags"),
            reporting=front.truth("reporting"),
            deferred=front.truth("deferred"),
            body="\n".join(self.lines[start:]).strip() + "\n",
            body_line=start + 1,
            path=self.path,
        )

    def check(self, rule: Rule) -> None:
        """Raises RuleError for what is wrong with the examples and the regular expressions of a rule."""
        try:
            for pattern in rule.recorded:
                list(map(re.compile, pattern.text))
        except re.error as error:
            raise self.fail(f"not a regular expression: {error}", "recorded.text") from error
        for example in rule.examples:
            _check_python(example.source, "exec", example.line, self.path)
            if example.inputs is not None:
                _check_python(f"({example.inputs},)", "eval", example.line - 1, self.path)
        for section in ("breaks", "compiles") if rule.kind is not Kind.PERFORMANCE else ():
            if not any(example.label.startswith(section) for example in rule.examples):
                missing = f"no Python example under a heading '## {section.capitalize()}'"
                raise RuleError(self.path, len(self.lines), missing)

    def message(self, message: str) -> str:
        """A message that can be formatted."""
        try:
            fields = {name for _, name, _, _ in string.Formatter().parse(message) if name is not None}
        except ValueError as error:
            raise self.fail(str(error), "message") from error
        if unknown := fields - MESSAGE_FIELDS:
            known = ", ".join(sorted(MESSAGE_FIELDS))
            raise self.fail(f"unknown field {{{min(unknown)}}}: known are {known}", "message")
        return message

    def event_pattern(self, table: TomlTable) -> EventPattern:
        table.only("event", "form", "operand", "callee", "attribute", "place", "arguments", "scope")
        event = EventKind(table.word("event", [k.value for k in EventKind]))
        return EventPattern(
            event=event,
            form=table.strings("form", FORMS[event]),
            operand=table.strings("operand", OPERANDS),
            callee=table.strings("callee"),
            attribute=table.strings("attribute"),
            place=tuple(Place(p) for p in table.strings("place", [p.value for p in Place])),
            arguments=tuple(self.argument_pattern(a) for a in table.tables("arguments")),
            anywhere=table.word("scope", ("region", "anywhere"), "region") == "anywhere",
        )

    def argument_pattern(self, table: TomlTable) -> ArgumentPattern:
        table.only("index", "name", "is")
        index, name = table.values.get("index"), table.values.get("name")
        if index is None and name is None:
            raise self.fail("an argument needs an index, a name, or both", "match.arguments")
        if not isinstance(index, int | None) or not isinstance(name, str | None):
            raise self.fail("index is a number from 0, name a string", "match.arguments")
        states = table.strings("is", OPERANDS | ARGUMENT_STATES)
        if not states:
            raise self.fail("an argument needs what it is", "match.arguments")
        return ArgumentPattern(index, name, states)

    def recorded_pattern(self, table: TomlTable) -> RecordedPattern:
        table.only("gb", "text", "form", "change", "holder", "times")
        gb = table.strings("gb")
        for word in gb:
            if not GB.fullmatch(word):
                raise self.fail(f"{word!r} is not a graph-break id: it must be GB and four digits", "recorded.gb")
        times = table.values.get("times", 1)
        if type(times) is not int or times < 1:
            raise self.fail(f"{times!r} is not a number of at least 1", "recorded.times")
        return RecordedPattern(
            gb=gb,
            text=table.strings("text"),
            form=table.strings("form", FORMS[EventKind.BRANCH]),
            change=table.strings("change", [one.value for one in ChangeKind]),
            holder=table.strings("holder", [one.value for one in Holder]),
            times=times,
        )


def _examples(body: str, first_line: int, path: Path) -> Iterable[Example]:
    """The fenced Python blocks of a document's body, which starts at ``first_line``."""
    section, counts = "", {"breaks": 0, "compiles": 0}
    fence, start, info = "", 0, ""
    lines = body.splitlines()
    for number, line in enumerate(lines, first_line):
        if fence:
            if line.strip() == fence:
                if section in counts and info.split()[:1] == ["python"]:
                    counts[section] += 1
                    source = "\n".join(lines[start + 1 - first_line : number - first_line]) + "\n"
                    yield _example(f"{section}/{counts[section]}", source, start + 1, info, path)
                fence = ""
        elif opening := re.fullmatch(r"(`{3,})\s*(.*)", line.strip()):
            fence, info, start = opening[1], opening[2], number
        elif heading := re.fullmatch(r"##\s+(.*)", line):
            section = heading[1].strip().lower()
    if fence:
        raise RuleError(path, start, "the code block that starts here is not closed")


def _example(label: str, source: str, line: int, info: str, path: Path) -> Example:
    """``info`` is ``python [runtime] [form=FORM] [inputs=EXPRESSION, …]``; ``inputs`` ends the line."""
    head, has_inputs, inputs = info.partition("inputs=")
    form, static = None, True
    for word in head.split()[1:]:
        key, _, value = word.partition("=")
        if word == "runtime":
            static = False
        elif key == "form":
            form = value
        else:
            raise RuleError(path, line - 1, f"unknown word {word!r} after ```python: runtime, form=, inputs=")
    own = "def make_inputs" in source or "def make_calls" in source
    if own and has_inputs:
        raise RuleError(path, line - 1, "inputs= and make_inputs() or make_calls() exclude each other")
    return Example(label, source, line, form, None if own else (inputs.strip() or "torch.randn(4)"), static)


def _check_python(source: str, mode: Literal["exec", "eval"], line: int, path: Path) -> None:
    try:
        compile(source, str(path), mode)
    except SyntaxError as error:
        at = line - 1 + (error.lineno or 1)
        raise RuleError(path, at, f"the example is not valid Python: {error.msg}") from error


def nearest(word: object, allowed: Iterable[str]) -> str:
    """A hint ``: did you mean …?`` if an allowed word is close, else nothing."""
    text, known = str(word), list(allowed)
    close = difflib.get_close_matches(text, known, n=len(known) or 1)
    # Among equally close words, prefer the one with the same characters in place: for BRK1010 BRK101, not BRK110.
    ranks = {w: (difflib.SequenceMatcher(None, w, text).ratio(), sum(map(str.__eq__, w, text))) for w in close}
    best = max(close, key=ranks.__getitem__, default=None)
    return f": did you mean {best}?" if best else ""
