"""The rewrites, a file for each, found by their ids."""

import ast
import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from breakscan.fix.support.context import Rewrite


@cache
def rewrite_ids() -> tuple[str, ...]:
    """Returns the ids of all rewrites: their file names, with dashes."""
    return tuple(sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(__path__)))


@cache
def load_rewrite(rewrite_id: str) -> "Rewrite":
    module = importlib.import_module(f"{__name__}.{rewrite_id.replace('-', '_')}")
    rewrite: Rewrite = module.rewrite
    return rewrite


@cache
def described(rewrite_id: str) -> str:
    """Describes a rewrite in one line: the first line of its file, which is read and not imported."""
    path = Path(__file__).with_name(f"{rewrite_id.replace('-', '_')}.py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).removesuffix(".")
