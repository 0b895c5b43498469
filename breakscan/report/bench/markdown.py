"""The report of ``bench`` as a comment on a pull request, or the summary of a job."""

from __future__ import annotations

from typing import TextIO

from breakscan.model.words import sentence
from breakscan.prove.bench.result import Bench
from breakscan.report.bench.words import (
    TITLES,
    basis_words,
    cells,
    eager_cells,
    headline,
    outcome_words,
    verdict,
    write_words,
)
from breakscan.report.shared.markdown_text import code, paragraph, prose, row, table_head
from breakscan.report.shared.observation_words import observation_words
from breakscan.report.shared.printable import visible

MARK = "<!-- breakscan bench -->"
"""The first line: by it, a job finds the comment that it wrote before."""


def write_bench_markdown(bench: Bench, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown."""
    parts = [f"{MARK}\n### breakscan bench: {prose(headline(bench))}\n"]
    if bench.eager is not None:
        parts.append(_table(bench))
    said = [*verdict(bench), *(sentence(visible(observation_words(note))) for note in bench.notes), *basis_words(bench)]
    parts += [paragraph(words) + "\n" for words in said]
    if write := write_words(bench):
        parts.append("".join(f"{_written(line)}  \n" for line in write))
    stream.write("\n".join(parts))


def _written(line: str) -> str:
    """A line of what to write: the code in it as code."""
    intro, separator, rest = line.partition(": ")
    if line.startswith(" "):
        return code(line.strip())
    return f"{paragraph(intro)} {code(rest)}" if separator and rest else paragraph(line)


def _table(bench: Bench) -> str:
    lines = [("eager", *map(prose, eager_cells(bench)), "")]
    for one in bench.rows:
        label = code(visible(one.label))
        told = f"**{label}**" if one.label == bench.best else label
        lines.append((told, *map(prose, cells(one, bench)), prose(outcome_words(one))))
    titles = (*TITLES, "")
    # Peak memory is told of a GPU alone.
    shown = [at for at, title in enumerate(titles) if title != "memory" or any(line[at] for line in lines)]
    return "".join([table_head(*(titles[at] for at in shown)), *(row(*(line[at] for at in shown)) for line in lines)])
