"""Where links lead that leave ``docs/``: to other pages of the site, or to the repository if it has an address."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"^( *(`{3,})[^\n]*\n.*?^ *\2 *$)", re.DOTALL | re.MULTILINE)


def redirected(text: str, source: str, page: str, pages: Mapping[str, str], repository: str | None) -> str:
    """The text of the file ``source`` with links as they are on ``page``.

    ``pages`` are the files of the repository that are pages of the site.  Without a ``repository``, a link to another
    file becomes its text.
    """

    def target(link: re.Match[str]) -> str:
        words, path, anchor = link[1], link[2], link[3] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if file in pages:
            return f"[{words}]({posixpath.relpath(pages[file], posixpath.dirname(page) or '.')}{anchor})"
        if repository:
            return f"[{words}]({repository.rstrip('/')}/blob/HEAD/{file}{anchor})"
        return words

    parts = FENCED.split(text)
    # Each fence is two parts: all of it, and its backticks.
    return "".join(LINK.sub(target, part) if at % 3 == 0 else part for at, part in enumerate(parts) if at % 3 != 2)
