"""Reads what the key of an entry of Inductor's cache is made of, as torch lists it for its structured trace."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

LONGEST = 60
"""Characters of a part that are kept as they are: of a longer one, its digest."""

_PART = re.compile(r"\[(?P<digest>\w+)\] (?P<name>[^:]+): ?(?P<text>.*)", re.S)
_GRAPH = ("gm", "example_inputs")
_OPTION = "fx_kwargs["
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")


@dataclass(frozen=True, slots=True)
class CacheKey:
    """``parts`` are the graph, its inputs and how it is to be compiled; ``settings`` what is the same for most graphs
    of a program: Inductor's configuration, the versions, the machine.  Values that begin with ``#`` are digests."""

    parts: Mapping[str, str]
    settings: Mapping[str, str]


def cache_key(components: Iterable[str]) -> CacheKey | None:
    """None where torch does not list the parts."""
    parts: dict[str, str] = {}
    settings: dict[str, str] = {}
    inputs: list[str] = []
    for name, digest, text in _read(components):
        if name.startswith("example_inputs["):
            inputs.append(digest)
        elif name in _GRAPH:
            parts[name] = f"#{digest[:10]}"
        else:
            is_short = len(text) <= LONGEST and text.isprintable() and not _ADDRESS.search(text)
            (parts if name.startswith(_OPTION) else settings)[name] = text if is_short else f"#{digest[:10]}"
    if inputs:
        parts["example_inputs"] = digest_of(inputs)
    return CacheKey(parts, settings) if parts else None


def digest_of(texts: Iterable[str]) -> str:
    """A digest that begins as those of parts do."""
    return f"#{hashlib.sha256(chr(0).join(texts).encode(errors='replace')).hexdigest()[:10]}"


def _read(components: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for component in components:
        if found := _PART.match(component):
            yield found["name"], found["digest"], found["text"].strip()
