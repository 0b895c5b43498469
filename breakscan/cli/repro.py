"""The options ``--repro`` and ``--repro-output`` of ``explain`` and ``report``: a program that reproduces one finding,
and for code of a library a text for its issue tracker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from breakscan.cli.exit_status import show_failure
from breakscan.cli.options import option
from breakscan.explanation.explanation import Explanation
from breakscan.rulebook.library import Library
from breakscan.source.source_files import SourceFiles

if TYPE_CHECKING:
    from breakscan.explanation.repro.problem import RecordedProblem
    from breakscan.explanation.repro.reproduction import Reproduction

_ISSUE = ".md"
"""The ending of the text for an issue tracker, in the same folder as the program."""
NOT_WRITTEN = 2
NOT_REPRODUCED = 1
"""Exit statuses, where the program itself ended well."""
_MOST_SITES = 10


def _new(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    for path in () if value is None else (value, value.with_suffix(_ISSUE)):
        if path.exists():
            raise click.BadParameter(f"{path} exists already: name another file, or delete it first")
    if value is not None and not value.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {value.parent}")
    return value


@dataclass(frozen=True, slots=True)
class ReproOptions:
    """The options, as they were given."""

    repro: str | None = option(
        "--repro",
        metavar="SITE",
        help="Write a small program that reproduces the break, recompile or failure at SITE (train.py:41, or an id of "
        "a rule or of PyTorch), and run it to check that it does.",
    )
    repro_output: Path | None = option(
        "--repro-output",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=_new,
        metavar="FILE",
        help="The new file for --repro.  [repro_NAME_LINE.py]",
    )

    def require_site(self) -> None:
        """Raises UsageError for a destination without something to write."""
        if self.repro_output is not None and self.repro is None:
            raise click.UsageError("--repro-output goes with --repro SITE")

    def write(self, explanation: Explanation, files: SourceFiles, rules: Library) -> tuple[Reproduction | None, int]:
        """Writes the program, if one is asked for; see :func:`_write_repro`."""
        if not self.repro:
            return None, 0
        return _write_repro(self.repro, self.repro_output, explanation, files, rules)


def _write_repro(
    where: str, output: Path | None, explanation: Explanation, files: SourceFiles, rules: Library
) -> tuple[Reproduction | None, int]:
    """Write the program.  Return the result, and the exit status; prints why it cannot be made."""
    from breakscan.explanation.repro.problem import NotReproducible, problems, problems_at
    from breakscan.explanation.repro.reproduction import ReproStatus, reproduce
    from breakscan.report.explain.repro_text import (
        issue_library,
        issue_sentence,
        issue_text,
        obstacle_words,
        repro_text,
    )

    found = problems(explanation, files)
    there = problems_at(found, where)
    if len(there) != 1:
        _say(_which(where, there or found, bool(there)))
        return None, NOT_WRITTEN
    problem = there[0]
    path = output or next(_free(problem))
    made, text, status = None, "", NOT_WRITTEN
    try:
        made = reproduce(problem, explanation, files, rules, path.name, repro_text)
        text = repro_text(made.problem, made.program, explanation)
        _write(path, text)
        made = replace(made, path=str(path))
        status = 0 if made.status is ReproStatus.REPRODUCED else NOT_REPRODUCED
    except NotReproducible as error:
        _say(f"no reproduction of {where} can be made: {obstacle_words(error)}")
    except OSError as error:
        _say(f"cannot write {path}: {error.strerror}")
        return None, NOT_WRITTEN
    except Exception as error:
        return None, show_failure(error)
    if issue_library(problem, explanation) is not None:
        issue = path.with_suffix(_ISSUE)
        try:
            _write(issue, issue_text(problem, explanation, made, text))
        except OSError as error:
            _say(f"cannot write {issue}: {error.strerror}")
            return made, NOT_WRITTEN
        if made is None:
            _say(issue_sentence(problem, str(issue)))
        else:
            made = replace(made, issue=str(issue))
    return made, status


def _write(path: Path, text: str) -> None:
    """Writes a new file: what another process has made meanwhile is left alone."""
    with path.open("x", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)


def say_repro(made: Reproduction) -> None:
    """Print the result on standard error, for formats that do not show it."""
    from breakscan.report.explain.repro_text import repro_sentence
    from breakscan.report.printable import visible

    _say(visible(repro_sentence(made)))


def _free(problem: RecordedProblem) -> Iterator[Path]:
    """Yield names that no file has yet."""
    stem = re.sub(r"\W+", "_", Path(problem.site.path).stem) or "code"
    base = f"repro_{stem}_{problem.site.line}"
    for number in range(1, 10_000):
        path = Path(f"{base}.py" if number == 1 else f"{base}_{number}.py")
        if not path.exists() and not path.with_suffix(_ISSUE).exists():
            yield path


def _which(where: str, found: Sequence[RecordedProblem], ambiguous: bool) -> str:
    from breakscan.model.words import short_path
    from breakscan.report.printable import visible

    sites = list(dict.fromkeys(f"{short_path(one.site.path)}:{one.site.line}" for one in found))
    shown = ", ".join(sites[:_MOST_SITES]) + (", …" if len(sites) > _MOST_SITES else "")
    if ambiguous:
        return visible(f"--repro {where} is at several sites: name one of {shown}")
    return visible(f"nothing is reported at {where}" + (f": there is {shown}" if sites else ""))


def _say(text: str) -> None:
    click.echo(f"breakscan: {text}", err=True)
