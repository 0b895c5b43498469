"""The requests to a run besides recording it: ``--keep-going``, ``--profile`` and ``--compile``.

It reaches the process of the program as a file in the folder of its recording, one word and its operands a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = "requests"
"""The name of the file, which ``bootstrap/`` has too."""
BACKEND = "inductor"
"""The default of ``torch.compile``."""
MAIN = "__main__"
"""The module that the script is."""


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """``--compile module:attribute``: ``text`` as the user wrote it.  ``last_line`` is the last line of the script
    that can still bind the name, None where that is not known or the module is not the script."""

    text: str
    module: str
    attribute: str
    last_line: int | None = None


@dataclass(frozen=True, slots=True)
class Requests:
    """``backend`` is that of what is compiled by request."""

    keep_going: bool = False
    profile: bool = False
    compile: tuple[CompileRequest, ...] = ()
    backend: str = BACKEND

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        lines = ["keep-going"] * self.keep_going + ["profile"] * self.profile
        lines += [f"backend {self.backend}"] if self.compile else []
        lines += [f"compile {r.text} {r.module} {r.attribute} {r.last_line or 0}" for r in self.compile]
        if lines:
            (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_requests(folder: Path) -> Requests:
    """The requests to the run that is recorded in a folder.  Raises OSError."""
    keep_going, profile, backend, asked = False, False, BACKEND, []
    file = folder / FILE
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        word, *operands = line.split()
        if word == "keep-going":
            keep_going = True
        elif word == "profile":
            profile = True
        elif word == "backend":
            (backend,) = operands
        elif word == "compile":
            text, module, attribute, last = operands
            asked.append(CompileRequest(text, module, attribute, int(last) or None))
    return Requests(keep_going, profile, tuple(asked), backend)
