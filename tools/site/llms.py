"""Writes ``llms.txt``, which lists the documentation for language models (https://llmstxt.org).

``python -m tools.site.llms``.  It follows the navigation of ``mkdocs.yml``, and describes each page by its first
sentence.  ``tests/test_llms.py`` fails where the file differs from what this makes.  The site has a copy whose links
lead to its pages, and ``llms-full.txt`` with their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from breakscan.rulebook.library import load_library

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FILE = ROOT / "llms.txt"

SECTIONS = ("Tutorials", "Guides", "Reference")
IN_FULL = ("Tutorials", "Guides")
"""The sections whose text is in ``llms-full.txt``: what people need who use breakscan."""
FENCE = re.compile(r"^( *`{3,})[^\n]*\n.*?^\1 *$\n?", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def index_text(*, of_site: bool = False) -> str:
    """The text of ``llms.txt``: in the repository, or with the links of the site."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    parts = [
        "# breakscan",
        f"> {_first_sentence(readme)} {_about(readme)}",
        "- `breakscan check PATH` reads source files, needs no torch and runs nothing; `breakscan explain PROGRAM` "
        "runs a program and reports what the compiler did; `breakscan fix PATH` writes rewrites; "
        "`breakscan verify PROGRAM` proves and times them; `breakscan tune PROGRAM` finds the fastest equal program.\n"
        "- Commands that report take `--format json`. The exit status is 0 if nothing was found, 1 if something was, "
        "and 2 if something could not be done.\n"
        "- `breakscan rule BRK101` prints why a rule holds, what to write instead, and examples that compile.",
    ]
    for section in SECTIONS:
        lines = [_line(page, of_site) for page in pages(section) if _is_document(page)]
        parts += [f"## {section}", "\n".join(lines)] if lines else []
    rules = "rules/" if not of_site else "rules/index.html"
    parts += ["## Optional", f"- [Rules]({rules}): the document of each of the {len(load_library())} rules"]
    return "\n\n".join(parts) + "\n"


def full_text() -> str:
    """The text of ``llms-full.txt``: the index, the pages for users, and a line for each rule."""
    texts = [(DOCS / page).read_text(encoding="utf-8").strip() for section in IN_FULL for page in pages(section)]
    rules = "\n".join(f"- {rule.id} {rule.name}: {rule.summary}. Instead: {rule.instead}." for rule in load_library())
    return "\n\n".join([index_text(of_site=True).strip(), *texts, f"# Rules\n\n{rules}"]) + "\n"


def _is_document(page: str) -> bool:
    """True if the page is not made when the site is built."""
    return (DOCS / page).exists()


def pages(section: str) -> list[str]:
    """The pages of a section of the navigation, in its order."""
    # The tag for variables of the environment is one of MkDocs.
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8").replace("!ENV ", ""))["nav"]
    return [page for entry in nav if isinstance(entry, dict) and section in entry for page in _leaves(entry[section])]


def _leaves(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from _leaves(inner)


def _line(page: str, of_site: bool) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    title = text.partition("\n")[0].removeprefix("# ")
    path = f"{page.removesuffix('.md')}.html" if of_site else f"docs/{page}"
    return f"- [{title}]({path}): {_first_sentence(text)}"


def _paragraphs(text: str) -> Iterator[str]:
    for block in FENCE.sub("\n", text).split("\n\n"):
        prose = [line for line in block.strip().split("\n") if line and not line.startswith(("#", "<!--"))]
        if prose and not prose[0].startswith(("|", "<", "- ", "1. ")):
            yield LINK.sub(r"\1", " ".join(prose))


def _first_sentence(text: str) -> str:
    """The first sentence of a page."""
    return re.split(r"(?<=[.:])\s(?=[A-Z`*])", next(_paragraphs(text)))[0].rstrip(":")


def _about(readme: str) -> str:
    """The rest of the first paragraph of the README."""
    return next(_paragraphs(readme)).removeprefix(_first_sentence(readme)).strip()


if __name__ == "__main__":
    FILE.write_text(index_text(), encoding="utf-8")
    print(f"wrote {FILE}")
