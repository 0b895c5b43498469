"""A bug report as Markdown, to be pasted into an issue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from breakscan.report.printable import visible


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """What the installed torch says of itself when it is imported.  ``problem`` is why it could not be asked."""

    version: str
    cuda: str | None = None
    hip: str | None = None
    devices: Sequence[str] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class BugReport:
    """``packages`` are the versions of what breakscan uses, None for what is not installed.  ``settings`` are the lines
    of ``breakscan config``; ``variables`` the names of environment variables that are set and matter."""

    version: str
    python: str
    system: str
    packages: Mapping[str, str | None]
    torch: TorchBuild | None
    settings: Sequence[str]
    variables: Sequence[str]


def write_bug_report(report: BugReport, stream: TextIO) -> None:
    """Writes the report.  It has no source text, and no values of environment variables."""
    rows = [
        ("breakscan", report.version),
        ("Python", report.python),
        ("system", report.system),
        ("torch", "not installed" if report.torch is None else _torch(report.torch)),
        *((name, version) for name, version in report.packages.items() if version),
    ]
    stream.write("| what | version |\n| --- | --- |\n")
    stream.writelines(f"| {name} | {visible(value).replace('|', chr(92) + '|')} |\n" for name, value in rows)
    if missing := [name for name, version in report.packages.items() if not version]:
        stream.write(f"\nNot installed: {', '.join(missing)}.\n")
    if report.variables:
        stream.write(f"\nEnvironment variables that are set: {', '.join(map(visible, report.variables))}.\n")
    stream.write("\nSettings of the working directory:\n\n````toml\n")
    stream.writelines(f"{visible(line)}\n" for line in report.settings)
    stream.write("````\n")


def _torch(torch: TorchBuild) -> str:
    if torch.problem is not None:
        return f"{torch.version}, which cannot be asked: {torch.problem}"
    built = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "CPU"
    devices = ", ".join(f"{count} × {name}" for name, count in Counter(torch.devices).items())
    return f"{torch.version}, built for {built}; {devices or 'no GPU'}"
