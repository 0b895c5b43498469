"""What ``check`` says of the code that a run compiled, as JSON: the key ``agreement`` of the report of ``explain``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from breakscan.explain.agreement.result import Agreement, ExportAgreement, Judged
from breakscan.report.findings import conditions_in_words


def agreement_object(agreement: Agreement) -> dict[str, Any]:
    """The agreement as plain dictionaries and lists."""
    return {
        "torch": agreement.torch,
        "mode": agreement.mode.value,
        "files": list(agreement.files),
        "findings": [_judged(one) for one in agreement.judged],
        "missed": [
            {
                "rule": site.rule.id if site.rule else None,
                "gb_type": site.gb_type,
                "gb_id": site.gb_id,
                "site": asdict(site.site),
                "silenced": silenced,
            }
            for silenced, group in ((False, agreement.missed), (True, agreement.silenced))
            for site in group
        ],
        "errors": [asdict(error) for error in agreement.errors],
        "exports": [_of_exports(one) for one in agreement.exports],
    }


def _of_exports(agreement: ExportAgreement) -> dict[str, Any]:
    return {
        "mode": agreement.mode.value,
        "files": list(agreement.files),
        "findings": [_judged(one) for one in agreement.judged],
        "missed": [
            {
                "rule": failure.rule.id if failure.rule else None,
                "problem": failure.problem.value,
                "site": asdict(failure.site),
                "silenced": silenced,
            }
            for silenced, group in ((False, agreement.missed), (True, agreement.silenced))
            for failure in group
        ],
        "errors": [asdict(error) for error in agreement.errors],
    }


def _judged(one: Judged) -> dict[str, Any]:
    finding = one.finding
    return {
        "rule": finding.rule,
        "name": finding.name,
        "kind": finding.kind.value,
        "confidence": finding.confidence.value,
        "condition": conditions_in_words(finding.conditions),
        "message": finding.message,
        "site": asdict(finding.site),
        "function": finding.function,
        "outcome": one.outcome.value,
        "by": asdict(one.by) if one.by else None,
        "traced": one.is_traced,
    }
