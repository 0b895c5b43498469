"""SARIF 2.1.0 of a run, for code scanning."""

from __future__ import annotations

from typing import Any, TextIO

from breakscan.findings import Site
from breakscan.reports.check.sarif import SarifRun, checkout_root, rule_descriptor
from breakscan.reports.explain.diagnostics import Point, points
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.site_words import short_path
from breakscan.runtime.explain.explanation import Caller, Explanation

_KINDS = {
    "graph-break": "torch.compile broke the graph",
    "not-compiled": "a function that torch.compile was given is not compiled",
    "recompile": "a function was compiled again",
    "rank-difference": "the ranks of a distributed run did not do alike",
    "cudagraph-skip": "a graph does not run as a CUDA graph",
    "specialisation": "a dynamic size became a constant",
}


def write_explain_sarif(explanation: Explanation, stream: TextIO) -> None:
    """Writes one result a point; notices are notifications of the run."""
    explanation = printable(explanation)
    run = SarifRun("explain", checkout_root())
    for point in points(explanation):
        run.add_result(
            rule_descriptor(point.rule) if point.rule else _descriptor(point),
            point.severity,
            point.message,
            point.site,
            function=point.function,
            code=point.code,
            count=point.count,
            related=[(related.site, related.words) for related in point.related],
            flow=[_step(caller) for caller in point.stack],
        )
    for notice in explanation.notices:
        run.add_notification("note", notice)
    run.write(stream)


def _step(caller: Caller) -> tuple[Site, str]:
    words = f"in {caller.function}" if caller.function else f"{short_path(caller.path)}:{caller.line}"
    return Site(caller.path, caller.line, 1, caller.line, 1), words


def _descriptor(point: Point) -> dict[str, Any]:
    """For what no rule explains: PyTorch's name of the break where it has an id, else the kind of point."""
    return {
        "id": point.id,
        "name": point.name if point.id.startswith("GB") else point.id,
        "shortDescription": {"text": _KINDS.get(point.id, point.name)},
        "properties": {"tags": ["torch.compile"]},
    }
