"""The requests to a run besides recording it: ``--keep-going``, ``--profile`` and ``--compile``.

It reaches the process of the program as a file in the folder of its recording, one word and its operands a line.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """``--compile module:attribute``: ``text`` as the user wrote it."""

    text: str
    module: str
    attribute: str


class RequestError(ValueError):
    """The request cannot be met.  Says why."""


def compile_request(text: str, argv: Sequence[str]) -> CompileRequest:
    """The request of a ``--compile``, of a program run as ``python ARGV``.  Raises RequestError for a text of another
    form."""
    module, colon, attribute = text.partition(":")
    parts = [*(module.split(".") if module else []), *attribute.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise RequestError(f"{text!r} is not of the form module:name, or :name for the script itself")
    is_script = module in ("", MAIN) or (argv[0] == "-m" and argv[1] == module)
    return CompileRequest(text, MAIN if is_script else module, attribute)


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
        lines += [f"compile {r.text} {r.module} {r.attribute}" for r in self.compile]
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
            asked.append(CompileRequest(*operands))
    return Requests(keep_going, profile, tuple(asked), backend)
