"""The changes of a program's text that ``tune`` tries, besides the edits of ``fix``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial

import libcst as cst

from breakscan.fix.support.context import Edit
from breakscan.fix.support.walking import walk
from breakscan.model.findings import ChangeKind, Holder
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.remedy import COMPILE, DYNAMO, NewLine, RemedyKind, Setting
from breakscan.model.words import short_path
from breakscan.prove.compile_calls import (
    CallKey,
    TextEdit,
    UserFile,
    edited,
    imported,
    with_argument,
    with_keyword,
    writer,
)
from breakscan.prove.tune_regions import (
    TunedProgram,
    of_blocks,
    of_callers,
    of_decorators,
    of_disabled,
    of_eager,
    of_enabled,
    of_loops,
    of_plain_calls,
    of_steps,
)
from breakscan.prove.tuning import Goal, ProgramChange

MOST_CHANGES = 20
MOST_OF_A_KIND = 5
_SIZES = {ChangeKind.SIZE, ChangeKind.BRANCH_ON_SIZE, ChangeKind.EQUAL_SIZES}
_LIMIT = "64"
"""The versions of a function that are allowed where their number is not known."""
_INDUCTOR = "torch._inductor.config"
_FROZEN = "no weight is changed after the first compiled call"
_REUSED = "the result of a compiled call is read, or copied, before the next call"


Changes = Callable[[TunedProgram], Iterator[ProgramChange]]
"""A kind of changes."""


def changes_of(program: TunedProgram, kinds: Sequence[Changes] | None = None) -> list[ProgramChange]:
    """The changes of some kinds, by default of all, that fit the program."""
    found: dict[str, ProgramChange] = {}
    for changes in (*SOLVING, *FASTER) if kinds is None else kinds:
        most = len(found) + MOST_OF_A_KIND
        for change in changes(program):
            if len(found) < most and change.name not in found and change.write(program.texts):
                found[change.name] = change
    return list(found.values())[:MOST_CHANGES]


def _of_remedies(program: TunedProgram, inductor: bool = False) -> Iterator[ProgramChange]:
    """Those of the remedies, and then all settings for breaks at once; settings of Inductor apart from others."""
    of_breaks: dict[str, Setting] = {}
    for problem in program.explanation.problems:
        for remedy in problem.remedies:
            if remedy.write is not None:
                path = os.path.abspath(remedy.write.path)
                write = writer((path, _line_edit(program, remedy.write)))
                name = f"{short_path(remedy.write.path)}:{remedy.write.line} {remedy.write.code}"
                yield ProgramChange(remedy.kind, name, write)
            if remedy.settings and (remedy.settings[0].owner == _INDUCTOR) is inductor:
                if problem.kind is ProblemKind.BREAK:
                    of_breaks |= {str(one): one for one in remedy.settings}
                yield _with_settings(program, remedy.settings, remedy.kind, problem)
    if len(of_breaks) > 1:
        yield _with_settings(program, list(of_breaks.values()), RemedyKind.SETTING)


def _with_settings(
    program: TunedProgram,
    settings: Sequence[Setting],
    kind: RemedyKind,
    problem: Problem | None = None,
    assumes: tuple[str, ...] = (),
) -> ProgramChange:
    edits: list[tuple[str, TextEdit]] = []
    for setting in settings:
        if setting.owner == COMPILE:
            keys: dict[str, list[CallKey]] = {}
            for one in program.calls_for(problem) if problem is not None else program.calls:
                keys.setdefault(one.path, []).append(one.key)
            for path, those in keys.items():
                file = program.file(path)
                known = frozenset(map(file.key_of, file.calls)) if file is not None else frozenset()
                edits.append((path, partial(_keyword, keys=those, known=known, setting=setting)))
        elif program.settings_file is not None:
            edits.append((program.settings_file, partial(_setting_edit, setting=setting)))
    names = (str(one) if one.owner == COMPILE else f"{one.name} = {one.value}" for one in settings)
    return ProgramChange(kind, ", ".join(names), writer(*edits), assumes)


def _keyword(file: UserFile, keys: Sequence[CallKey], known: Container[CallKey], setting: Setting) -> Edit | None:
    """The keyword at calls; where a change has written others in place of them, at those that were not ``known``."""
    calls = [call for key in keys if (call := file.find(key)) is not None]
    if len(calls) < len(keys):
        calls += [call for call in file.calls if file.key_of(call) not in known]
    value = None if setting.value == "None" else setting.value
    edits = [edit for call in calls if (edit := with_keyword(call, setting.name, value)) is not None]
    return Edit({node: new for edit in edits for node, new in edit.replace.items()}) if edits else None


def _setting_edit(file: UserFile, setting: Setting) -> Edit | None:
    """A line that sets it, below the imports and the lines like it; or its new value where the file sets it already."""
    dotted = f"{setting.owner}.{setting.name}"
    for node in walk(file.module):
        if isinstance(node, cst.Assign) and file.dotted(node.targets[0].target) == dotted:
            same = file.code(node.value) == setting.value
            return None if same else Edit({node: node.with_changes(value=cst.parse_expression(setting.value))})
    if setting.owner == "torch._functorch.config" and setting.owner not in file.module.code:
        file.needs.append(setting.owner)
    body, at = file.module.body, _last_import(file)
    new = cst.parse_module(f"{file.named(dotted)} = {setting.value}\n").body[0]
    if at is None:
        return Edit({body[0]: [new.with_changes(leading_lines=[]), body[0]]}) if body else None
    lines = [cst.EmptyLine(indent=False)]
    # Next to lines such as ``torch._dynamo.config.recompile_limit = 16``.
    while at + 1 < len(body) and isinstance(after := body[at + 1], cst.SimpleStatementLine):
        if not any(".config." in (file.dotted(node) or "") for node in walk(after)):
            break
        at, lines = at + 1, []
    return Edit({body[at]: [body[at], new.with_changes(leading_lines=lines)]})


def _last_import(file: UserFile) -> int | None:
    """The number of the last import at the top of the file before something is compiled."""
    last, compiling = None, {call.node for call in file.calls}
    for number, statement in enumerate(file.module.body):
        parts = list(walk(statement))
        if not compiling.isdisjoint(parts):
            break
        if not isinstance(statement, cst.FunctionDef | cst.ClassDef) and any(list(imported(one)) for one in parts):
            last = number
    return last


def _line_edit(program: TunedProgram, line: NewLine) -> TextEdit:
    """The edit that writes a new line: above the simple statement, or the header, that is at its line now."""
    file = program.file(line.path)
    statements = _statements(file) if file is not None else []
    spans = [file.span(one) for one in statements] if file is not None else []
    at = next((number for number, (first, _, last, _) in enumerate(spans) if first <= line.line <= last), None)
    if file is None or at is None:
        return lambda _: None
    codes = [file.code(one) for one in statements[: at + 1]]
    text = codes[at]
    number = codes[:at].count(text)

    def edit(now: UserFile) -> Edit | None:
        same = [one for one in _statements(now) if now.code(one) == text]
        if number >= len(same):
            return None
        small = same[number]
        new = cst.parse_module(f"{line.code}\n").body
        if "torch." in line.code:
            now.named("torch")
        # Once is enough.
        if now.code(new[0]) in map(now.code, now.parents[now.parents[small]].children):
            return None
        replaced = now.split(small, new, small)
        return Edit(replaced) if replaced is not None else None

    return edit


def _statements(file: UserFile) -> list[cst.BaseSmallStatement]:
    return [one for line in walk(file.module) if isinstance(line, cst.SimpleStatementLine) for one in line.body]


def _of_limits(program: TunedProgram) -> Iterator[ProgramChange]:
    """More versions, where nothing makes one of them serve all."""
    names = {remedy.name for problem in program.explanation.problems for remedy in problem.remedies}
    if "recompile_limit" in names or any(frame.over_limit for frame in program.explanation.frames):
        yield _with_settings(program, [Setting(DYNAMO, "recompile_limit", _LIMIT)], RemedyKind.SETTING)


def _of_sizes(program: TunedProgram) -> Iterator[ProgramChange]:
    """Open sizes and numbers, where these change: ``dynamic=True`` leaves ints of modules fixed."""
    for problem in program.explanation.problems:
        numbers = (one.holder for one in problem.changes if one.kind is ChangeKind.NUMBER)
        if any(one.kind in _SIZES for one in problem.changes) or any(one is not Holder.MODULE for one in numbers):
            if any(one.target.settings.get("dynamic") == "False" for one in program.calls_for(problem)):
                yield _with_settings(program, [Setting(COMPILE, "dynamic", "None")], RemedyKind.SHAPES, problem)
            yield _with_settings(program, [Setting(COMPILE, "dynamic", "True")], RemedyKind.SHAPES, problem)


def _of_other_calls(program: TunedProgram) -> Iterator[ProgramChange]:
    """Other calls than those of torch.compile, wherever they are."""
    for problem in program.explanation.problems:
        for remedy in problem.remedies:
            name, edit = _OTHER_CALLS.get(remedy.name, ("", None))
            edits = [(path, edit) for path, text in program.texts.items() if edit and edited(text, edit) is not None]
            if edits:
                yield ProgramChange(remedy.kind, name, writer(*edits))


def _calls_of(file: UserFile, owner: str) -> Iterator[tuple[cst.Call, dict[str, cst.Arg]]]:
    """The calls of what a module of torch holds, each with its keyword arguments."""
    for node in walk(file.module):
        if isinstance(node, cst.Call) and (file.dotted(node.func) or "").rpartition(".")[0] == owner:
            yield node, {one.keyword.value: one for one in node.args if one.keyword is not None}


def _tensor_rate(file: UserFile) -> Edit | None:
    """``lr=torch.tensor(1e-3)``."""
    rates: dict[cst.CSTNode, cst.Arg] = {}
    for call, keywords in _calls_of(file, "torch.optim"):
        rate = keywords.get("lr") or next((one for one in call.args[1:2] if one.keyword is None and not one.star), None)
        if rate is not None and "tensor" not in (code := file.code(rate.value)):
            rates[rate] = rate.with_changes(value=cst.parse_expression(f"{file.named('torch.tensor')}({code})"))
    return Edit(rates) if rates else None


def _workers_that_stay(file: UserFile) -> Edit | None:
    """``persistent_workers=True``."""
    loaders: dict[cst.CSTNode, cst.Call] = {
        call: with_argument(call, "persistent_workers", "True")
        for call, keywords in _calls_of(file, "torch.utils.data")
        if "num_workers" in keywords and "persistent_workers" not in keywords
    }
    return Edit(loaders) if loaders else None


def _without_inference_mode(file: UserFile) -> Edit | None:
    above = {node: file.parents[node] for node in walk(file.module) if file.dotted(node) == "torch.inference_mode"}
    plain = [node for node, one in above.items() if not getattr(one, "args", isinstance(one, cst.ImportAlias))]
    return Edit({node: cst.parse_expression(file.named("torch.no_grad")) for node in plain}) if plain else None


_OTHER_CALLS: Mapping[str, tuple[str, TextEdit]] = {
    "tensor-lr": ("the learning rate as a tensor", _tensor_rate),
    "no-inference-mode": ("torch.no_grad in place of torch.inference_mode", _without_inference_mode),
    "persistent-workers": ("DataLoader(..., persistent_workers=True)", _workers_that_stay),
}
"""The names of changes, and their edits, by the remedy."""


def _of_attributes(program: TunedProgram) -> Iterator[ProgramChange]:
    """The attribute or the item of a dictionary that changes, kept in another way or not at all."""
    for problem in program.explanation.problems:
        for change in problem.changes:
            worth = {remedy.name for remedy in problem.remedies}
            name = re.findall(r"\w+", change.subject)[-1:]
            at = (change.switched_at if "set-always" in worth else None) or change.asked_at or problem.site
            if change.kind is ChangeKind.SET_LATER and change.values[:1] == ("None",):
                worth.add("no-memo")
            if change.kind is ChangeKind.NUMBER and change.holder is not Holder.ARGUMENT:
                worth.add("tensor-number")
            for remedy, (what, edit, assumes) in _ATTRIBUTES.items():
                if name and remedy in worth:
                    write = writer((os.path.abspath(at.path), partial(edit, name=name[0])))
                    what, assumes = (text.format(name=name[0]) for text in (what, assumes))
                    yield ProgramChange(RemedyKind.CONSTRUCT, what, write, (assumes,))


def _tensor_number(file: UserFile, name: str) -> Edit | None:
    """``self.steps = torch.tensor(0)``, wherever the attribute or the item is given a number, or what its object is
    made with."""
    numbers: dict[cst.CSTNode, cst.BaseExpression] = {}
    for node in walk(file.module):
        for target, value in _bound(node):
            is_it = isinstance(target, cst.Attribute) and target.attr.value == name
            if isinstance(target, cst.Subscript | cst.SimpleString):
                is_it = file.code(target).rpartition("[")[2].strip("\"']") == name
            if is_it and (isinstance(value, cst.Integer | cst.Float) or _is_of_init(file, value)):
                numbers[value] = cst.parse_expression(f"{file.named('torch.tensor')}({file.code(value)})")
    return Edit(numbers) if numbers else None


def _bound(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """The targets of an assignment, or the key of an item, each with its value."""
    if isinstance(node, cst.DictElement):
        yield node.key, node.value
    elif isinstance(node, cst.Assign):
        target, value = node.targets[0].target, node.value
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            yield from ((one.value, its.value) for one, its in zip(target.elements, value.elements, strict=False))
        else:
            yield target, value


def _is_of_init(file: UserFile, value: cst.BaseExpression) -> bool:
    """True for an argument of the ``__init__`` around it."""
    function = next((one for one in file.around(value) if isinstance(one, cst.FunctionDef)), None)
    if function is None or function.name.value != "__init__" or not isinstance(value, cst.Name):
        return False
    return any(one.name.value == value.value for one in function.params.params)


def _set_always(file: UserFile, name: str) -> Edit | None:
    """``self.name = None`` at the beginning of the ``__init__`` of the class whose methods set it."""
    for statement in walk(file.module):
        if isinstance(statement, cst.Assign) and file.code(statement.targets[0].target) == f"self.{name}":
            scope = next((one for one in file.around(statement) if isinstance(one, cst.ClassDef)), None)
            first = file.functions.get(f"{file.qualified_name(scope)}.__init__") if scope is not None else None
            if first is None or not isinstance(first.body, cst.IndentedBlock):
                continue
            heads = sum("super().__init__" in file.code(one) for one in first.body.body[:1])
            heads += first.get_docstring() is not None
            new = cst.parse_module(f"self.{name} = None\n").body
            body = [*first.body.body[:heads], *new, *first.body.body[heads:]]
            return Edit({first.body: first.body.with_changes(body=body)})
    return None


def _without_memo(file: UserFile, name: str) -> Edit | None:
    """``self.mask = make(x)`` in each call, without the test that asks for what was kept."""
    for node in walk(file.module):
        if isinstance(node, cst.If) and node.orelse is None:
            body = node.body.body
            simple = [one.body[0] for one in body if isinstance(one, cst.SimpleStatementLine)]
            kept = [file.code(one.targets[0].target) for one in simple if isinstance(one, cst.Assign)]
            test = file.code(node.test)
            if len(kept) == len(body) and f"self.{name}" in kept and f"self.{name}" in test and " and " not in test:
                return Edit({node: list(body)})  # type: ignore[arg-type]
    return None


_ATTRIBUTES: Mapping[str, tuple[str, Callable[..., Edit | None], str]] = {
    "tensor-number": ("{name} as a tensor", _tensor_number, "{name} is only computed with"),
    "set-always": ("{name} is None where it is not set", _set_always, "None and no {name} at all mean the same"),
    "no-memo": ("{name} computed in each call", _without_memo, "what is kept depends on the call alone"),
}
"""The names of changes, their edits, and what they assume, by the remedy."""


def _of_modes(program: TunedProgram) -> Iterator[ProgramChange]:
    """The other modes of Inductor, CUDA graphs and blocks first, and its settings that are not on by default."""
    calls = program.calls
    is_default = all(one.target.backend in (None, "inductor") and "options" not in one.call.options for one in calls)
    modes = ["max-autotune-no-cudagraphs", *(["max-autotune"] if program.report.cuda else [])]
    compiles = is_default and program.goal is not Goal.COMPILE
    if compiles and program.report.cuda:
        yield _in_mode(program, "reduce-overhead")
    yield from of_blocks(program)
    if is_default and any("mode" in one.call.options for one in calls):
        yield _with_settings(program, [Setting(COMPILE, "mode", "None")], RemedyKind.SETTING)
    for mode in modes if compiles else ():
        yield _in_mode(program, mode)
    if compiles and not program.report.backward:
        setting = Setting(_INDUCTOR, "freezing", "True")
        yield _with_settings(program, [setting], RemedyKind.SETTING, assumes=(_FROZEN,))


def _in_mode(program: TunedProgram, mode: str) -> ProgramChange:
    assumes = () if mode.endswith("no-cudagraphs") else (_REUSED,)
    return _with_settings(program, [Setting(COMPILE, "mode", f'"{mode}"')], RemedyKind.SETTING, assumes=assumes)


SOLVING: tuple[Changes, ...] = (
    _of_remedies,
    of_loops,
    of_plain_calls,
    of_callers,
    of_decorators,
    of_steps,
    of_enabled,
    of_disabled,
    _of_sizes,
    _of_other_calls,
    _of_attributes,
    of_blocks,
    _of_limits,
)
"""The kinds of changes that may leave fewer problems, those first that are cheap and likely to."""
FASTER: tuple[Changes, ...] = (partial(_of_remedies, inductor=True), _of_modes, of_eager)
"""Those that may make a step faster that has no problems."""
