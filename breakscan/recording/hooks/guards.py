"""The guards of compiled frames, and why a frame is compiled again."""

import itertools
import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from time import perf_counter
from types import CodeType
from typing import Any

from breakscan.recording.hooks.hook import (
    PLAIN,
    Hook,
    Hooks,
    ObjectNumbers,
    code_of,
    current_compile_id,
    frame_above_dynamo,
    held_by,
    names_stored_after_break,
    stack_above_dynamo,
    stack_of,
    value_in_words,
)
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.parsers.guards import (
    DUPLICATE,
    HELD_BY_FUNCTION,
    LACKS,
    ON_PARAMETER,
    WHOLE_TENSOR,
    read_guard,
    subject_source,
)
from breakscan.recording.records import FailedGuard, FailedPart, GuardsBuilt, RecompileSeen, StackFrame

_CHECKS = 8  # times that guards are checked to measure it: the first ones fill the caches
_MOST_LOOKED_AT = 2000  # values that are looked at for all that changed before a recompile: about 20 ms
_ASKED = {"__getattr__", "__getattribute__", "__getitem__"}
_TORCHS = ("torch.", "builtins", "collections")
_MOST_PARTS = 8  # further guards of a version that failed, at most
_ON_STACK = re.compile(r"L\['___stack\d+'\](?:\.__self__)?")
_STATE = "GLOBAL_STATE"
_AUTOCAST = "autocast_state"


class GuardHook(Hook):
    """Adds to the guards of a compiled frame, which the structured trace has, the lines of the program that asked for
    them, and what checking them takes.  Torch measures the latter once, after it has flushed the processor's caches: on
    torch 2.13, 67 us for guards that take 1.4 us at each call.  So it is measured here, as calls do it."""

    name = "guards"
    without = "the lines that asked for guards are missing"
    wraps = ("torch._dynamo.guards:CheckFunctionManager.__init__",)

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._with_lines = self.guarded(_with_lines)
        self.objects = ObjectNumbers()

    def after(self, _: None, manager: Any, f_code: CodeType, output_graph: Any, *__: Any, **___: Any) -> None:
        built = self.hooks.merged.saw_guards(current_compile_id())
        if built is not None:
            guards = getattr(manager, "guard_manager", None)
            built = self._with_lines(built, f_code, output_graph, guards) or built
            self.hooks.write(replace(built, objects=self.objects.of(getattr(output_graph, "local_scope", None))))


class RecompileHook(Hook):
    """Records the guard that did not hold of each version, and the value that it was checked with."""

    name = "recompiles"
    without = "recompiles are read from its structured trace: without the new value of what changed"
    wraps = ("torch._dynamo.guards:get_and_maybe_log_recompilation_reasons",)
    imported_by = ("torch._dynamo.convert_frame",)
    reads = ("torch._C._dynamo.guards:GlobalStateGuard",)

    def before(self, entries: Any, frame: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("skip_logging") or (len(args) > 1 and args[1]):
            # Dynamo only asks; it recompiles nothing.
            return
        left = itertools.repeat(None, _MOST_LOOKED_AT)
        record = RecompileSeen(
            compile_id=current_compile_id(),
            frame=code_of(frame.f_code),
            guards=tuple(guard for entry in _entries(entries) if (guard := _failed_guard(entry, frame, left))),
            stack=stack_above_dynamo(),
            objects=self.hooks.of(GuardHook).objects.of(frame.f_locals),
            stored_as=names_stored_after_break(frame.f_code),
            runs=self.hooks.of(RunHook).runs,
        )
        self.hooks.merged.saw_recompile(record)


def _with_lines(built: GuardsBuilt, code: CodeType, output_graph: Any, manager: Any) -> GuardsBuilt:
    """The guards, each with the line that asked for it, where Dynamo knows one, and what checking them takes."""
    lines = _lines(output_graph.guards)
    return replace(
        built,
        frame=code_of(code),
        check_seconds=_check_seconds(manager, getattr(output_graph, "local_scope", None)),
        guards=tuple(replace(guard, line=_line(guard.subject, guard.kind, lines)) for guard in built.guards),
    )


def _check_seconds(manager: Any, scope: Any) -> float | None:
    """The seconds that checking all guards takes; None where this torch does not let us check them."""
    if not callable(getattr(manager, "check", None)) or scope is None:
        return None
    times = []
    for _ in range(_CHECKS):
        began = perf_counter()
        held = manager.check(scope)
        times.append(perf_counter() - began)
        if not held:
            return None
    return min(times)


def _lines(guards: Iterable[Any]) -> dict[tuple[str, str | None], StackFrame]:
    """The line by what is guarded and the kind of the guard; by the former alone, that of any."""
    import torch

    torchs = torch.__path__[0]
    lines: dict[tuple[str, str | None], StackFrame] = {}
    for guard in guards:
        if not guard.user_stack:
            continue
        own = [frame for frame in guard.user_stack if not frame.filename.startswith(torchs)]
        (line,) = stack_of((own or guard.user_stack)[-1:])
        for kind in (*(guard.guard_types or ()), None):
            lines.setdefault((guard.name, kind), line)
    return lines


def _line(subject: str | None, kind: str, lines: dict[tuple[str, str | None], StackFrame]) -> StackFrame | None:
    """Return the line of a guard. Guards on an object's attributes get the line of the object."""
    if subject is None:
        return None
    owner = subject.removesuffix(".__dict__")
    keys: list[tuple[str, str | None]] = [(subject, kind), (subject, None), (owner, kind), (owner, None)]
    return next((lines[key] for key in keys if key in lines), None)


def _entries(entries: Any) -> list[Any]:
    """The cache entries, newest first: a list since torch 2.13, a linked list before."""
    if isinstance(entries, list):
        return entries
    found = []
    while entries is not None:
        found.append(entries)
        entries = entries.next
    return found


def _failed_guard(entry: Any, frame: Any, left: Iterator[None]) -> FailedGuard | None:
    """The guard that failed of one version, and others that did, in as many values as are ``left``."""
    manager = entry.guard_manager
    info = manager.check_verbose(frame.f_locals)
    if info.result or not info.verbose_code_parts:
        return None
    scope = _Scope(manager, frame)
    # Of sizes, torch gives the guards of all: it is one check.
    texts = (
        list(info.verbose_code_parts) if len(info.verbose_code_parts) == 1 else scope.failing(info.verbose_code_parts)
    )
    text = texts[0] if texts else info.verbose_code_parts[0]
    if text.startswith(DUPLICATE):
        text = f"{DUPLICATE}: {scope.same(getattr(manager, 'no_tensor_aliasing_sources', ()))}"
    lacks = LACKS.match(text)
    text, old = (lacks and scope.lacking(lacks["object"], lacks["owner"], lacks["name"])) or (text, None)
    old, new = _states(manager) if text.startswith(_STATE) else (old, scope.value_of(text))
    others = [part for part in dict.fromkeys([*texts[1:], *scope.all_failing(left)]) if part != text]
    return FailedGuard(
        compile_id=str(entry.compile_id),
        text=scope.named(text),
        executed=info.num_guards_executed,
        new=new,
        stack=stack_of(getattr(info, "user_stack", None)),
        old=old,
        name=scope.name_of(text),
        also=tuple(FailedPart(scope.named(part), scope.value_of(part)) for part in others[:_MOST_PARTS]),
    )


class _Scope:
    """The values of a call, as the guards of one version see them."""

    def __init__(self, manager: Any, frame: Any) -> None:
        self._root: Any = getattr(manager, "root", None)
        self._globals = getattr(manager, "global_scope", None) or {}
        self._locals = {
            "L": frame.f_locals,
            "G": self._globals.get("G"),
            **(getattr(manager, "closure_vars", None) or {}),
        }

    def evaluate(self, source: str) -> Any:
        return eval(source, self._globals, self._locals)

    def value_of(self, guard: str) -> str | None:
        """The value of the guarded expression, in words; None if it is not known."""
        source = subject_source(guard)
        try:
            return None if source is None else value_in_words(self.evaluate(source))
        except Exception:
            return None

    def name_of(self, guard: str) -> str | None:
        """The name of the variable that is guarded, where torch's text has the function that holds it and a number."""
        held = HELD_BY_FUNCTION.match(subject_source(guard) or "")
        if held is None or not held["number"]:
            return None
        try:
            function, number = self.evaluate(held["function"]), int(held["number"])
            code = function.__code__
            if held["what"] == "__closure__":
                return str(code.co_freevars[number])
            return str(code.co_varnames[code.co_argcount - len(function.__defaults__) + number])
        except Exception:
            return None

    def named(self, guard: str) -> str:
        """The guard, where an object that was on the stack at a break has the name of the variable that holds it."""
        for found in {*_ON_STACK.findall(guard)}:
            try:
                value = self.evaluate(found)
            except Exception:
                continue
            if type(value) not in PLAIN:
                guard = guard.replace(found, next(self._expressions_for(value), found))
        return guard

    def _expressions_for(self, value: object) -> Iterator[str]:
        """The variables that hold an object, and the attributes of variables that do."""
        above = frame_above_dynamo()
        known = {**(above.f_locals if above else {}), **self._locals["L"]}
        variables = {name: one for name, one in known.items() if not name.startswith("___")}
        yield from (f"L['{name}']" for name, one in variables.items() if one is value)
        for name, one in variables.items():
            held = (item for part in held_by(one) for item in part.items())
            yield from (f"L['{name}'].{attribute}" for attribute, of in held if of is value)

    def lacking(self, owner: str | None, holder: str | None, name: str | None) -> tuple[str, str | None] | None:
        """The guard of the attribute that an object lacks, as torch writes one of its presence, and what it was."""
        owner = owner or holder
        managers, left = deque(getattr(self._root, "get_child_managers", list)()), _MOST_LOOKED_AT
        while managers and (left := left - 1):
            manager = managers.popleft()
            source, guards = manager.get_source(), manager.get_leaf_guards()
            of, _, attribute = source.rpartition(".")
            if of == owner and guards and name in (None, attribute) and self.value_of(source) is None:
                text = guards[-1].verbose_code_parts()[0]
                return f"hasattr({owner}, '{attribute}')  {text[text.find('#') :]}", read_guard(text).old
            managers.extend(manager.get_child_managers())
            managers.extend(one for _, one in getattr(manager, "get_key_value_managers", dict)().values() if one)
        return (f"hasattr({owner}, '{name}')", None) if name else None

    def same(self, sources: Iterable[str]) -> list[str]:
        """Those of expressions whose value is that of another one."""
        values = [(source, id(self.evaluate(source))) for source in sources]
        counts = Counter(value for _, value in values)
        return [source for source, value in values if counts[value] > 1]

    def failing(self, parts: Iterable[str]) -> list[str]:
        """The parts of a check that do not hold, as torch finds the one that it names."""
        failed = []
        for part in parts:
            try:
                holds = self.evaluate(part)
            except Exception:
                continue
            if holds is False:
                failed.append(part)
        return failed

    def all_failing(self, left: Iterator[None]) -> Iterator[str]:
        """The guards on single values that do not hold, those of arguments first, those of tensors property by
        property.  Of what hangs together only the outermost: another object has other attributes."""
        managers = deque(getattr(self._root, "get_child_managers", list)())
        # The next value is only taken off while there is a manager.
        while managers and next(left, self) is None:
            manager = managers.popleft()
            try:
                source = manager.get_source()
                value = self.evaluate(source)
                # Those that compare several values are no functions.
                failed = [one for one in manager.get_leaf_guards() if callable(one) and one(value) is False]
                for guard in failed:
                    text = guard.verbose_code_parts()[0]
                    of_tensor = WHOLE_TENSOR.match(text)
                    yield from differences(source, of_tensor, value) if of_tensor else (text,)
                if not failed and not _answers_itself(type(value)):
                    managers.extend(manager.get_child_managers())
                    # Modules hold others in a dictionary.
                    held: dict[int, Any] = getattr(manager, "get_key_value_managers", dict)()
                    managers.extend(one for pair in held.values() for one in pair if one is not None)
            except Exception:
                # What the value of then has, the one of now may lack.
                continue


def _answers_itself(kind: type) -> bool:
    """Return whether asking it for an attribute or item that it lacks runs code of the program or changes it."""
    asked = (vars(one).keys() & _ASKED for one in kind.__mro__ if not one.__module__.startswith(_TORCHS))
    return hasattr(kind, "__missing__") or any(asked)


def differences(source: str, then: re.Match[str], tensor: Any) -> Iterator[str]:
    """The guards that a tensor fails, as torch writes the first of them."""
    import torch

    expected = json.loads(then["size"].replace("None", "null"))
    device = then["device"].lower() + ("" if then["index"] == "None" else f":{then['index']}")
    fixed = f". {ON_PARAMETER}" if isinstance(tensor, torch.nn.Parameter) else ""
    pairs: list[tuple[str, object, object]] = [
        ("dtype", then["dtype"], str(tensor.dtype).removeprefix("torch.")),
        ("device", device, str(tensor.device)),
        ("rank", len(expected), tensor.dim()),
        ("requires_grad", f"requires_grad={int(then['grad'] == 'True')}", f"requires_grad={int(tensor.requires_grad)}"),
    ]
    if len(expected) == tensor.dim():
        sizes = enumerate(zip(expected, tensor.shape, strict=True))
        pairs += [(f"size mismatch at index {i}", old, new) for i, (old, new) in sizes if old is not None]
        # Strides follow from sizes, but not that of an expanded dimension.
        strides = enumerate(zip(json.loads(then["stride"].replace("None", "null")), tensor.stride(), strict=True))
        pairs += [(f"stride mismatch at index {i}", old, new) for i, (old, new) in strides if old and not new]
    for what, old, new in pairs:
        if old != new:
            what = what if " " in what else f"{what} mismatch"
            actual = "" if what.startswith("requires_grad") else f", actual {new}"
            yield f"tensor '{source}' {what}. expected {old}{actual}{fixed}"


def _states(manager: Any) -> tuple[str | None, str | None]:
    """The global state that a version is for, and the one now, where it is one switch that differs."""
    import torch

    guards: list[Any] = getattr(getattr(manager, "root", None), "get_leaf_guards", list)()
    texts = (guard.verbose_code_parts()[0] for guard in guards if type(guard).__name__ == _STATE)
    try:
        old = json.loads(next(texts).partition(" against ")[2])
        now: Any = torch._C._dynamo.guards.GlobalStateGuard()
        new = json.loads(now.__getstate__())
    except Exception:
        return None, None
    differing = [key for key in old if old[key] != new.get(key)]
    if len(differing) != 1:
        return None, None
    before, after = (
        any(state[_AUTOCAST]["enabled"]) if differing == [_AUTOCAST] else state[differing[0]] for state in (old, new)
    )
    # Of a dtype, the number means nothing.
    return (str(before), str(after)) if "dtype" not in differing[0] else (None, None)
