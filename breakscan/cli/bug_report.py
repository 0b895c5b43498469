"""``breakscan --bug-report``."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from breakscan import __version__
from breakscan.cli.config import settings_lines
from breakscan.cli.output import report_stream
from breakscan.report.markdown import row, table_head
from breakscan.report.printable import visible
from breakscan.rulebook.config import ConfigError, installed_torch, load_settings
from breakscan.rulebook.document import RuleError

PACKAGES = ("click", "libcst", "pathspec", "platformdirs", "rich", "tomli", "numpy", "triton", "pygls", "mcp", "pytest")
LONGEST = 500
"""Characters of a setting that is printed: the list of all rules is longer, and follows from the others."""
_VARIABLES = re.compile(
    r"(BREAKSCAN|TORCH|PYTORCH|TRITON|CUDA|HIP|OMP|MKL)_?\w*|TORCHDYNAMO\w*|PYTHON(PATH|STARTUP|HOME)"
)


def print_bug_report() -> None:
    """Print versions and settings for an issue, without source code."""
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
        stream.write("\nSettings of the working directory:\n\n````toml\n")
        stream.writelines(f"{visible(_anonymous(line))}\n" for line in _settings())
        stream.write("````\n")
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


def _settings() -> Iterator[str]:
    try:
        yield from (line for line in settings_lines(load_settings(Path.cwd()), os.getcwd()) if len(line) < LONGEST)
    except (ConfigError, RuleError) as error:
        yield f"# {error}"


def _anonymous(line: str) -> str:
    """Return a line without the names of the working directory, the home folder and the user."""
    for folder, shown in ((os.getcwd(), "."), (str(Path.home()), "~")):
        if folder != os.sep:
            line = line.replace(folder, shown)
    name = Path.home().name
    return re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "USER", line) if name not in ("", "root") else line
