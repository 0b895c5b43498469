"""The files of the package, parsed once for all tests that read them."""

import ast
import functools
from collections.abc import Mapping
from pathlib import Path

import breakscan

PACKAGE = Path(breakscan.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@functools.cache
def trees() -> Mapping[Path, ast.Module]:
    """The syntax tree of each file."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
