"""The hook of MkDocs: adds the pages that are made from rules, commands and recordings, and mends links and lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from breakscan.rulebook.document import FAMILIES
from breakscan.rulebook.ledger import load_ledger, measured_versions
from breakscan.rulebook.library import load_library
from tools.site.command_pages import commands_page
from tools.site.commonmark import adapted
from tools.site.gallery import gallery_files
from tools.site.links import redirected
from tools.site.llms import full_text, index_text
from tools.site.rule_pages import index_page, path_of, rule_page

ROOT = Path(__file__).parents[2]

COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks/index.md",
}
"""The documents of the repository outside ``docs/`` that are pages of the site."""

API = """\
# Python API

What `import breakscan` offers. [breakscan in Python](python.md) explains how to use it, and what it changes and keeps.

::: breakscan.api.explain

::: breakscan.api.record

::: breakscan.api.Recording
    options:
      members: [explain]

::: breakscan.api.Report
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the rules into the navigation, by family, and gives headings the anchors that code hosts give them."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    rules: list[Any] = ["rules/index.md"]
    for family, title in FAMILIES.items():
        pages = [path_of(rule) for rule in load_library() if rule.family == family]
        rules += [{f"{family}xx {title}": pages}] if pages else []
    assert config.nav is not None
    config.nav[:] = [{"Rules": rules} if entry == "RULES" else entry for entry in config.nav]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages that are not in ``docs/``."""
    ledgers = [load_ledger(version) for version in reversed(measured_versions())]
    library = load_library()
    made = {path_of(rule): rule_page(rule, ledgers) for rule in library}
    made["rules/index.md"] = index_page(library, ledgers)
    made["commands.md"] = commands_page()
    made["api.md"] = API
    made |= {page: (ROOT / source).read_text(encoding="utf-8") for source, page in COPIED.items()}
    made |= gallery_files()
    made |= {"llms.txt": index_text(of_site=True), "llms-full.txt": full_text()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lists as Python-Markdown reads them, and links that leave ``docs/``."""
    path = page.file.src_uri
    text = adapted(markdown)
    source = {page: source for source, page in COPIED.items()}.get(path) or f"docs/{path}"
    if not (ROOT / source).exists():
        return text
    pages = {f"docs/{file.src_uri}": file.src_uri for file in files} | COPIED
    pages |= {file.src_uri: file.src_uri for file in files if file.src_uri.startswith("rules/")}
    return redirected(text, source, path, pages, config.repo_url)
