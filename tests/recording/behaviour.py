"""The programs in ``behaviours/``: each shows one known behaviour, and says what the report has to say of it."""

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "behaviours"


@dataclass(frozen=True)
class Behaviour:
    """A program.  ``expect`` is a Python expression over the keys of the JSON report and the functions of
    :meth:`holds`; ``options`` are those of breakscan, ``env`` variables of the environment."""

    path: Path
    what: str
    expect: str
    options: tuple[str, ...]
    env: dict[str, str]

    @property
    def name(self) -> str:
        return self.path.stem

    def line(self, mark: str) -> int:
        """The line that carries the comment ``# MARK``."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))

    def holds(self, report: dict[str, Any]) -> bool:
        """Whether a report says what it has to."""

        def site(mark: str) -> dict[str, Any] | None:
            """The break at a marked line."""
            return next((b for b in report["breaks"] if b["site"]["line"] == self.line(mark)), None)

        def frame(function: str) -> dict[str, Any]:
            """What became of a function."""
            return next(f for f in report["frames"] if f["function"] == function)

        def eager(function: str) -> bool:
            return any(f["function"] == function and f["status"] == "eager" for f in report["frames"])

        def recompile(subject: str) -> dict[str, Any]:
            """The first recompile over a value."""
            return next(r for r in report["recompiles"] if r["subject"] == subject)

        def problem(reason: str) -> dict[str, Any]:
            """The first problem of that reason."""
            return next(p for p in report["problems"] if p["reason"] == reason)

        known = {"site": site, "frame": frame, "eager": eager, "recompile": recompile, "problem": problem}
        return bool(eval(self.expect, {**report, **known, "line": self.line}))


def behaviours() -> Iterator[Behaviour]:
    for path in sorted(FOLDER.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        said = dict(re.findall(r"^(expect|options|env): (.*)$", text, re.M))
        env = dict(word.partition("=")[::2] for word in shlex.split(said.get("env", "")))
        yield Behaviour(path, text.splitlines()[0], said["expect"], tuple(shlex.split(said.get("options", ""))), env)
