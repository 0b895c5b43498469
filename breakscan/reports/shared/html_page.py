"""What every HTML report needs: escaping, style sheets, scripts, data, and the digests that a page's policy names."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from typing import Any

from breakscan.reports.shared.printable import visible


def escaped(text: str) -> str:
    """Text as HTML in ASCII, also for attributes: one line, without characters that hide or reorder text."""
    return html.escape(visible(text)).encode("ascii", "xmlcharrefreplace").decode()


def page_style() -> str:
    """The style sheet of all pages with tables that sort and filter."""
    return base_style() + _part("page_style.css")


def base_style() -> str:
    """Colours and text, for a page that has little of its own."""
    return _part("page_base.css")


def page_script(*names: str) -> str:
    """The scripts of these names, which pages have in common."""
    return "\n".join(_part(f"script/{name}.js") for name in names)


def json_for_html(data: dict[str, Any]) -> str:
    """Returns JSON that cannot end the script element around it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="ascii")


def digest(text: str) -> str:
    """The name of an inline script or style sheet with this text in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
