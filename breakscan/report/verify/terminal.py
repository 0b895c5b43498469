"""The report of ``verify`` that people read: a line a change, then why, then on what it rests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.text import Text

from breakscan.model.words import counted, sentence
from breakscan.prove.verify.proof import Proof, ProofVerdict, Verification
from breakscan.report.shared.code_frame import paragraph
from breakscan.report.shared.console import report_console
from breakscan.report.shared.observation_words import observation_words
from breakscan.report.shared.printable import printable
from breakscan.report.verify.words import (
    basis_words,
    declined_words,
    ending_words,
    headline,
    label_words,
    notes,
    remarks,
    table_rows,
    unproved,
)

STYLES = {ProofVerdict.ACCEPTED: "bold green", ProofVerdict.NO_FASTER: "yellow", ProofVerdict.REJECTED: "bold red"}
MOST_REASONS = 4
MOST_NAMED = 5


def write_verify_terminal(verification: Verification, stream: TextIO) -> None:
    """Writes the report."""
    verification = printable(verification)
    console = report_console(stream)
    console.print(Text(sentence(headline(verification)), "bold"))
    if verification.proofs:
        _table(verification, console)
    said: dict[str, list[str]] = {}
    for proof in verification.proofs:
        for line in _more(proof):
            said.setdefault(line, []).append(label_words(proof.label))
    for line, labels in said.items():
        console.print(paragraph(f"{', '.join(labels)}: ", line, console.width))
    for note in notes(verification):
        console.print(paragraph("Note: ", note, console.width))
    for words in (*_unproved(verification), *basis_words(verification)):
        console.print(paragraph("", words, console.width))
    console.print(ending_words(verification))


def _table(verification: Verification, console: Console) -> None:
    rows = table_rows(verification)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for number, row in enumerate(rows):
        line = Text(" ", "dim" if number == 0 else "")
        for cell, width in zip(row, widths, strict=False):
            line.append(cell.ljust(width + 2))
        style = STYLES[verification.proofs[number - 1].verdict] if number else ""
        if line.cell_len + len(row[-1]) <= console.width or not number:
            console.print(line.append(row[-1], style))
        else:
            console.print(line)
            console.print(paragraph("    ", row[-1], console.width))


def _more(proof: Proof) -> list[str]:
    """What the table has no room for."""
    said = [sentence(f"Also {observation_words(reason)}") for reason in proof.reasons[1:MOST_REASONS]]
    if len(proof.reasons) > MOST_REASONS:
        said.append(f"{len(proof.reasons) - MOST_REASONS} more reasons are in --format json.")
    return [*said, *remarks(proof)]


def _unproved(verification: Verification) -> Iterator[str]:
    for words, names in unproved(verification):
        rest = len(names) - MOST_NAMED
        yield f"{words}: {', '.join(names[:MOST_NAMED])}{f' and {rest} more' if rest > 0 else ''}."
    yield from (f"No rewrite for {sentence(declined_words(one))}" for one in verification.declined[:MOST_NAMED])
    if (rest := len(verification.declined) - MOST_NAMED) > 0:
        yield f"Nor for {counted(rest, 'finding')} more: breakscan fix names them."
