"""The report of ``verify`` as a comment on a pull request, or the summary of a job."""

from __future__ import annotations

from typing import TextIO

from breakscan.prove.verify.proof import Proof, ProofVerdict, Verification
from breakscan.report.shared.markdown_text import code, paragraph, prose, row, table_head
from breakscan.report.shared.observation_words import observation_words
from breakscan.report.shared.printable import printable
from breakscan.report.verify.words import (
    basis_words,
    ending_words,
    facts,
    headline,
    label_words,
    notes,
    remarks,
    table_rows,
)

MARK = "<!-- breakscan verify -->"
"""The first line: by it, a job finds the comment that it wrote before."""
LIMIT = 65_000
"""Characters: GitHub takes 65,536 in a comment."""
_FENCE = "````"


def write_verify_markdown(verification: Verification, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown of at most :data:`LIMIT` characters: the verdicts first, then what each change
    is and what was measured, as far as there is room."""
    told = printable(verification)
    parts = [f"{MARK}\n### breakscan verify: {prose(headline(told))}\n"]
    if told.proofs:
        titles, *changes = table_rows(told)
        parts.append("".join([table_head(*titles), *map(_row, told.proofs, changes)]))
    parts += [paragraph(line) + "\n" for line in (*notes(told), *basis_words(told), ending_words(told))]
    room = LIMIT - sum(len(part) + 1 for part in parts)
    for proof, original in zip(told.proofs, verification.proofs, strict=True):
        details = _details(proof, original.diff)
        room -= len(details) + 1
        if room < 0:
            parts.append("The rest does not fit into a comment: `breakscan verify --format html` shows everything.\n")
            break
        parts.append(details)
    stream.write("\n".join(parts))


def _row(proof: Proof, change: tuple[str, ...]) -> str:
    label, *measured, verdict = change
    bold = "**" if proof.verdict is ProofVerdict.ACCEPTED else ""
    return row(code(label), *measured, f"{bold}{prose(verdict)}{bold}")


def _details(proof: Proof, diff: str) -> str:
    said = [f"<details><summary>{prose(label_words(proof.label))}</summary>\n"]
    said += [f"- {prose(line)}" for line in (*map(observation_words, proof.reasons), *remarks(proof))]
    said += [f"- {prose(name)}: {prose(text)}" for name, text in facts(proof)]
    if diff and _FENCE not in diff:
        said.append(f"\n{_FENCE}diff\n{diff.rstrip()}\n{_FENCE}")
    return "\n".join([*said, "\n</details>\n"])
