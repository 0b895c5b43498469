"""The lines of sites."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

from breakscan.model.findings import Site


def lines_of(site: Site) -> range:
    """The lines that a site spans."""
    return range(site.line, site.end_line + 1)


def touches(site: Site, lines: Mapping[str, Sequence[int]]) -> bool:
    """Whether a site spans one of these lines, which are sorted."""
    known = lines.get(site.path, ())
    at = bisect.bisect_left(known, site.line)
    return at < len(known) and known[at] <= site.end_line
