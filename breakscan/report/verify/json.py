"""The JSON of ``verify``, as ``breakscan/schemas/verify.schema.json`` describes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TextIO

from breakscan import __version__
from breakscan.prove.verify.proof import Metrics, Proof, StressDifference, StressedOutcome, UnseenOutcome, Verification
from breakscan.report.shared.observation_words import observation_words
from breakscan.report.shared.printable import printable
from breakscan.report.verify.unseen_words import stress_words, stressed_outcome_words, unseen_words
from breakscan.report.verify.words import declined_words, label_words, not_applied_words, verdict_words

SCHEMA = 1


def write_verify_json(verification: Verification, stream: TextIO) -> None:
    """Writes all proofs as one JSON object, ASCII only, and a line end."""
    told = {
        "schema": SCHEMA,
        "tool": {"name": "breakscan", "version": __version__},
        "program": list(verification.argv),
        "environment": dict(verification.environment),
        "calls": [
            {"callable": name, "captured": count, "backward": name in verification.backward}
            for name, count in verification.callables.items()
        ],
        "tolerances": dict(verification.tolerances),
        "same": asdict(verification.same) if verification.same else None,
        "eager_memory_bytes": verification.eager_memory_bytes,
        "interrupted": verification.interrupted,
        "devices": list(verification.devices),
        "proofs": [_proof(proof) for proof in verification.proofs],
        "dependent": list(map(label_words, verification.dependent)),
        "unreached": list(map(label_words, verification.unreached)),
        "declined": list(map(declined_words, verification.declined)),
        "notes": [observation_words(note) for note in verification.notes],
        "applied": list(verification.applied),
        "not_applied": not_applied_words(verification.not_applied),
        "held_back": list(map(label_words, verification.held_back)),
    }
    json.dump(told, stream, indent=2)
    stream.write("\n")


def _proof(proof: Proof) -> dict[str, Any]:
    def both(of: Callable[[Metrics], Any]) -> dict[str, Any]:
        return {"before": of(proof.before), "after": None if proof.after is None else of(proof.after)}

    reasons = [observation_words(reason) for reason in proof.reasons]
    return {
        "label": label_words(proof.label),
        "rewrite": proof.rewrite,
        "rule": proof.rule,
        "site": asdict(proof.site) if proof.site else None,
        "members": list(map(label_words, proof.members)),
        "verdict": proof.verdict.value,
        "accepted_in": label_words(proof.accepted_in) if proof.accepted_in else None,
        "says": verdict_words(printable(proof)),
        "reason": next(iter(reasons), None),
        "reasons": reasons,
        "difference": proof.difference,
        "rests_on": asdict(proof.rests_on) if proof.rests_on else None,
        "breaks_there": proof.breaks_there,
        "revealed": list(proof.revealed),
        "unrun": list(proof.unrun),
        "unseen": [_unseen(unseen, proof) for unseen in proof.unseen],
        "stressed_outcomes": [_stressed_outcome(found, proof) for found in proof.stressed_outcomes],
        "stress": [_stress(found) for found in proof.stress],
        "held_back": proof.is_held_back,
        "outputs_equal": proof.outputs_equal,
        "breaks": both(lambda metrics: metrics.breaks),
        "recompiles": both(lambda metrics: metrics.recompiles),
        "graphs": both(lambda metrics: metrics.graphs),
        "eager_frames": both(lambda metrics: metrics.eager_frames),
        "kernels": both(lambda metrics: dict(metrics.kernels)),
        "launches": both(lambda metrics: dict(metrics.launches) if metrics.launches is not None else None),
        "compile_seconds": both(lambda metrics: metrics.compile_seconds),
        "first_call_seconds": both(lambda metrics: metrics.first_call_seconds),
        "step_seconds": both(lambda metrics: metrics.step_seconds),
        "memory_bytes": both(lambda metrics: metrics.memory_bytes),
        "ratio": asdict(proof.ratio) if proof.ratio else None,
        "diff": proof.diff,
    }


def _unseen(unseen: UnseenOutcome, proof: Proof) -> dict[str, Any]:
    return {
        "path": unseen.path,
        "line": unseen.line,
        "test": unseen.test,
        "outcomes": list(unseen.outcomes),
        "says": unseen_words(unseen, proof),
    }


def _stressed_outcome(found: StressedOutcome, proof: Proof) -> dict[str, Any]:
    return {
        "path": found.path,
        "line": found.line,
        "test": found.test,
        "outcome": found.outcome,
        "inputs": found.stress.value,
        "says": stressed_outcome_words(found, proof),
    }


def _stress(found: StressDifference) -> dict[str, Any]:
    difference = found.difference
    return {
        "inputs": found.stress.value,
        "callable": found.callable,
        "part": difference.part.value if difference else None,
        "stated": found.is_stated,
        "says": stress_words(found),
    }
