"""What came of each ``--compile``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from breakscan.explain.notice import Notice, NoticeKind
from breakscan.record.records import CompileAsked, CompileMet, Record
from breakscan.record.requests_file import MAIN


def unmet_requests(asked: Iterable[str], records: Iterable[Record]) -> Iterator[Notice]:
    """Why each ``--compile`` that compiled nothing did not."""
    met: dict[str, CompileMet] = {}
    for record in records:
        if isinstance(record, CompileMet) and (record.target not in met or record.problem is None):
            met[record.target] = record
    for text in dict.fromkeys(asked):
        answer = met.get(text)
        if answer is None:
            module = text.partition(":")[0]
            of_script = module in ("", MAIN)
            yield Notice(NoticeKind.NEVER_BOUND if of_script else NoticeKind.NEVER_IMPORTED, text, module)
        elif answer.problem is not None:
            nearest = get_close_matches(text.partition(":")[2], answer.names, 1)
            yield Notice(NoticeKind.NOT_COMPILED, text, answer.problem, tuple(nearest))


def asked_of(records: Iterable[Record]) -> list[str]:
    """The texts of the ``--compile`` that a recording was made with."""
    return [record.target for record in records if isinstance(record, CompileAsked)]
