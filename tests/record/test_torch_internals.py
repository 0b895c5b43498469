"""Private names of torch stand in one table, which the installed torch is held against.

To try another version of torch, run this file alone with it:
``python -m pytest tests/record/test_torch_internals.py``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch_names import private_names, words

import breakscan
from breakscan.record.torch_internals import ATTRIBUTES, NAMES, Internal
from breakscan.rulebook.ledger import version_key

PACKAGE = Path(breakscan.__file__).parent
MAY_USE = ("record/hooks/", "record/bootstrap/", "prove/")
TABLE = "record/torch_internals.py"
NO_TORCH = ("check/", "fix/rewrites/", "fix/support/", "rulebook/", "report/", "rulebook/torch_facts/", "source/")
"""They write or read code that names torch, and run none of it: ``tests/test_architecture.py``."""
DOCUMENTED = {
    "torch._dynamo",
    "torch._dynamo.config",
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
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith((*NO_TORCH, TABLE)):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def used() -> list[tuple[str, int, str]]:
    return [
        (name, line, found) for name, tree in files() for line, found in private_names(tree) if found not in DOCUMENTED
    ]


def attributes_used() -> list[tuple[str, int, str]]:
    known = {internal.name.partition(":")[2] for internal in ATTRIBUTES}
    return [(name, line, word) for name, tree in files() for line, word in words(tree) if word in known]


def test_no_other_file_uses_private_names() -> None:
    everywhere = [*used(), *attributes_used()]
    assert [use for use in everywhere if not use[0].startswith(MAY_USE)] == []


def test_every_private_name_is_in_the_table() -> None:
    table = [internal.name.replace(":", ".") for internal in NAMES]
    missing = [use for use in used() if not any(f"{name}.".startswith(f"{use[2]}.") for name in table)]
    assert missing == []


def test_everything_in_the_table_is_used() -> None:
    text = "\n".join(
        path.read_text(encoding="utf-8") for folder in MAY_USE for path in (PACKAGE / folder).rglob("*.py")
    )
    last = [re.split(r"[.:]", internal.name)[-1] for internal in (*NAMES, *ATTRIBUTES)]
    assert [name for name in last if not re.search(rf"\b{name}\b", text)] == []


def resolved(internal: Internal) -> Any:
    module, _, path = internal.name.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.torch
class TestInstalledTorch:
    @pytest.mark.parametrize("internal", NAMES, ids=lambda internal: internal.name)
    def test_has_the_name(self, internal: Internal) -> None:
        torch = pytest.importorskip("torch")
        if internal.since and version_key(str(torch.__version__)) < internal.since:
            with pytest.raises(AttributeError):
                resolved(internal)
        else:
            resolved(internal)

    @pytest.mark.parametrize("internal", ATTRIBUTES, ids=lambda internal: internal.name)
    def test_sets_the_attribute(self, internal: Internal) -> None:
        pytest.importorskip("torch")
        module, _, attribute = internal.name.partition(":")
        assert re.search(rf"\b{attribute}\b", inspect.getsource(importlib.import_module(module)))
