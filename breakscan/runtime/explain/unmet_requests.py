"""What came of each ``--compile``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from breakscan.runtime.records.compiles import CompileAsked, CompileMet
from breakscan.runtime.records.record import Record
from breakscan.runtime.requests_file import MAIN


def unmet_requests(asked: Iterable[str], records: Iterable[Record]) -> Iterator[str]:
    """Why each ``--compile`` that compiled nothing did not, in words."""
    met: dict[str, CompileMet] = {}
    for record in records:
        if isinstance(record, CompileMet) and (record.target not in met or record.problem is None):
            met[record.target] = record
    for text in dict.fromkeys(asked):
        answer = met.get(text)
        if answer is None:
            module = text.partition(":")[0]
            never = f"the program never imported {module}" if module not in ("", MAIN) else "the script never bound it"
            yield f"--compile {text} compiled nothing: {never}"
        elif answer.problem is not None:
            name = text.partition(":")[2]
            close = "".join(f"; nearest: {found}" for found in get_close_matches(name, answer.names, 1))
            yield f"--compile {text} compiled nothing: {answer.problem.rstrip('.')}{close}"


def asked_of(records: Iterable[Record]) -> list[str]:
    """The texts of the ``--compile`` that a recording was made with."""
    return [record.target for record in records if isinstance(record, CompileAsked)]
