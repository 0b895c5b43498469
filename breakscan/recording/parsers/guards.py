"""Reads the text of guards: of those that failed, what each is about and what it demanded; and the tree of those that a
compiled frame has.  A failed guard is as ``GuardManager.check_verbose`` writes it on the supported versions: a Python
expression with a comment after it, or a sentence about a tensor, a type, a key or the global state."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from breakscan.model.findings import ChangeKind, Holder
from breakscan.model.words import clipped
from breakscan.recording.parsers.frames import frames_of
from breakscan.recording.records import FailedGuard, Guard

_DEEPEST = 100  # levels of nesting that ``ast.unparse`` takes from any stack that it is called in


def parse_expression(text: str) -> ast.expr | None:
    """The expression; None for what is none, or is nested too deeply to be one of torch's."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        nodes = [child for node in nodes for child in ast.iter_child_nodes(node)]
        if not nodes:
            return tree
    return None


_TENSOR = re.compile(
    r"tensor '(?P<source>.+?)' (?P<what>size|stride|rank|dtype|device(?: index)?|requires_grad|dispatch key set) "
    r"mismatch(?: at index (?P<index>\d+))?\. expected (?P<old>.+?)(?:, actual (?P<new>.+?))?"
    r"(?P<fixed>\. Guard failed on .+)?$"
)
WHOLE_TENSOR = re.compile(
    r"check_tensor\((?P<source>.+?), (?P<class>\w+), DispatchKeySet\((?P<device>\w+).*?\), torch\.(?P<dtype>\w+), "
    r"device=(?P<index>\w+), requires_grad=(?P<grad>\w+), size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])"
)
"""The guard of a tensor: all that it was compiled for."""
ON_PARAMETER = "Guard failed on a parameter"
_CHECKED = re.compile(r"___check_(?P<what>type_id|obj_id)\((?P<source>.+?), \d+\)(?:, type=<class '(?P<type>.+?)'>)?")
_NOT_TENSOR = re.compile(
    r"expected type of '(?P<source>.+?)' to be (?:a tensor type, '?|(?P<old><class '.+?'>),) ?but found (?P<new>.+)$"
)
"""Since 2.15, the class is named."""
LACKS = re.compile(r"(?:getattr failed on source (?P<object>.+)|KeyError on (?P<owner>.+)\.(?P<name>\w+))$")
"""An object lacks an attribute: where C++ looks it up, torch does not name it."""
_HAS = re.compile(
    r"(?P<absent>not )?(?:hasattr\((?P<owner>.+), '(?P<name>\w+)'\)"
    r"|___dict_contains\('(?P<key>\w+)', (?P<of>.+)\.__dict__\))$"
)
"""The guard of an attribute that an object has or lacks."""
_MISSING_KEY = re.compile(r"KeyError on (?P<source>.+)\[(?P<key>'[^']*'|\d+)\]$")
_CONTAINS = re.compile(r"(?P<absent>not )?___dict_contains\((?P<key>\(.+?\)|'[^']*'|[^,]+), (?P<source>.+)\)$")
_GLOBAL = re.compile(r"GLOBAL_STATE changed: (?P<what>.+)")
BEFORE_BREAK = "the value computed before the break"  # what Dynamo hands from one side of a break to the other
OF_METHOD = "the method's object"  # that for the object of a bound method that it hands over
HELD_BY_FUNCTION = re.compile(
    r"(?P<function>.+)\.(?P<what>__closure__|__defaults__|__kwdefaults__|keywords)"
    r"\[(?:(?P<number>\d+)|'(?P<name>\w+)')\](?:\.cell_contents)?"
)
"""A variable that a function closes over, or a default argument: by name, or by its number in the function."""
_VARIABLE = re.compile(r"\(HINT: guard on \"(\w+)\"\)")
_FREED = re.compile(r"Cache line invalidated because (?P<source>.+) got deallocated$")
_DTYPES = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Half": "float16",
    "Float": "float32", "Double": "float64", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "Bool": "bool", "BFloat16": "bfloat16",
}  # fmt: skip
"""The names of C++ for dtypes by those of Python."""
_OF_BASE = re.compile(r"(?<![\w.])([\w.\[\]']+)\._base\b")  # over the tensor that another is a view of
_WITHOUT_BASE = re.compile(r"'NoneType' object has no attribute '\w+'$")
"""Python's error for a tensor that is no view, where a guard asks for its base."""
DUPLICATE = "Duplicate tensor"
_QUOTED = re.compile(r'"([^"]+)"')
_LENGTH = re.compile(r"(len\(.+\)) != (\d+)$")
"""The length that a dictionary must not have any more: torch writes the failure in place of the guard."""
_AUTOGRAD = "Autograd"
_PIECES = {"size": "shape[{}]", "stride": "stride()[{}]", "rank": "dim()"}


@dataclass(frozen=True, slots=True)
class ParsedGuard:
    """A guard as torch's text has it.  ``subject`` is the expression that is guarded, in the names of the program, and
    ``holder`` what holds its value; ``demand`` is what has to hold, such as ``n is a tensor``; ``old`` and ``new`` are
    the values then and now, if the text has them.  ``is_bound`` says that the old value is only known to be within
    bounds, ``is_view`` that the subject was a view of another tensor and is none now, ``is_parameter`` that it is of a
    tensor that torch keeps fixed, as it does with parameters."""

    kind: ChangeKind
    subject: str
    demand: str
    old: str | None = None
    new: str | None = None
    holder: Holder = Holder.NONE
    is_bound: bool = False
    is_view: bool = False
    is_parameter: bool = False
    function: str = ""  # the function that holds the variable

    @property
    def view(self) -> str | None:
        """The tensor that is a view, where the guard is about its base."""
        base = _OF_BASE.match(self.subject)
        return self.subject if self.is_view else base[1] if base else None

    @property
    def of_signature(self) -> bool:
        """Return whether the guard is about which arguments a call passes, rather than about one of them."""
        return _SIGNATURE.match(self.subject) is not None

    @property
    def owner(self) -> str:
        """The tensor or the object of which the guarded expression is a size, a property or an attribute."""
        owner = _PROPERTY.match(self.subject)
        return self.function or (owner["measured"] or owner["container"] or owner["whole"] if owner else "")

    @property
    def dimension(self) -> int | None:
        found = _PROPERTY.match(self.subject)
        return int(found["dimension"]) if found and found["dimension"] else None


_SIGNATURE = re.compile(r"(?:len\((?:kw)?args\)|(?:not )?'\w+' in kwargs|list\(kwargs\)\[\d+\])$")
_PROPERTY = re.compile(
    r"(?:(?:len|list)\((?P<measured>[^()]+)\)(?:\[\d+\])?|.+ in (?P<container>.+)"
    r"|(?P<whole>.+?)\.(?:(?:shape|stride\(\))\[(?P<dimension>\d+)\]|\w+(?:\(\))?))$"
)
"""The length or a key of a container, a size or a stride, another property or an attribute."""
_STATES = {
    "GLOBAL_STATE": "grad mode, autocast, default dtype and other global settings are as they were",
    "TORCH_FUNCTION_MODE_STACK": "the same torch function modes are active",
    "DEFAULT_DEVICE": "the default device is as it was",
}
_KINDS = (
    # The layout before sizes: strides are those of sizes, as a rule.
    (ChangeKind.LAYOUT, re.compile(r"\.stride\(\)|\._base\b")),
    (ChangeKind.BRANCH_ON_SIZE, re.compile(r"\.size\(\)|\.shape\[")),
    (ChangeKind.TRAINING, re.compile(r"\.training\b")),
    (ChangeKind.SET_LATER, re.compile(r"\.\w+ is (?:not )?None$")),
    (ChangeKind.LENGTH, re.compile(r"\blen\(|^not ")),
    (ChangeKind.KEYS, re.compile(r"^list\(dict\.keys\(")),
    (ChangeKind.FUNCTION, re.compile(r"\.__code__\b|function_or_method")),
    (ChangeKind.GLOBAL_STATE, re.compile(r"^___check_torch_function_mode_stack")),
    (ChangeKind.NUMBER, re.compile(r"(?:[=!]=|<=?|>=?) [(\[]?-?(?:\d|inf|float)|^-?\d[\d.]* <=? ")),
    (ChangeKind.FLAG, re.compile(r"== (?:True|False|None|\(|\[|'|\"|torch\.|device\()| is (?:not )?None$")),
)
"""The kinds of expressions, the first that fits."""
_HOLDERS = (
    (Holder.RESULT, re.compile(r"___stack\d+(?!'\]\.__self__\.)\b|__(?:nested|resume)_frame_values|___\w*?stack\b")),
    (Holder.CLOSURE, re.compile(r"\.__closure__\[")),
    (Holder.DEFAULT, re.compile(r"\.__(?:kw)?defaults__|\.keywords\[")),
    (Holder.MODULE, re.compile(r"considers integer attributes of the nn\.Module")),
    (Holder.GLOBAL, re.compile(r"\bG\['\w+'\](?!\.(?!size|stride|item|dim))")),
    (
        Holder.ATTRIBUTE,
        re.compile(
            r"\bhasattr\(|\.__dict__\)|\b[LG]\['\w+'\](?:\[[^\]]+\])*\.(?!size|shape|stride|item|dim|_base|__code__|__dict__(?!\[))\w"
        ),
    ),
    (Holder.ARGUMENT, re.compile(r"\bL\['")),
)
_OWN_WORDS = (ChangeKind.SIZE, ChangeKind.RANK, ChangeKind.DTYPE, ChangeKind.DEVICE, ChangeKind.REQUIRES_GRAD)
_KIND_OF = {
    **{kind.value.replace("-", "_"): kind for kind in _OWN_WORDS},
    "stride": ChangeKind.LAYOUT,
    "device index": ChangeKind.DEVICE,
}
"""The kinds by torch's words for what differs of a tensor."""
_STATE_KINDS = {"grad_mode": ChangeKind.GRAD_MODE}
NONE_FAILED = ParsedGuard(
    ChangeKind.OTHER, "", "no guard fails when asked again: two threads may have compiled it at once"
)
"""Used when all guards of a version hold by the time that torch looks for the one that failed."""


def watched_source(text: str) -> str | None:
    """As :func:`subject_source`, also for a property of a tensor."""
    found = _TENSOR.match(_first_line(text))
    if found is None or found["what"] == "dispatch key set":
        return subject_source(text)
    what = found["what"].partition(" ")[0]
    return f"{found['source']}.{_PIECES.get(what, what).format(found['index'])}"


def subject_source(text: str) -> str | None:
    """The expression whose value now is to be asked for, as Python source over ``L`` and ``G``; None where the
    text has the value itself, or where there is none."""
    text = _first_line(text)
    if found := _CHECKED.match(text):
        return found["source"]
    if found := _HAS.match(_code(text)):
        return f"{found['owner'] or found['of']}.{found['name'] or found['key']}"
    side = _guarded_side(text)
    return None if side is None else ast.unparse(side)


def read_guard(text: str, name: str | None = None, stored_as: Sequence[str] = ()) -> ParsedGuard:
    """Return the guard that the text describes.  ``name`` is that of the variable, where the text has the function that
    holds it; ``stored_as`` are those that get the value that crosses a break, or its parts."""
    text = _first_line(text)
    code = _code(text)
    # A comment has the user's line, and what torch says of modules.
    named = (holder for holder, asks in _HOLDERS if asks.search(text if holder is Holder.MODULE else code))
    holder = next(named, Holder.NONE)
    guard = replace(_read_guard(text), holder=holder)
    if holder is Holder.RESULT:
        parts = [""] if len(stored_as) == 1 else [f"[{number}]" for number in range(len(stored_as))]
        for part, stored in zip(parts, stored_as, strict=True):
            value = BEFORE_BREAK + part
            subject, demand = (words.replace(value, stored) for words in (guard.subject, guard.demand))
            guard = replace(guard, subject=subject, demand=demand, old=guard.old and guard.old.replace(value, stored))
        return guard
    if holder not in (Holder.CLOSURE, Holder.DEFAULT):
        return guard
    hint, source = _VARIABLE.search(text), subject_source(text) or ""
    held = HELD_BY_FUNCTION.match(source)
    variable = name or (hint[1] if hint else None) or (held["name"] if held else None)
    if held is None or variable is None:
        return guard
    subject = variable + readable(source[held.end() :])
    demand = guard.demand if guard.old is None else f"{subject} == {guard.old}"
    return replace(guard, subject=subject, demand=demand, function=readable(held["function"]))


def _read_guard(text: str) -> ParsedGuard:
    if found := _TENSOR.match(text):
        return _read_tensor(found)
    if found := _NOT_TENSOR.match(text):
        subject, old, new = readable(found["source"]), _class_name(found["old"] or "Tensor"), _class_name(found["new"])
        old = "a tensor" if old == "Tensor" else with_article(old)
        new = new if new == "None" else with_article(new)
        return ParsedGuard(ChangeKind.TENSOR_TYPE, subject, f"{subject} is a tensor", old, new)
    if found := _CHECKED.match(text):
        return _read_checked(found)
    if found := _MISSING_KEY.match(text):
        subject = f"{found['key']} in {readable(found['source'])}"
        return ParsedGuard(ChangeKind.KEYS, subject, subject, "True", "False")
    if found := _HAS.match(_code(text)):
        subject = f"{readable(found['owner'] or found['of'])}.{found['name'] or found['key']}"
        if found["absent"]:
            return ParsedGuard(ChangeKind.SET_LATER, subject, f"{subject} is missing", "missing")
        return ParsedGuard(ChangeKind.SET_LATER, subject, f"{subject} is set", "set", "missing")
    if found := _CONTAINS.match(_code(text)):
        subject = f"{found['key']} in {readable(found['source'])}"
        old, new = ("False", "True") if found["absent"] else ("True", "False")
        return ParsedGuard(ChangeKind.KEYS, subject, f"{found['absent'] or ''}{subject}", old, new)
    if found := LACKS.match(text):
        # Without its name, nothing can be done about it.
        kind = ChangeKind.SET_LATER if found["name"] else ChangeKind.OTHER
        subject = (
            readable(f"{found['owner']}.{found['name']}")
            if found["name"]
            else f"an attribute of {readable(found['object'])}"
        )
        return ParsedGuard(kind, subject, f"{subject} is set", "set", "missing")
    if found := _GLOBAL.match(text):
        states = found["what"].split()
        kind = _STATE_KINDS.get(states[0], ChangeKind.GLOBAL_STATE)
        return ParsedGuard(kind, ", ".join(states), f"{', '.join(states)} is unchanged")
    if found := _LENGTH.match(text):
        text = f"{found[1]} == {found[2]}"
    if text.startswith("BACKEND_MATCH"):
        return ParsedGuard(ChangeKind.BACKEND, "the backend", "the backend is the same as before")
    if found := _FREED.match(text):
        subject = readable(found["source"])
        return ParsedGuard(ChangeKind.FREED, subject, f"{subject} is still in memory")
    if text.startswith("Unexpected recompilation:"):
        return NONE_FAILED
    if text.startswith(DUPLICATE):
        subject = " and ".join(readable(name) for name in _QUOTED.findall(text)) or "two inputs"
        return ParsedGuard(ChangeKind.ALIAS, subject, f"{subject} are not the same tensor")
    return _read_expression(text)


def lost_view(text: str, demands: Iterable[str]) -> ParsedGuard | None:
    """The guard, where a version with these demands failed as an input is no view: torch's text is Python's error."""
    if not _WITHOUT_BASE.match(_first_line(text)):
        return None
    views = {base[1] for demand in demands for base in _OF_BASE.finditer(demand)}
    if not views:
        return None
    subject = views.pop() if len(views) == 1 else "an input"
    view = "a view of another tensor"
    return ParsedGuard(ChangeKind.LAYOUT, subject, f"{subject} is {view}", view, "no view", is_view=True)


@lru_cache(maxsize=1 << 16)
def read_demand(kind: str, text: str) -> str:
    """The demand of a guard of a compiled function.  ``kind`` is torch's, such as ``TENSOR_MATCH``."""
    if kind in _STATES:
        return _STATES[kind]
    if "top_saved_tensors_hooks" in text:
        return "the hooks on saved tensors are as they were"
    if found := WHOLE_TENSOR.match(text):
        device = found["device"].lower() + ("" if found["index"] == "None" else f":{found['index']}")
        size, stride = (found[key].replace("None", "any") for key in ("size", "stride"))
        tensor = f"{readable(found['source'])} is a {found['dtype']} {found['class']} on {device}"
        return f"{tensor} of size {size} and stride {stride}, with requires_grad={found['grad']}"
    return read_guard(text).demand


def leaves_open(demands: Iterable[str], tensor: str, dimension: int) -> bool:
    """Return whether a version whose guards have these demands holds for any size of a dimension of a tensor."""
    sizes = re.compile(rf"{re.escape(tensor)} is an? \S+ .* of size \[(.*?)\] and stride ")
    found = next(filter(None, map(sizes.match, demands)), None)
    parts = found[1].split(", ") if found else []
    return dimension < len(parts) and parts[dimension] == "any"


def readable(source: str) -> str:
    """An expression over Dynamo's scopes as the user would write it: ``self.linear.weight`` for
    ``L['self']._modules['linear']._parameters['weight']``."""
    text = re.sub(r"\b[LG]\['([^']+)'\]", r"\1", source)
    text = re.sub(r"\.__dict__\['(_modules|_parameters|_buffers)'\]", r".\1", text)
    text = re.sub(r"\.(?:_modules|_parameters|_buffers|__dict__)\['([^']+)'\]", r".\1", text)
    text = re.sub(r"\.__dict__\b|\.__closure__\[\d+\]\.cell_contents", "", text)
    text = re.sub(r"\.size\(\)\[", ".shape[", text)
    text = re.sub(r"dict\.__getitem__\((.+?), list\(dict\.keys\(\1\)\)\[(\d+)\]\)", r"list(\1.values())[\2]", text)
    text = re.sub(r"list\(dict\.keys\(([^()]+)\)\)", r"list(\1)", text)
    text = re.sub(r"(\._\w*hooks)\[list\([^()]+\1\)\[(\d+)\]\]", r"\1[\2]", text)
    text = re.sub(r"___from_numpy\(([^()]+)\)", r"\1", text)
    text = re.sub(r"\b__builtins_dict___\d+\['(\w+)'\]", r"\1", text)
    text = re.sub(r"\b__import_(\w+)", lambda found: found[1].replace("_dot_", "."), text)
    text = re.sub(r"\b___stack\d+\.__self__\b", OF_METHOD, text)
    return re.sub(r"___stack\d+|__(?:nested|resume)_frame_values(?:\[\d+\])*", BEFORE_BREAK, text)


def with_article(noun: str) -> str:
    """``a Linear``, ``an Embedding``."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _first_line(text: str) -> str:
    return text.splitlines()[0].strip() if text.strip() else ""


def _code(text: str) -> str:
    """The text without the comment after it, where it is Python."""
    node = parse_expression(text)
    return ast.unparse(node) if node else re.split(r"\s{2,}#", text)[0].strip()


def _class_name(text: str) -> str:
    found = re.match(r"<class '(?:\w+\.)*(\w+)'>", text)
    return {"NoneType": "None"}.get(found[1], found[1]) if found else text


def _read_tensor(found: re.Match[str]) -> ParsedGuard:
    what, tensor = found["what"], readable(found["source"])
    old, new, is_parameter = found["old"], found["new"], bool(found["fixed"])
    kind = _KIND_OF.get(what, ChangeKind.TENSOR)
    if what == "requires_grad":
        before = old.endswith("=1")
        subject = f"{tensor}.requires_grad"
        demand, old, new = f"{subject} is {before}", str(before), str(not before)
    elif what == "dispatch key set" and new and (_AUTOGRAD in old) != (_AUTOGRAD in new):
        # Tensors that are made under inference_mode() have no keys of autograd.
        subject = f"{tensor}.is_inference()"
        kind, old, new = ChangeKind.INFERENCE, str(_AUTOGRAD not in old), str(_AUTOGRAD not in new)
        demand = f"{subject} is {old}"
    else:
        subject = f"{tensor}.{_PIECES.get(what, what.replace(' ', '_')).format(found['index'])}"
        if what == "dtype":
            old, new = (_DTYPES.get(name, name) for name in (old, new))
        demand = f"{subject} == {old}"
    return ParsedGuard(kind, subject, demand, old, new, is_parameter=is_parameter)


def _read_checked(found: re.Match[str]) -> ParsedGuard:
    subject, name = readable(found["source"]), (found["type"] or "").rsplit(".", 1)[-1]
    if found["what"] == "type_id":
        demand = f"{subject} is {with_article(name) if name else 'of the same type'}"
        kind = ChangeKind.FUNCTION if name.endswith("function_or_method") else ChangeKind.TYPE
        return ParsedGuard(kind, subject, demand, with_article(name) if name else None)
    is_function = subject.endswith(".__code__") or name.endswith(("function", "method"))
    kind = ChangeKind.FUNCTION if is_function else ChangeKind.OBJECT
    subject = subject.removesuffix(".__code__")
    return ParsedGuard(kind, subject, f"{subject} is the same object", "another object")


def _guarded_side(text: str) -> ast.expr | None:
    """The side of a comparison that reads a value of the program; the whole of another expression."""
    node = parse_expression(text)
    if node is None:
        return None
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return next((side for side in sides if _reads_scope(side)), None)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    return node if _reads_scope(node) and not isinstance(node, ast.BoolOp) else None


def _reads_scope(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Name) and n.id in ("L", "G") for n in ast.walk(node))


def _read_expression(text: str) -> ParsedGuard:
    code = _code(text)
    demand = readable(code)
    node, side = parse_expression(text), _guarded_side(text)
    if node is None:
        return ParsedGuard(ChangeKind.OTHER, "", demand)
    kind = next((kind for kind, asks in _KINDS if asks.search(code)), ChangeKind.OTHER)
    if kind is ChangeKind.BRANCH_ON_SIZE and "duck sizing" in text:
        kind = ChangeKind.EQUAL_SIZES
    if side is None:
        return ParsedGuard(kind, demand, demand)
    subject = readable(ast.unparse(side))
    only = node.ops[0] if isinstance(node, ast.Compare) and len(node.ops) == 1 else None
    if isinstance(node, ast.Compare) and isinstance(only, ast.Is):
        other = node.comparators[0]
        if _reads_scope(other):
            return ParsedGuard(ChangeKind.ALIAS, f"{subject} and {readable(ast.unparse(other))}", demand)
        return ParsedGuard(kind, subject, demand, ast.unparse(other))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ParsedGuard(kind, subject, f"{subject} is empty or false", "empty or false")
    if isinstance(node, ast.Compare) and isinstance(only, ast.Eq):
        return ParsedGuard(kind, subject, demand, readable(ast.unparse(node.comparators[0])))
    is_bound = isinstance(node, ast.Compare)
    return ParsedGuard(kind, subject, demand, f"within {demand}" if is_bound else None, is_bound=is_bound)


LONGEST_GUARD = 400  # characters of a guard that a recording keeps
_ENTRY = re.compile(r"^(?P<bars>(?:\| )*)\+- (?P<kind>\w+)(?:: (?P<text>.*))?$")
_SOURCE = re.compile(r"source=(?P<source>.+?), accessed_by=")
_COMMENT = re.compile(r"\s{2,}# ")
_IDENTITY = re.compile(r"(___check_(?:type|obj)_id\(.+?, )\d+\)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_MARK = re.compile(r"hasattr\(.+, '_dynamo_\w+'\) == False$")


def guards_of_tree(text: str) -> Iterator[Guard]:
    """The guards in the order in which they are checked, without the lines that asked for them.  Left out are those
    that hold as long as nobody marks a tensor's dimensions: up to five a tensor, which say nothing of the program."""
    sources: list[str | None] = []
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is None:
            continue
        depth = len(entry["bars"]) // 2
        del sources[depth:]
        kind, body = entry["kind"], entry["text"] or ""
        if not kind.isupper():
            found = _SOURCE.match(body)
            sources += [None] * (depth - len(sources))
            sources.append(found["source"] if found else None)
            continue
        check = _COMMENT.split(body, maxsplit=1)[0].strip()
        if not _MARK.match(check):
            subject = next((source for source in reversed(sources) if source), None)
            # Without the parts that differ from run to run.
            text = _ADDRESS.sub("", _IDENTITY.sub(r"\g<1>0)", check))
            yield Guard(kind, clipped(text, LONGEST_GUARD), None, subject)


_LINE = re.compile(r"# (?P<path>\S+\.py):(?P<line>\d+) in (?P<name>\S+)")


def line_of(text: str) -> tuple[str, int, str] | None:
    """The line that a guard is for, as the comment after it has it: the end of the path, the line, the function."""
    found = _LINE.search(text)
    return (found["path"], int(found["line"]), found["name"]) if found else None


_REASON = re.compile(r"(?P<id>!?\d+(?:/\d+)+): (?P<text>.*)", re.S)


def failed_guard(reason: str) -> FailedGuard:
    """The guard of a reason such as ``0/1: flag == 'a'  # …``, which the traced stack may follow."""
    found = _REASON.match(reason)
    compile_id, text = (found["id"], found["text"]) if found else ("", reason)
    first, _, rest = text.partition("\n")
    return FailedGuard(compile_id, _with_scope(first), 0, None, tuple(frames_of(rest)))


def _with_scope(text: str) -> str:
    """The guard over Dynamo's scopes, with its comment, as hooks see it: reasons have ``x`` for ``L['x']``."""
    text = text.strip()
    expression = parse_expression(text)
    if expression is None:
        return text
    rest = text.encode()[expression.end_col_offset :].decode(errors="replace")
    _, comment, words = rest.partition("#")
    return f"{ast.unparse(_Scoped().visit(expression))}{f'  {comment}{words}' if comment else ''}"


class _Scoped(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in {"L", "G"} or hasattr(builtins, node.id):
            return node
        return ast.Subscript(ast.Name("L", ast.Load()), ast.Constant(node.id), node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        return node
