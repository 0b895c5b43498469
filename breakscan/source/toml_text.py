"""Texts in TOML files that breakscan writes."""

from __future__ import annotations

import json
import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def quoted(text: str) -> str:
    """A basic string.  What is no Unicode text, as parts of file names may be, has no place in one."""
    return json.dumps(_SURROGATE.sub("\ufffd", text), ensure_ascii=False).replace("\x7f", "\\u007f")
