"""The rewrites by their ids."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import breakscan.rewrites

if TYPE_CHECKING:
    from breakscan.rewrite_support.edit import Rewrite


@cache
def rewrite_ids() -> tuple[str, ...]:
    """The ids of all rewrites: the names of their files, with dashes."""
    return tuple(sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(breakscan.rewrites.__path__)))


@cache
def load_rewrite(rewrite_id: str) -> Rewrite:
    """The rewrite of an id.  Raises KeyError where there is none."""
    if rewrite_id not in rewrite_ids():
        raise KeyError(rewrite_id)
    module = importlib.import_module(f"breakscan.rewrites.{rewrite_id.replace('-', '_')}")
    rewrite: Rewrite = module.rewrite
    return rewrite


@cache
def described(rewrite_id: str) -> str:
    """What a rewrite does, in one line: the first of its file, which is read and not imported."""
    found = importlib.util.find_spec(f"breakscan.rewrites.{rewrite_id.replace('-', '_')}")
    if found is None or found.origin is None:
        raise KeyError(rewrite_id)
    text = ast.get_docstring(ast.parse(Path(found.origin).read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).removesuffix(".")
