"""``breakscan --bug-report``."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
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
"""Characters of a setting: the list of all rules is longer, and follows from the others."""
SECONDS = 60.0
"""How long importing torch may take."""
_VARIABLES = re.compile(
    r"(BREAKSCAN|TORCH|PYTORCH|TRITON|CUDA|HIP|OMP|MKL)_?\w*|TORCHDYNAMO\w*|PYTHON(PATH|STARTUP|HOME)"
)
_ASK = """
import sys
del sys.path[0]
import json, torch
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
devices = [torch.cuda.get_device_name(number) for number in range(count)]
print(json.dumps([torch.__version__, torch.version.cuda, torch.version.hip, devices]))
"""
"""The working directory is not searched: a torch.py there would be run."""


def print_bug_report() -> None:
    """Prints what an issue needs to say of this place: versions and settings, without source text."""
    versions = {name: _version(name) for name in PACKAGES}
    rows = {
        "breakscan": __version__,
        "Python": f"{platform.python_version()} "
        f"({platform.python_implementation()}{_variant()}, {platform.architecture()[0]})",
        "system": platform.platform(),
        "torch": _torch(),
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


def _variant() -> str:
    is_gil_enabled = getattr(sys, "_is_gil_enabled", None)
    return ", free-threaded" if is_gil_enabled is not None and not is_gil_enabled() else ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _torch() -> str:
    """What torch says in a process of its own: it takes seconds to import, and may crash."""
    installed = installed_torch()
    if installed is None:
        return "not installed"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ASK], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        is_slow = isinstance(error, subprocess.TimeoutExpired)
        problem = f"importing it takes over {SECONDS:.0f} s" if is_slow else _anonymous(str(error))
        return f"{installed}, which cannot be asked: {problem}"
    try:
        asked, cuda, hip, devices = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return f"{installed}, which cannot be asked: {_anonymous(said[-1])}"
    built = f"CUDA {cuda}" if cuda else f"ROCm {hip}" if hip else "CPU"
    names = ", ".join(f"{count} × {name}" for name, count in Counter(devices).items())
    return f"{asked}, built for {built}; {names or 'no GPU'}"


def _settings() -> Iterator[str]:
    try:
        yield from (line for line in settings_lines(load_settings(Path.cwd()), os.getcwd()) if len(line) < LONGEST)
    except (ConfigError, RuleError) as error:
        yield f"# {error}"


def _anonymous(line: str) -> str:
    """Without the names of the working directory, of the home and of the user."""
    for folder, shown in ((os.getcwd(), "."), (str(Path.home()), "~")):
        if folder != os.sep:
            line = line.replace(folder, shown)
    name = Path.home().name
    return re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "USER", line) if name not in ("", "root") else line
