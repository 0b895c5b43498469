"""Reads the tree of guards that torch's structured trace holds for each compiled frame."""

from __future__ import annotations

import re
from collections.abc import Iterator

from breakscan.record.records.guards import Guard

LONGEST = 400
"""Characters of a guard that a recording keeps."""

_ENTRY = re.compile(r"^(?P<bars>(?:\| )*)\+- (?P<kind>\w+)(?:: (?P<text>.*))?$")
_SOURCE = re.compile(r"source=(?P<source>.+?), accessed_by=")
_COMMENT = re.compile(r"\s{2,}# ")
_IDENTITY = re.compile(r"(___check_(?:type|obj)_id\(.+, )\d+\)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_MARK = re.compile(r"hasattr\(.+, '_dynamo_\w+'\) == False$")


def guards_of_tree(text: str) -> Iterator[Guard]:
    """The guards in the order in which they are checked, without the lines that asked for them.

    Left out are those that hold as long as nobody marks a tensor's dimensions: there are up to five a tensor, and none
    of them says anything about the program.
    """
    sources: list[str | None] = []
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is None:
            continue
        depth = len(entry["bars"]) // 2
        del sources[depth:]
        kind, body = entry["kind"], entry["text"] or ""
        if not kind.isupper():
            found = _SOURCE.match(body)
            sources += [None] * (depth - len(sources))
            sources.append(found["source"] if found else None)
            continue
        check = _COMMENT.split(body, maxsplit=1)[0].strip()
        if not _MARK.match(check):
            subject = next((source for source in reversed(sources) if source), None)
            yield Guard(kind, _stable(check), None, subject)


def _stable(text: str) -> str:
    """Without what differs from run to run."""
    text = _ADDRESS.sub("", _IDENTITY.sub(r"\g<1>0)", text))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
