"""``breakscan upgrade``."""

import importlib.metadata
import itertools
import json
import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
from platformdirs import user_cache_path

from breakscan.cli.measuring import say
from breakscan.cli.options import argument, declared, flag, format_option, option, output_option
from breakscan.cli.output import report_stream
from breakscan.cli.programs import ARGUMENTS, refuse_notebook, require_torch
from breakscan.report.diff import RunComparison, compare
from breakscan.report.formats import DIFF
from breakscan.report.printable import visible
from breakscan.rulebook.ledger import ledger_version_for, load_ledger

COMPLETE = "complete"  # the name of the empty file in an environment that was made to its end


@click.command(context_settings={"allow_interspersed_args": False})
@declared
@click.pass_context
def upgrade(
    ctx: click.Context,
    /,
    version: str = option("--to", "The torch to try, such as 2.15 or 2.14.1.", metavar="VERSION", required=True),
    as_module: bool = flag("-m", "PROGRAM is the name of a module, as for python -m."),
    format_: str = format_option(DIFF),
    output: Path | None = output_option,
    program: str = argument(),
    arguments: tuple[str, ...] = argument(**ARGUMENTS),
) -> None:
    """Run PROGRAM with its ARGUMENTS on the installed torch and on another, and show what changes.

    The other torch is installed into an environment in the user's cache, which sees all other packages of this one, and
    is kept.  It comes from where pip or uv install from.  What the program writes is not shown.  Options of breakscan
    come before PROGRAM.

    Exits with 1 if there is a new break site, a worse one, more recompiles or a new eager function, and with 2 if the
    program could not be run.
    """
    how = ["-m", program] if as_module else [program]
    if not as_module:
        refuse_notebook(program)
        if not os.path.exists(program):
            raise click.UsageError(f"there is no file {program!r}; a module takes -m")
    require_torch("upgrade", [f"--to={version}", *how])
    if not re.fullmatch(r"\d+(\.\d+){1,2}\S*", version):
        raise click.UsageError(f"--to: {version!r} is no version of torch, such as 2.15")
    python = _environment(version)
    reports = []
    printed: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="breakscan-") as folder:
        for name, one in (("the installed torch", sys.executable), (f"torch {version}", str(python))):
            say(f"running {program} on {name}")
            report, lines = _run(one, [*how, *arguments], Path(folder), name)
            reports.append(report)
            printed.append(lines)
    say("")
    comparison = compare(*reports)
    versions = [report["environment"]["torch"] for report in reports]
    notes = [*_printed_otherwise(*printed), *_changed_rules(comparison, *versions)]
    with report_stream(output) as stream:
        DIFF.write(format_, replace(comparison, moved=[*comparison.moved, *notes]), stream)
    ctx.exit(1 if comparison.regressions else 0)


def environment_folder(version: str) -> Path:
    """The folder of the environment with this torch and the packages of this Python."""
    key = sha256(f"{sys.prefix} {sys.version}".encode()).hexdigest()[:8]
    return user_cache_path("breakscan", appauthor=False) / "torch" / f"{version}-{key}"


def _environment(version: str) -> Path:
    """The Python of an environment with a torch, in front of all packages of this one.  Raises ClickException."""
    folder = environment_folder(version)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / COMPLETE).exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    wanted = [f"torch=={version}" if version.count(".") > 1 else f"torch=={version}.*", *_bound_to_torch()]
    say(f"installing {' '.join(wanted)} into {folder}")
    uv = shutil.which("uv")
    make = [uv, "venv", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
    install = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    for command in ([*make, str(folder)], [*install, "--quiet", *wanted]):
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise click.ClickException(f"{wanted[0]} could not be installed: {_last_line(done.stderr)}")
    packages = next(path for path in folder.rglob("site-packages") if path.is_dir())
    others = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    lines = [f"import site; site.addsitedir({other!r})\n" for other in others]
    (packages / "zz-breakscan.pth").write_text("".join(lines), encoding="utf-8")
    (folder / COMPLETE).touch()
    return python


def _bound_to_torch() -> list[str]:
    """The installed packages that need this very torch, as torchvision does."""
    found = importlib.metadata.distributions()
    exact = re.compile(r"torch\s*\(?==(?!.*extra)")
    return sorted({one.name for one in found if any(map(exact.match, one.requires or ()))})


def _run(python: str, argv: Sequence[str], folder: Path, name: str) -> tuple[Any, list[str]]:
    """The report of a run, and the lines that it printed.  Raises ClickException."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [python, "-m", "breakscan", "explain", "--format", "json", "--output", str(report), *argv]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if not report.exists():
        raise click.ClickException(f"{argv[-1]} could not be run on {name}: {_last_line(done.stderr)}")
    made = json.loads(report.read_text(encoding="utf-8"))
    if done.returncode:
        say(f"on {name}, it ended with {done.returncode}: {_last_line(done.stderr)}")
    return made, done.stdout.splitlines()


def _last_line(text: str) -> str:
    """The last line of an error; one of breakscan's own where there is no other."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    others = [line for line in lines if not line.startswith("breakscan: ")]
    return (others or lines or ["it said nothing"])[-1]


def _printed_otherwise(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The first line that the program prints otherwise."""
    pairs = itertools.zip_longest(before, after, fillvalue="")
    for number, (old, new) in enumerate(pairs, 1):
        if old != new:
            return [f"line {number} of what it prints: {visible(old) or 'nothing'} → {visible(new) or 'nothing'}"]
    return []


def _changed_rules(comparison: RunComparison, before: str, after: str) -> list[str]:
    """The rules of breaks that are new or gone, as far as their verdicts differ between the two versions."""
    named = {one.rule for one in (*comparison.new, *comparison.gone, *(one.after for one in comparison.changed))}
    versions = [ledger_version_for(torch) for torch in (before, after)]
    examples = [load_ledger(one).examples for one in versions]
    verdicts = [{(rule, label): one.main for rule in known for label, one in known[rule].items()} for known in examples]
    moved = {rule for rule, label in verdicts[0] if verdicts[0][rule, label] != verdicts[1].get((rule, label))}
    words = f"other verdicts on {versions[1]} than on {versions[0]}"
    return [f"{rule}: {words} (breakscan rule {rule})" for rule in sorted(named & moved, key=str)]
