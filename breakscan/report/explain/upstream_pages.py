"""PyTorch's own pages about graph breaks."""

from __future__ import annotations

import re

BREAK_PAGES = "https://meta-pytorch.github.io/compile-graph-break-site/gb/"
"""As the messages of torch name them."""
_ID = re.compile(r"GB\d{4}")


def break_page(gb_id: str | None) -> str | None:
    """The page of a break by torch's id of it, such as ``GB0124``; None without one."""
    return f"{BREAK_PAGES}{gb_id.lower()}.html" if gb_id and _ID.fullmatch(gb_id) else None
