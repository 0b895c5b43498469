"""What every HTML report needs: escaping, the style sheet, and the digests that a page's policy names."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources

from breakscan.reports.shared.printable import visible


def escaped(text: str) -> str:
    """Text as HTML in ASCII, also for attributes: one line, without characters that hide or reorder text."""
    return html.escape(visible(text)).encode("ascii", "xmlcharrefreplace").decode()


def page_style() -> str:
    """The style sheet of all pages."""
    return (resources.files(__package__) / "page_style.css").read_text(encoding="ascii")


def digest(text: str) -> str:
    """The name of an inline script or style sheet with this text in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
