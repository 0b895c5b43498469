"""The report of ``verify`` that people read: a line a change, then why, then on what it rests."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.text import Text

from breakscan.reports.shared.code_frame import paragraph
from breakscan.reports.shared.console import report_console
from breakscan.reports.shared.observation_words import observation_words
from breakscan.reports.shared.printable import visible
from breakscan.reports.shared.wording import counted, sentence
from breakscan.reports.verify.words import (
    TITLES,
    basis_words,
    cells,
    ending_words,
    headline,
    remarks,
    verdict_words,
)
from breakscan.verify.proof import Proof, ProofVerdict, Verification

STYLES = {ProofVerdict.ACCEPTED: "bold green", ProofVerdict.NO_FASTER: "yellow", ProofVerdict.REJECTED: "bold red"}
MOST_REASONS = 4
MOST_NAMED = 5


def write_verify_terminal(verification: Verification, stream: TextIO) -> None:
    """Writes the report."""
    console = report_console(stream)
    console.print(Text(sentence(headline(verification)), "bold"))
    if verification.proofs:
        _table(verification, console)
    said: dict[str, list[str]] = {}
    for proof in verification.proofs:
        for line in _more(proof):
            said.setdefault(line, []).append(visible(proof.label))
    for line, labels in said.items():
        console.print(paragraph(f"{', '.join(labels)}: ", line, console.width))
    for note in verification.notes:
        console.print(paragraph("Note: ", sentence(visible(observation_words(note))), console.width))
    for words in _left(verification):
        console.print(paragraph("", words, console.width))
    if verification.proofs:
        for words in basis_words(verification):
            console.print(paragraph("", words, console.width))
    console.print(ending_words(verification))


def _table(verification: Verification, console: Console) -> None:
    rows = [TITLES, *(_cells(proof) for proof in verification.proofs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES) - 1)]
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


def _cells(proof: Proof) -> tuple[str, ...]:
    return visible(proof.label), *cells(proof), verdict_words(proof)


def _more(proof: Proof) -> list[str]:
    """What the table has no room for."""
    said = [sentence(f"Also {visible(observation_words(reason))}") for reason in proof.reasons[1:MOST_REASONS]]
    if len(proof.reasons) > MOST_REASONS:
        said.append(f"{len(proof.reasons) - MOST_REASONS} more reasons are in --format json.")
    return [*said, *map(visible, remarks(proof))]


def _left(verification: Verification) -> list[str]:
    said = []
    for names, words in (
        (verification.dependent, "Proved together alone, as they need others first"),
        (verification.unreached, "Not proved, as the captured calls do not run there"),
    ):
        if names:
            rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            said.append(f"{words}: {', '.join(map(visible, names[:MOST_NAMED]))}{rest}.")
    said += [f"No rewrite for {sentence(visible(words))}" for words in verification.declined[:MOST_NAMED]]
    if len(verification.declined) > MOST_NAMED:
        more = len(verification.declined) - MOST_NAMED
        said.append(f"Nor for {counted(more, 'finding')} more: breakscan fix names them.")
    return said
