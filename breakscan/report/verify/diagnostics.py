"""Proofs as diagnostics, at the lines that they are about."""

from __future__ import annotations

from breakscan.model.findings import Severity
from breakscan.model.words import sentence
from breakscan.prove.verify.proof import Proof, ProofVerdict, Verification
from breakscan.report.diagnostics.diagnostic import Diagnostic, DiagnosticReport, Remark
from breakscan.report.shared.observation_words import observation_words
from breakscan.report.shared.printable import printable
from breakscan.report.verify.words import ending_words, headline, label_words, remarks, verdict_words

_KIND_SUMMARIES = {
    ProofVerdict.ACCEPTED: "a change is equal and faster",
    ProofVerdict.NO_FASTER: "a change is equal and no faster",
    ProofVerdict.REJECTED: "a change is rejected",
}


def verify_diagnostics(verification: Verification) -> DiagnosticReport:
    """One diagnostic for each proof: a warning if the change is rejected, else a note."""
    originals: dict[str, str] = {}
    verification = printable(verification, originals)
    return DiagnosticReport(
        "verify",
        [_diagnostic(proof) for proof in verification.proofs],
        remarks=[Remark(Severity.INFO, observation_words(note)) for note in verification.notes],
        head=[sentence(headline(verification))],
        end=[ending_words(verification)],
        originals=originals,
    )


def _diagnostic(proof: Proof) -> Diagnostic:
    return Diagnostic(
        id=f"verify-{proof.verdict.value}",
        name=f"verify {label_words(proof.label)}",
        kind_summary=_KIND_SUMMARIES[proof.verdict],
        severity=Severity.WARNING if proof.verdict is ProofVerdict.REJECTED else Severity.INFO,
        site=proof.site,
        message=verdict_words(proof),
        details=(*map(observation_words, proof.reasons[1:]), *remarks(proof)),
    )
