"""Files that a program writes, in which the next run would undo an edit."""

from __future__ import annotations

import re
from itertools import takewhile

import libcst as cst

from breakscan.fix.support.edit import Declined

_GENERATED = re.compile(r"\bauto(?:matically |-)?generated\b(?: from (?P<source>[\w./\\-]+\w))?", re.IGNORECASE)
_KEPT = re.compile(r"\bdo not (?:edit|modify|change)\b|\bautomatically generated from\b", re.IGNORECASE)


def refuse_generated(module: cst.Module) -> None:
    """Declines if the comments at the top of a file say that it is generated."""
    reason = _why(module)
    if reason is not None:
        raise Declined(reason)


def why_generated(text: str) -> str | None:
    """The reason to decline, for a file with this text; None if it is not generated."""
    return _why(_top_of(text))


def source_named(text: str) -> str | None:
    """The file from which a text says that it is generated, as it is written there."""
    found = _generated(_top_of(text))
    return found["source"] if found is not None else None


def why_made_from(place: str) -> str:
    """The reason to decline, where the code is known that generated code is made from."""
    return f"this file is generated: change `{place}`"


def _top_of(text: str) -> cst.Module:
    top = takewhile(_is_comment_or_blank, text.splitlines(keepends=True))
    return cst.parse_module(f"{''.join(top)}pass\n")


def _is_comment_or_blank(line: str) -> bool:
    return line.lstrip()[:1] in ("", "#")


def _generated(module: cst.Module) -> re.Match[str] | None:
    comments = "\n".join(line.comment.value for line in module.header if line.comment is not None)
    return _GENERATED.search(comments) if _KEPT.search(comments) is not None else None


def _why(module: cst.Module) -> str | None:
    found = _generated(module)
    if found is None:
        return None
    source = found["source"]
    where = f"from `{source}`: change the code there" if source else "by a program: change what it is generated from"
    return f"this file is generated {where}"
