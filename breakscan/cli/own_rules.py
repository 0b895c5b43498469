"""Says what is wrong with the rules of a project."""

from __future__ import annotations

import os

import click

from breakscan.model.torch_versions import SUPPORTED
from breakscan.report.printable import visible
from breakscan.rulebook.callee_names import unknown_callees
from breakscan.rulebook.library import Library
from breakscan.source.paths import display_path

_UNKNOWN = {
    "": "is no builtin",
    "numpy": "is not known in NumPy",
    "torch": f"is not known in torch {SUPPORTED[0]} to {SUPPORTED[-1]}",
}


def warn_of_callees(library: Library) -> None:
    """Prints a warning for each callee that does not exist: such a rule finds nothing."""
    for rule, name, near in unknown_callees(library):
        unknown = _UNKNOWN[name.partition(".")[0] if "." in name else ""]
        hint = f": did you mean {near}?" if near else ""
        path = display_path(rule.path, os.getcwd())
        click.echo(visible(f"warning: {path}: callee {name} {unknown}{hint}"), err=True)
