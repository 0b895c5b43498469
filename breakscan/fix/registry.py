"""Finds rewrites by their ids."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import breakscan.fix.rewrites

if TYPE_CHECKING:
    from breakscan.fix.support.context import Rewrite


@cache
def rewrite_ids() -> tuple[str, ...]:
    """Returns the ids of all rewrites: their file names, with dashes."""
    return tuple(
        sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(breakscan.fix.rewrites.__path__))
    )


@cache
def load_rewrite(rewrite_id: str) -> Rewrite:
    """Returns the rewrite with this id. Raises KeyError if there is none."""
    if rewrite_id not in rewrite_ids():
        raise KeyError(rewrite_id)
    module = importlib.import_module(f"breakscan.fix.rewrites.{rewrite_id.replace('-', '_')}")
    rewrite: Rewrite = module.rewrite
    return rewrite


@cache
def described(rewrite_id: str) -> str:
    """Describes a rewrite in one line: the first line of its file, which is read and not imported."""
    found = importlib.util.find_spec(f"breakscan.fix.rewrites.{rewrite_id.replace('-', '_')}")
    if found is None or found.origin is None:
        raise KeyError(rewrite_id)
    text = ast.get_docstring(ast.parse(Path(found.origin).read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).removesuffix(".")
