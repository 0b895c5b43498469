"""Reads tracebacks that torch keeps as text, names that Dynamo makes, and what it says of a frame that it does not
compile (the supported versions of torch)."""

from __future__ import annotations

import re

from breakscan.recording.records import StackFrame

_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in (.+)$', re.M)


def frames_of(text: str) -> list[StackFrame]:
    """The frames of a traceback, outermost first."""
    return [StackFrame(path, int(line), name) for path, line, name in _FRAME.findall(text)]


def innermost_frame(text: str) -> StackFrame | None:
    """The frame that a traceback ends in."""
    frames = frames_of(text)
    return frames[-1] if frames else None


_CALLS_DIRECTLY = re.compile("_call_impl|compile_wrapper")
_RESUME = re.compile(r"torch_dynamo_resume_in_(?P<name>.+)_at_(?P<line>\d+)$")
BACKWARD = "<backward>"
"""The name of a backward pass that compiled autograd captured, instead of torch's name for it."""
_CAPTURED = re.compile(r"(?:^|:)!\d+/")
_WRITTEN_BY_FX = "<eval_with_key>"
_AROUND_STEP = ("wrapper", "_use_grad")
_OF_COMPREHENSION = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
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
    return name in _OF_COMPREHENSION


def is_captured_backward(compile_id: str) -> bool:
    """Return whether compiled autograd asked for the compile."""
    return _CAPTURED.search(compile_id) is not None


def is_written_by_fx(path: str) -> bool:
    """Return whether ``torch.fx`` has written the code, which is in no file."""
    return path.startswith(_WRITTEN_BY_FX)


def is_compiler_entry(path: str) -> bool:
    """Return whether the file is the one through which a program calls into compiled code."""
    return path.replace("\\", "/").endswith("torch/_dynamo/eval_frame.py")


def calls_user_code(frame: StackFrame) -> bool:
    """Return whether it is the function of torch that calls the ``forward`` of a module, or what was compiled."""
    is_torchs = frame.path.replace("\\", "/").endswith("torch/nn/modules/module.py") or is_compiler_entry(frame.path)
    return is_torchs and _CALLS_DIRECTLY.fullmatch(frame.name) is not None


def is_module_wrapper(path: str) -> bool:
    """Return whether the file is the one whose function Dynamo compiles in place of the ``forward`` of a module of
    torch's."""
    return path.replace("\\", "/").endswith("torch/_dynamo/external_utils.py")


def is_step_of_optimizer(path: str, name: str) -> bool:
    """Return whether the function is one that torch puts around the ``step`` of its optimizers."""
    return path.replace("\\", "/").endswith("torch/optim/optimizer.py") and name in _AROUND_STEP


def is_dynamos_file(path: str) -> bool:
    """Return whether the file is one of Dynamo's own."""
    return "torch/_dynamo/" in path.replace("\\", "/")


_LIMIT = re.compile(r"exceeding the (\w+) cache size limit \(currently set to (\d+)\)")
_LIMIT_EXCEEDED = "recompile limit exceeded"
_GENERATOR = "Attempt to trace generator"
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
    return _LIMIT_EXCEEDED in text


_LACKING_BACKWARD = {
    "config.donated_buffer": "donated_buffer",
    "does not currently support double backward": "one-backward",
}


def lacking_backward(text: str) -> str | None:
    """The name of the remedy for a backward that AOTAutograd cannot run, if the text says that it is one."""
    return next((name for part, name in _LACKING_BACKWARD.items() if part in text), None)


def is_generator(text: str) -> bool:
    """Return whether the text says that the frame is a generator's, which Dynamo does not compile."""
    return text.startswith(_GENERATOR)


def user_part(text: str) -> str:
    """The part of Dynamo's text that shows the user's code; empty where there is none."""
    return _FROM_USER.split(text)[-1] if _FROM_USER.search(text) else ""


def user_frames(text: str) -> list[StackFrame]:
    """The frames of the user's code, outermost first."""
    return frames_of(user_part(text))
