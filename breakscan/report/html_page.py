"""The frame of every HTML report and its policy, escaping, style sheets, scripts and data."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable
from importlib import resources
from string import Template
from typing import Any

from breakscan.report.printable import visible

_SCRIPTS = ("dom", "words", "table", "theme", "tabs")
"""In the order in which they run: names defined at the top of one are known to those after it."""


def escaped(text: str) -> str:
    """Text as HTML in ASCII, also for attributes: one line, without characters that hide or reorder text."""
    return html.escape(visible(text)).encode("ascii", "xmlcharrefreplace").decode()


def page_style() -> str:
    """The style sheet of all pages with tables that sort and filter."""
    return page_part("base.css") + page_part("style.css")


def scripted_page(
    *,
    title: str,
    outcome: str,
    headline: str,
    below: str,
    static: str,
    data: dict[str, Any],
    style: str,
    scripts: Iterable[str],
) -> str:
    """A page that its ``scripts`` build from ``data``, after those that pages have in common.  ``below`` is HTML below
    the headline, and ``static`` what is there without scripts; the other words are text."""
    shared = (page_part(f"script/{name}.js") for name in _SCRIPTS)
    script = "\n".join(["\n".join(shared), *scripts])
    return Template(page_part("page.html")).substitute(
        policy=f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
        "base-uri 'none'; form-action 'none'",
        title=escaped(title),
        style=style,
        script=script,
        outcome=escaped(outcome),
        headline=escaped(headline),
        below=below,
        static=static,
        data=json_for_html(data),
    )


def json_for_html(data: dict[str, Any]) -> str:
    """Returns JSON that cannot end the script element around it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_part(name: str) -> str:
    """A style sheet, a script or the frame, by its path in ``page/``."""
    return (resources.files(__package__) / "page" / name).read_text(encoding="ascii")


def digest(text: str) -> str:
    """The name of an inline script or style sheet with this text in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
