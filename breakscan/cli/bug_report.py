"""``breakscan --bug-report``."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version

from breakscan import __version__
from breakscan.cli.output import report_stream
from breakscan.report.markdown import row, table_head
from breakscan.report.printable import visible
from breakscan.rulebook.config import installed_torch

PACKAGES = ("click", "libcst", "pathspec", "platformdirs", "rich", "tomli", "numpy", "triton", "pygls", "mcp", "pytest")
_VARIABLES = re.compile(
    r"(BREAKSCAN|TORCH|PYTORCH|TRITON|CUDA|HIP|OMP|MKL)_?\w*|TORCHDYNAMO\w*|PYTHON(PATH|STARTUP|HOME)"
)


def print_bug_report() -> None:
    """Print versions and names of variables for an issue."""
    versions = {name: _version(name) for name in PACKAGES}
    rows = {
        "breakscan": __version__,
        "Python": f"{platform.python_version()} "
        f"({platform.python_implementation()}{_variant()}, {platform.architecture()[0]})",
        "system": platform.platform(),
        "torch": installed_torch() or "not installed",
        **{name: found for name, found in versions.items() if found},
    }
    missing = [name for name, found in versions.items() if not found]
    variables = sorted(name for name in os.environ if _VARIABLES.fullmatch(name))
    with report_stream(None) as stream:
        stream.write(table_head("what", "version"))
        stream.writelines(row(name, visible(value).replace("|", "\\|")) for name, value in rows.items())
        if missing:
            stream.write(f"\nNot installed: {', '.join(missing)}.\n")
        if variables:
            stream.write(f"\nEnvironment variables that are set: {', '.join(map(visible, variables))}.\n")
        if installed_torch():
            stream.write("\nOf GPUs and drivers, 'python -m torch.utils.collect_env' prints more.\n")


def _variant() -> str:
    is_gil_enabled = getattr(sys, "_is_gil_enabled", None)
    return ", free-threaded" if is_gil_enabled is not None and not is_gil_enabled() else ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
