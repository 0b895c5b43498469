"""The report of ``verify`` as a comment on a pull request, or the summary of a job."""

from __future__ import annotations

from typing import TextIO

from breakscan.reports.shared.markdown_text import code, paragraph, prose, row, table_head
from breakscan.reports.shared.observation_words import observation_words
from breakscan.reports.shared.printable import visible
from breakscan.reports.shared.wording import sentence
from breakscan.reports.verify.words import (
    TITLES,
    basis_words,
    cells,
    ending_words,
    facts,
    headline,
    remarks,
    verdict_words,
)
from breakscan.verify.proof import Proof, ProofVerdict, Verification

MARK = "<!-- breakscan verify -->"
"""The first line: by it, a job finds the comment that it wrote before."""
LIMIT = 65_000
"""Characters: GitHub takes 65,536 in a comment."""
_FENCE = "````"


def write_verify_markdown(verification: Verification, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown of at most :data:`LIMIT` characters: the verdicts first, then what each change
    is and what was measured, as far as there is room."""
    parts = [f"{MARK}\n### breakscan verify: {prose(headline(verification))}\n"]
    if verification.proofs:
        parts.append(_table(verification))
    words = [
        *(sentence(observation_words(note)) for note in verification.notes),
        *(basis_words(verification) if verification.proofs else ()),
    ]
    parts += [paragraph(visible(line)) + "\n" for line in words]
    parts.append(paragraph(ending_words(verification)) + "\n")
    room = LIMIT - sum(len(part) + 1 for part in parts)
    for proof in verification.proofs:
        details = _details(proof)
        room -= len(details) + 1
        if room < 0:
            parts.append("The rest does not fit into a comment: `breakscan verify --format html` shows everything.\n")
            break
        parts.append(details)
    stream.write("\n".join(parts))


def _table(verification: Verification) -> str:
    lines = [table_head(*TITLES)]
    for proof in verification.proofs:
        verdict = prose(verdict_words(proof))
        bold = f"**{verdict}**" if proof.verdict is ProofVerdict.ACCEPTED else verdict
        lines.append(row(code(visible(proof.label)), *cells(proof), bold))
    return "".join(lines)


def _details(proof: Proof) -> str:
    said = [f"<details><summary>{prose(visible(proof.label))}</summary>\n"]
    said += [f"- {prose(visible(observation_words(reason)))}" for reason in proof.reasons]
    said += [f"- {prose(visible(observation))}" for observation in remarks(proof)]
    said += [f"- {prose(name)}: {prose(text)}" for name, text in facts(proof)]
    if proof.diff and _FENCE not in proof.diff:
        said.append(f"\n{_FENCE}diff\n{proof.diff.rstrip()}\n{_FENCE}")
    return "\n".join([*said, "\n</details>\n"])
