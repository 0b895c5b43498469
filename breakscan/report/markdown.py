"""Foreign text in GitHub's Markdown: shown as it is, whatever it holds.  Punctuation becomes numeric entities, which
never mark anything up.  GitHub looks for ``@names``, ``#123`` and addresses in what Markdown has made, entities
resolved: there a blank of no width keeps them apart."""

import re

from breakscan.model.words import clipped

LONGEST_CELL = 300
LIMIT = 65_000  # characters: GitHub takes 65,536 in a comment
_FENCE = "````"
_MARKS = re.compile(r"[!\"#$&'*<>@\[\\\]^_`{|}~]")
_STARTS_A_LIST = re.compile(r"[0-9+=-]")
_NOTHING = "&#8203;"
_LINKS = re.compile(r"(?<=@)|(?<=#)|(?<=\bGH-)|(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.IGNORECASE)
_ENDS_CODE = re.compile(r"[`|\\]|^\s|\s$")


def prose(text: str) -> str:
    """The text within a line: nothing in it is markup, and nothing becomes a link."""
    text = clipped(text.strip(), LONGEST_CELL)
    return _NOTHING.join(_MARKS.sub(_entity, part) for part in _LINKS.split(text))


def paragraph(text: str) -> str:
    """Returns the text as a separate paragraph that is not read as a list or a heading."""
    escaped = prose(text)
    return _STARTS_A_LIST.sub(_entity, escaped[:1]) + escaped[1:]


def code(text: str) -> str:
    """The text as code; where it holds what a table or a code span would not let through, by HTML."""
    text = clipped(text, LONGEST_CELL)
    if _ENDS_CODE.search(text) or not text:
        return f"<code>{prose(text)}</code>"
    return f"`{text}`"


def row(*cells: str) -> str:
    """A line of a table, of cells in Markdown."""
    return f"| {' | '.join(cells)} |\n"


def table_head(*titles: str) -> str:
    """The first two lines of a table."""
    return row(*titles) + row(*["---"] * len(titles))


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def heading(command: str, words: str) -> str:
    """The first lines of a report: by the comment, a job finds the one that it wrote before."""
    return f"<!-- breakscan {command} -->\n### breakscan {command}: {prose(words)}\n"


def block(text: str, language: str = "diff") -> str:
    """The text as code; empty if it holds what would end the code."""
    return f"{_FENCE}{language}\n{text.rstrip()}\n{_FENCE}\n" if text and _FENCE not in text else ""
