"""Names that Dynamo makes, and the files of torch through which a program calls compiled code."""

from __future__ import annotations

import re

from breakscan.record.records.source import StackFrame

_CALLS_DIRECTLY = re.compile("_call_impl|compile_wrapper")
_RESUME = re.compile(r"torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
BACKWARD = "<backward>"
"""The name of a backward pass that compiled autograd captured, instead of torch's name for it."""
_CAPTURED = re.compile(r"(?:^|:)!\d+/")
_WRITTEN_BY_FX = "<eval_with_key>"
_AROUND_STEP = ("wrapper", "_use_grad")
_OF_COMPREHENSION = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_COMPREHENSION = re.compile(r"__comprehension_(?P<name>.+)_at_\d+$")


def user_name(name: str) -> str:
    """Returns the name of the function in the user's file that a code object of Dynamo represents."""
    while found := _RESUME.match(name) or _COMPREHENSION.match(name):
        name = found["name"]
    return name


def is_resumed(name: str) -> bool:
    """Whether the name is that of the rest of a function, after a break."""
    return _RESUME.match(name) is not None


def is_of_comprehension(name: str) -> bool:
    """Whether the name is that of a comprehension, which is a function of its own up to Python 3.11."""
    return name in _OF_COMPREHENSION


def is_captured_backward(compile_id: str) -> bool:
    """Whether compiled autograd asked for the compile."""
    return _CAPTURED.search(compile_id) is not None


def is_written_by_fx(path: str) -> bool:
    """Whether ``torch.fx`` has written the code, which is in no file."""
    return path.startswith(_WRITTEN_BY_FX)


def is_compiler_entry(path: str) -> bool:
    """Whether the file is the one through which a program calls into compiled code."""
    return path.replace("\\", "/").endswith("torch/_dynamo/eval_frame.py")


def calls_user_code(frame: StackFrame) -> bool:
    """Whether it is the function of torch that calls the ``forward`` of a module, or what was compiled."""
    is_torchs = frame.path.replace("\\", "/").endswith("torch/nn/modules/module.py") or is_compiler_entry(frame.path)
    return is_torchs and _CALLS_DIRECTLY.fullmatch(frame.name) is not None


def is_module_wrapper(path: str) -> bool:
    """Whether the file is the one whose function Dynamo compiles in place of the ``forward`` of a module of torch's."""
    return path.replace("\\", "/").endswith("torch/_dynamo/external_utils.py")


def is_step_of_optimizer(path: str, name: str) -> bool:
    """Whether the function is one that torch puts around the ``step`` of its optimizers."""
    return path.replace("\\", "/").endswith("torch/optim/optimizer.py") and name in _AROUND_STEP


def is_dynamos_file(path: str) -> bool:
    """Whether the file is one of Dynamo's own."""
    return "torch/_dynamo/" in path.replace("\\", "/")
