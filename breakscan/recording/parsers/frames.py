"""Reads the text that torch gives for a graph break, for a frame that it does not compile and for an export that fails,
tracebacks that it keeps as text, and names that Dynamo makes (the supported versions of torch).  The form of a break is
that of ``torch._dynamo.exc.format_graph_break_message``: a type, then ``Explanation:``, ``Hint:`` and ``Developer debug
context:`` lines, then a link that ends in the break's id.  A break met while another was handled follows a line of
asterisks: the first is the cause."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from breakscan.recording.records import StackFrame

_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in (.+)$', re.M)


def frames_of(text: str) -> list[StackFrame]:
    """The frames of a traceback, outermost first."""
    return [StackFrame(path, int(line), name) for path, line, name in _FRAME.findall(text)]


_CALLS_DIRECTLY = re.compile("_call_impl|compile_wrapper")
_RESUME = re.compile(r"torch_dynamo_resume_in_(?P<name>.+)_at_(?P<line>\d+)$")
BACKWARD = "<backward>"  # the name of a backward pass that compiled autograd captured, instead of torch's name for it
_COMPREHENSION = re.compile(r"__comprehension_(?P<name>.+)_at_\d+$")


def user_name(name: str) -> str:
    """Return the name of the function in the user's file that a code object of Dynamo represents."""
    while found := _RESUME.match(name) or _COMPREHENSION.match(name):
        name = found["name"]
    return name


def resumed_at(name: str) -> int | None:
    """The line of the break, if the name is that of the rest of a function after it."""
    found = _RESUME.match(name)
    return int(found["line"]) if found else None


def is_resumed(name: str) -> bool:
    """Return whether the name is that of the rest of a function, after a break."""
    return resumed_at(name) is not None


def is_of_comprehension(name: str) -> bool:
    """Return whether the name is that of a comprehension, which is a function of its own up to Python 3.11."""
    return name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def is_captured_backward(compile_id: str) -> bool:
    return re.search(r"(?:^|:)!\d+/", compile_id) is not None


def is_written_by_fx(path: str) -> bool:
    """Return whether ``torch.fx`` has written the code, which is in no file."""
    return path.startswith("<eval_with_key>")


def is_compiler_entry(path: str) -> bool:
    """Return whether the file is the one through which a program calls into compiled code."""
    return path.replace("\\", "/").endswith("torch/_dynamo/eval_frame.py")


def calls_user_code(frame: StackFrame) -> bool:
    """Return whether it is the function of torch that calls the ``forward`` of a module, or what was compiled."""
    is_torchs = frame.path.replace("\\", "/").endswith("torch/nn/modules/module.py") or is_compiler_entry(frame.path)
    return is_torchs and _CALLS_DIRECTLY.fullmatch(frame.name) is not None


def is_module_wrapper(path: str) -> bool:
    """Return whether the file has the function that Dynamo compiles in place of the ``forward`` of torch's modules."""
    return path.replace("\\", "/").endswith("torch/_dynamo/external_utils.py")


def is_step_of_optimizer(path: str, name: str) -> bool:
    """Return whether the function is one that torch puts around the ``step`` of its optimizers."""
    return path.replace("\\", "/").endswith("torch/optim/optimizer.py") and name in ("wrapper", "_use_grad")


def is_dynamos_file(path: str) -> bool:
    return "torch/_dynamo/" in path.replace("\\", "/")


_LIMIT = re.compile(r"exceeding the (\w+) cache size limit \(currently set to (\d+)\)")
_FROM_USER = re.compile(r"^(?:from user code|Found from|Original traceback|User stack) ?: *$", re.M)
"""Dynamo, Inductor, the interpreter of FX and the guards of sizes each have their own words for it."""


_SKIPS = {
    "no tensor-related objects": "it was called without a tensor",
    "No ops traced": "it holds no tensor operation to compile",
    "skipfiles": "its file is one that the compiler does not trace",
    "dispatch mode": "a torch dispatch mode is active, under which nothing is compiled",
    "tracing is disabled": "torch.compile is switched off",
}
"""Clauses by a part of Dynamo's reason to skip a frame without an exception."""


def skip_reason(text: str) -> str | None:
    """The reason of a skip, as a clause; None for one that is not known, and where torch gives none, as 2.11."""
    return next((words for part, words in _SKIPS.items() if part in text), None)


def limit_reason(text: str) -> str:
    """The limit of recompiles that the text names, as a clause."""
    found = _LIMIT.search(text)
    if found is None:
        return "it was recompiled more often than torch allows, so further variants run eager"
    setting = f"which is the limit (torch._dynamo.config.{found[1]})"
    return f"{found[2]} versions of it are compiled, {setting}, so further variants run eager"


def exceeds_limit(text: str) -> bool:
    """Return whether the text says that a frame was compiled too often."""
    return "recompile limit exceeded" in text


def is_forbidden(text: str) -> bool:
    """Return whether the text says that compiled code calls a function of torch that it may not call."""
    return text.startswith("Attempt to trace forbidden callable")


_LACKING_BACKWARD = {
    "config.donated_buffer": "donated_buffer",
    "does not currently support double backward": "one-backward",
}


def lacking_backward(text: str) -> str | None:
    """The name of the remedy for a backward that AOTAutograd cannot run, if the text says that it is one."""
    return next((name for part, name in _LACKING_BACKWARD.items() if part in text), None)


def is_generator(text: str) -> bool:
    """Return whether the text says that the frame is a generator's, which Dynamo does not compile."""
    return text.startswith("Attempt to trace generator")


def user_part(text: str) -> str:
    """The part of Dynamo's text that shows the user's code; empty where there is none."""
    return _FROM_USER.split(text)[-1] if _FROM_USER.search(text) else ""


def user_frames(text: str) -> list[StackFrame]:
    return frames_of(user_part(text))


_WHILE_HANDLED = "*** While handling this graph break, another graph break occurred: ***"
_NESTED = re.compile(rf"^{re.escape(_WHILE_HANDLED)}$", re.M)
_ID = re.compile(r"/gb/gb(\d{4})\.html")
_END = re.compile(r"^(Stack variable source attribution:|User code traceback:|from user code:)", re.M)
_OPERATOR = re.compile(r"^  Higher Order Operator: (\S+)\n", re.M)
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_HEAD = re.compile(r"Graph break in user code at (.+):(\d+)$", re.M)
_LOGGER = re.compile(r"method: <\w*Logger (\S+) \(\w+\)>\.(\w+),")
_DISABLED = re.compile(r"function `?(?:<(?:function|bound method) )?((?:[\w<>]+\.)*\w+)[^`]*?`? since it was wrapped")
_RAISED = re.compile(r"Dynamo failed to run FX node with fake tensors: .*: got (\w+)\((['\"])(.*)\2\)$")


@dataclass(frozen=True, slots=True)
class BreakCause:
    """One break type with what Dynamo says of it.  ``gb_id`` is such as ``GB0124``, or ``None``; ``checkpointed`` says
    that it is in what a checkpoint calls, which is traced whole or not at all."""

    gb_type: str
    gb_id: str | None
    explanation: str
    hints: tuple[str, ...]
    context: str
    checkpointed: bool = False


# Asked for several times for each break; the many breaks of a site have one text.
@lru_cache(maxsize=4096)
def parse_causes(text: str) -> tuple[BreakCause, ...]:
    """The causes in a break's text, root cause first.  Takes an artifact payload or an exception's message."""
    if end := _END.search(text):
        text = text[: end.start()]
    return tuple(_parse_cause(part) for part in _NESTED.split(text))


def logging_method(cause: BreakCause) -> str | None:
    """The method of a logger that Dynamo does not trace, as an expression: ``logging.getLogger('a.b').info``."""
    found = _LOGGER.match(cause.context)
    if found is None:
        return None
    name = "" if found[1] == "root" else repr(found[1])
    return f"logging.getLogger({name}).{found[2]}"


def disabled_function(cause: BreakCause) -> str | None:
    """The qualified name of the function under ``torch.compiler.disable`` that Dynamo does not trace."""
    found = _DISABLED.search(cause.explanation)
    return found[1] if found else None


def is_call_of_hook(code: str) -> bool:
    """Return whether a line of torch's calls a hook of a module."""
    return "_result = hook(self, args" in code


def is_wrong_type(cause: BreakCause) -> bool:
    """Return whether an operation does not take the type of an argument, as of a comparison of open sizes."""
    return cause.gb_type.startswith("TypeError when making fake tensor call")


def branches_on_data(gb_type: str) -> bool:
    """Return whether a break of this type is a branch on the value of a tensor."""
    return gb_type.startswith("Data-dependent branching")


def jumps_on_tensor(cause: BreakCause) -> bool:
    """Return whether a branch that breaks the graph tests a tensor: torch says the same of an assert that fails."""
    return "Tensor" in cause.context


def is_asked_for(gb_type: str) -> bool:
    """Return whether a break of this type is one that the code asks for, with ``torch._dynamo.graph_break()``."""
    return gb_type.startswith("Call to `torch._dynamo.graph_break()`")


def chained(cause: str, consequence: str) -> str:
    """The text of a break from which another followed, as Dynamo itself would put it."""
    parts = [text[: end.start()] if (end := _END.search(text)) else text for text in (cause, consequence)]
    return f"\n{_WHILE_HANDLED}\n".join(parts)


def frame_skipped(text: str) -> bool:
    """Return whether the text says that the frame falls back to eager, or its rest, from where Dynamo can resume."""
    return "Failed to handle graph break gracefully" in text or rest_skipped(text)


def rest_skipped(text: str) -> bool:
    """Return whether the text says that what comes before the break is compiled, and nothing after it."""
    return "graph break that we cannot resume from" in text


def _parse_cause(part: str) -> BreakCause:
    operator = _OPERATOR.search(part)
    lines = _OPERATOR.sub("", part).strip().splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("  Explanation:")]
    start = heads[0] if heads else min(1, len(lines))
    above = [line for line in lines[:start] if line.strip()]
    gb_type = above[-1].removeprefix("Graph Break Reason: ").strip() if above else ""
    fields: dict[str, list[str]] = {"Explanation": [], "Hint": [], "Developer debug context": []}
    current: list[str] | None = None
    for line in lines[start:]:
        if field := re.match(r"  (Explanation|Hint|Developer debug context): ?(.*)", line):
            current = fields[field[1]]
            current.append(field[2])
        elif line.lstrip().startswith("For more details about this graph break"):
            current = None
        elif current and line.strip():
            current[-1] += " " + line.strip()
    found = _ID.search(part)
    return BreakCause(
        gb_type=gb_type,
        gb_id=f"GB{found[1]}" if found else None,
        explanation=_RAISED.sub(r"the operation raises \1: \3", " ".join(fields["Explanation"]).strip()),
        hints=tuple(fields["Hint"]),
        context=" ".join(fields["Developer debug context"]).strip(),
        checkpointed=operator is not None and operator[1] == _CHECKPOINT,
    )


def traceback_frames(text: str) -> list[StackFrame]:
    """Return the frames above the break that an artifact's text lists, outermost first."""
    head = _HEAD.match(text)
    frames = frames_of(text)
    if head is None:
        return frames
    site = head[1], int(head[2])
    # Dynamo's own traceback may follow the user's.
    last = next((i for i, frame in enumerate(frames) if (frame.path, frame.line) == site), -1)
    return frames[: last + 1] or [StackFrame(*site, "<unknown>")]


class ExportProblem(str, Enum):
    TEST = "data-dependent-test"  # the code goes one way or another by data
    NUMBER = "data-dependent-number"  # the code needs a number out of data
    SIZES = "sizes"  # the code does not leave the sizes free that ``dynamic_shapes`` declares
    EXAMPLE = "example-size"  # a size of the example is 0 or 1, which an export fixes
    NO_FAKE_KERNEL = "no-fake-kernel"
    INPUT = "input-type"  # it is given an object of a type that an export cannot take apart
    OUTPUT = "output-type"  # it returns such an object
    UNTRACEABLE = "graph-break"  # Dynamo cannot trace it: ``strict=True``
    ERROR = "error"  # anything else that was raised


@dataclass(frozen=True, slots=True)
class ProblemRead:
    """A problem, what it is about (an expression, an operator, a size, a class), torch's words and fixes."""

    problem: ExportProblem
    about: str
    said: str = ""
    fixes: tuple[str, ...] = ()


_PATTERNS = (
    (ExportProblem.TEST, re.compile(r"Could not guard on data-dependent expression (.+?) \(unhinted")),
    (
        ExportProblem.NUMBER,
        re.compile(r"Could not extract specialized integer from data-dependent expression (.+?) \(unhinted"),
    ),
    (ExportProblem.NO_FAKE_KERNEL, re.compile(r"no fake impl registered for <CustomOpDef\(([^)]+)\)>")),
    (ExportProblem.NO_FAKE_KERNEL, re.compile(r"unsupported operator: ([\w.:]+)")),
    (ExportProblem.SIZES, re.compile(r"Constraints violated \((.+?)\)!")),
    (ExportProblem.OUTPUT, re.compile(r"Found <class '([^']+)'> in output, which is not a known type")),
    (ExportProblem.OUTPUT, re.compile(r"unrecognized type \w+Variable\(([^)]+)\) at output \d+")),
    (ExportProblem.INPUT, re.compile(r"Unsupported input type <class '([^']+)'>")),
    (ExportProblem.INPUT, re.compile(r"one of the inputs with type `<class '([^']+)'>` is not supported")),
)
_SYMBOL = re.compile(r"z?u[a-z]?\d+")  # a number, of which no outcome of a test is asked
_FIXED = re.compile(r"specialized it to be a constant \((\d+)\)")
_EACH_SIZE = re.compile(r"^  - (.+)$", re.M)
_FIXES = re.compile(r"^Suggested fixes:\n((?:[ \t]+\S.*(?:\n|$))+)", re.M)


def problem_of(error: str, text: str) -> ProblemRead:
    if error == "UnsupportedOperatorException" and text:
        # Its text is the name of the operator, with what ``export`` adds.
        return ProblemRead(ExportProblem.NO_FAKE_KERNEL, _operator(text.split()[0]))
    for problem, pattern in _PATTERNS:
        if found := pattern.search(text):
            return _read(problem, found[1], text)
    return ProblemRead(ExportProblem.UNTRACEABLE if error == "Unsupported" else ExportProblem.ERROR, "")


def _read(problem: ExportProblem, about: str, text: str) -> ProblemRead:
    if problem is ExportProblem.TEST and _SYMBOL.fullmatch(about):
        return ProblemRead(ExportProblem.NUMBER, about)
    if problem is ExportProblem.SIZES:
        said = next((one[1] for one in _EACH_SIZE.finditer(text)), "")
        fixed, fixes = _FIXED.search(said), _FIXES.search(text)
        if fixed and fixed[1] in ("0", "1"):
            return ProblemRead(ExportProblem.EXAMPLE, about)
        each = tuple(line.strip() for line in fixes[1].splitlines()) if fixes else ()
        return ProblemRead(problem, about, f"it can only be {fixed[1]}" if fixed else said, each)
    if problem in (ExportProblem.INPUT, ExportProblem.OUTPUT):
        return ProblemRead(problem, about.rpartition(".")[2])
    return ProblemRead(problem, _operator(about) if problem is ExportProblem.NO_FAKE_KERNEL else about)


def _operator(name: str) -> str:
    """``lib::op`` for ``lib.op.default``."""
    namespace, _, rest = name.partition(".")
    return f"{namespace}::{rest.removesuffix('.default')}" if rest else name
