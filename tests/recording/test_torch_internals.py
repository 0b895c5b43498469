"""Private names of torch stand in one table, which the installed torch is held against.

To try another version of torch, run this file alone with it:
``python -m pytest tests/recording/test_torch_internals.py``.
"""

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from torch_names import private_names, words

from breakscan.recording.recorder import HOOKS
from breakscan.rulebook.ledger import version_key
from tests.trees import PACKAGE, trees

MAY_USE = ("recording/hooks/", "recording/bootstrap/", "prove/", "survey/model_program.py", "pytest_plugin.py")
NO_TORCH = ("check/", "fix/rewrites/", "fix/support/", "rulebook/", "report/", "rulebook/torch_facts/", "source/")
"""They write or read code that names torch, and run none of it: ``tests/test_house.py``."""
OTHERS = (
    # What hooks share: the current compile, and keeping Dynamo from compiling breakscan.
    "torch._guards:CompileContext.current_compile_id",
    "torch._dynamo.trace_rules:SKIP_DIRS",
    "torch._dynamo.trace_rules:_recompile_re",
    # verify and bench.
    "torch._inductor.compile_fx:compile_fx",
    "torch._dynamo.backends.registry:lookup_backend",
    "torch._dynamo.eval_frame:OptimizeContext.__call__",
    "torch._dynamo.eval_frame:_dynamic",
    "torch._dynamo.callback:callback_handler",
    "torch._dynamo:list_backends",
    "torch._dynamo:OptimizedModule",
    "torch._inductor:list_mode_options",
    "torch._inductor.config:trace",
    "torch._inductor.cpu_vec_isa:pick_vec_isa",
    "torch._C:_set_grad_enabled",
    "torch._C:_len_torch_dispatch_stack",
    "torch.cuda:_is_in_bad_fork",
    # The plugin of pytest.
    "torch.fx.experimental._config:use_duck_shape",
    "torch.utils._pytree:keystr",
    "torch.utils._pytree:tree_flatten_with_path",
    "torch.utils._pytree:tree_leaves",
    "torch.utils._pytree:tree_map",
    "torch.utils._pytree:tree_map_only",
    "torch.utils._pytree:tree_map_with_path",
)
"""Names that no hook states."""
SINCE = {"torch._dynamo.convert_frame:CatchErrorsWrapper._handle_skip": (2, 13)}
"""Those that older supported versions lack."""
NAMES = sorted({*OTHERS, *(name for hook in HOOKS for name in (*hook.wraps, *hook.needs, *hook.reads))})
DOCUMENTED = {
    "torch._dynamo",
    "torch._dynamo.config",
    "torch._check",
    "torch._dynamo.disable",
    "torch._functorch.config",
    "torch._dynamo.reset",
    "torch._dynamo.exc",
    "torch._dynamo.exc.TorchDynamoException",
    "torch._inductor",
    "torch._inductor.config",
    "torch._logging",
    "torch.ops._quantized",
}
"""Names with an underscore that torch's own documentation uses."""


def files() -> Iterator[tuple[str, ast.Module]]:
    for path, tree in trees().items():
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(NO_TORCH):
            yield name, tree


@functools.cache
def used() -> list[tuple[str, int, str]]:
    return [
        (name, line, found) for name, tree in files() for line, found in private_names(tree) if found not in DOCUMENTED
    ]


def attributes_used() -> list[tuple[str, int, str]]:
    """Where attributes are used that torch sets on its objects, of those whose names are telling."""
    known = {name.rpartition(":")[2] for name in NAMES}
    known = {word for word in known if word.startswith("_") and not word.startswith("__")}
    return [(name, line, word) for name, tree in files() for line, word in words(tree) if word in known]


def test_no_other_file_uses_private_names() -> None:
    everywhere = [*used(), *attributes_used()]
    assert [use for use in everywhere if not use[0].startswith(MAY_USE)] == []


def test_every_private_name_is_stated_by_a_hook() -> None:
    stated = [name.replace(":", ".") for hook in HOOKS for name in (*hook.imported_by, hook.waits_for or "")]
    stated += [name.replace(":", ".") for name in NAMES]
    missing = [use for use in used() if not any(f"{name}.".startswith(f"{use[2]}.") for name in stated)]
    assert missing == []


def test_every_name_that_is_stated_is_used() -> None:
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in MAY_USE
        for path in ([PACKAGE / folder] if folder.endswith(".py") else (PACKAGE / folder).rglob("*.py"))
    )
    # A hook states each, and reads it.
    least = {name: 2 for hook in HOOKS for name in hook.reads}
    uses = {name: len(re.findall(rf"\b{re.split('[.:]', name)[-1]}\b", text)) for name in NAMES}
    assert [name for name, count in uses.items() if count < least.get(name, 1)] == []


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_the_installed_torch_has_the_name(name: str) -> None:
    """The module holds it, or names it, as it does an attribute that it sets on its objects."""
    torch = pytest.importorskip("torch")
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    holds = True
    try:
        for part in path.split("."):
            found = getattr(found, part)
    except AttributeError:
        holds = re.search(rf"\b{path}\b", inspect.getsource(importlib.import_module(module))) is not None
    is_newer = name in SINCE and version_key(str(torch.__version__)) < SINCE[name]
    assert holds is not is_newer
