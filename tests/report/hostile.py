"""Results whose every string wants to break the report that shows it."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from itertools import cycle
from typing import Any

from hypothesis import strategies as st

from breakscan.rulebook.document import Rule

NASTY = (
    "</script><script>window.x=1</script>",
    '"><img src=x onerror=alert(1)>',
    "</details></table><h1>mine</h1>",
    "<!-- ",
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "\x9b31mC1",
    "\r\n::error file=a.py::forged",
    "::add-mask::secret",
    "##[error]forged",
    "a\n##[group]b",
    "\x00nul\x7f\x08",
    "\udcff\ud800",
    "\u202egnp.exe\u2066\u2028\u2029\x85",
    "a|b\\|c`d``e|",
    "| --- | --- |",
    "`",
    "\\",
    "# heading",
    "1. list",
    "    code",
    "@someone @org/team #123 org/repo#1 GH-7 a@b.com",
    "https://example.com www.example.com ftp://x",
    "[link](javascript:alert(1)) ![image](x) <https://a.b>",
    "*a* _b_ ~~c~~ $x$ &lt; &#60;",
    "%0A%25,:;=",
    "x" * 5000,
    "tensor([[1., 2.],\n        [3., 4.]])",
    " ",
)

_ANY = st.text(st.characters(exclude_categories=()), min_size=1, max_size=40)
STRINGS = st.lists(st.one_of(st.sampled_from(NASTY), _ANY), min_size=1, max_size=30)
_KEPT = {"gb_id", "id", "body", "way", "status"}
"""Which only have forms that are checked where they are read."""


def poisoned(thing: Any, strings: list[str]) -> Any:
    """The same with each of its strings replaced by the next of these, over and over."""
    return _poisoned(thing, cycle(strings))


def _poisoned(thing: Any, strings: Iterator[str]) -> Any:
    if type(thing) is str:
        return next(strings)
    if isinstance(thing, (tuple, list)):
        return [_poisoned(item, strings) for item in thing]  # what is digested has lists, and tuples are tested anyhow
    if isinstance(thing, Mapping):
        return {key: _poisoned(value, strings) for key, value in thing.items()}
    if is_dataclass(thing) and not isinstance(thing, (type, Enum)):
        names = [f.name for f in fields(thing) if f.name not in _KEPT]
        if isinstance(thing, Rule):
            names = [name for name in names if type(getattr(thing, name)) is str]
        return replace(thing, **{name: _poisoned(getattr(thing, name), strings) for name in names})
    return thing
