"""What the Python that Inductor generates says of itself in its first lines, and how a recording keeps it short."""

from __future__ import annotations

import re

LONGEST = 400_000
"""Characters of the code for one graph that a recording keeps whole."""
LONGEST_CALLS = 10 * LONGEST
"""Characters that it keeps without the sources of kernels and comments.  The backward of DenseNet-121 has 400,521."""

_HEAD = re.compile(r"^# AOT ID: \['(?P<number>\d+)_(?P<phase>forward|backward|inference)'\]", re.M)
_BODY = re.compile(r"(r?''')(.*?)'''", re.S)
_FRAGMENT = re.compile(r"^ *#   %.*\n", re.M)
"""A line of the graph of which a kernel does the work, in the comment above it: of large models the most of all."""
_COMMENT = re.compile(r"^ *#(?! AOT ID).*\n", re.M)


def phase_of(code: str) -> str | None:
    found = _HEAD.search(code)
    return found["phase"] if found else None


def number_of(code: str) -> int:
    """The number by which graphs of one compile are in order."""
    found = _HEAD.search(code)
    return int(found["number"]) if found else 0


def shortened(code: str) -> str:
    """The code as a recording keeps it: whole up to :data:`LONGEST` characters.  Of longer code the sources of kernels
    are left out first, the longest first, then comments.  What is longer without them says which kernels are called,
    and is kept up to :data:`LONGEST_CALLS`."""
    excess = len(code) - LONGEST
    if excess <= 0:
        return code
    for length in sorted((len(found[2]) for found in _BODY.finditer(code)), reverse=True):
        if excess > 0:
            shortest, excess = length, excess - length
    code = _BODY.sub(lambda found: _left_out(found) if len(found[2]) >= shortest else found[0], code)
    for comment in (_FRAGMENT, _COMMENT):
        if len(code) > LONGEST:
            code = comment.sub("", code)
    if len(code) > LONGEST_CALLS:
        # After a whole line: a statement of generated code is one line, and part of it is not valid Python.
        kept = code[: code.rfind("\n", 0, LONGEST_CALLS) + 1]
        code = f"{kept}# {len(code) - len(kept):,} characters are left out of the recording\n"
    return code


def _left_out(found: re.Match[str]) -> str:
    return f"{found[1]}\n{len(found[2]):,} characters are left out of the recording\n'''"
