"""Workflow commands that make GitHub Actions show proofs as annotations on the lines that they are about."""

from __future__ import annotations

import os
from typing import TextIO

from breakscan.reports.shared.github_commands import annotation, checkout_path, inert
from breakscan.reports.shared.printable import visible
from breakscan.reports.shared.wording import sentence
from breakscan.reports.verify.words import ending_words, headline, verdict_words
from breakscan.verify.proof import Proof, ProofVerdict, Verification

LEVELS = {ProofVerdict.ACCEPTED: "notice", ProofVerdict.NO_FASTER: "notice", ProofVerdict.REJECTED: "warning"}


def write_verify_github(verification: Verification, stream: TextIO) -> None:
    """Writes the headline as a plain line, then one annotation a proof, then what became of the files."""
    stream.write(inert(sentence(headline(verification))) + "\n")
    for proof in verification.proofs:
        stream.write(_annotation(proof, os.environ.get("GITHUB_WORKSPACE")))
    for note in verification.notes:
        stream.write(inert(f"Note: {sentence(visible(note))}") + "\n")
    stream.write(inert(ending_words(verification)) + "\n")


def _annotation(proof: Proof, workspace: str | None) -> str:
    site = proof.site
    label = visible(proof.label)
    where = "" if site is None else f"{visible(site.path)}:{site.line}: "
    reasons = "".join(f"; {visible(reason)}" for reason in proof.reasons[1:])
    path = None if site is None else checkout_path(site.path, workspace)
    return annotation(LEVELS[proof.verdict], f"verify {label}", path, site, f"{where}{verdict_words(proof)}{reasons}")
