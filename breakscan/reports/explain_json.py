"""The JSON of ``explain``, as ``breakscan/schemas/explain.schema.json`` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TextIO

from breakscan.rulebook.document import Rule
from breakscan.runtime.compiled import Graph
from breakscan.runtime.explanation import BreakSite, Caller, Explanation, FrameFate, Recompile

SCHEMA = 1


def write_explain_json(explanation: Explanation, stream: TextIO) -> None:
    """Writes the explanation as one JSON object, ASCII only, and a line end."""
    json.dump(explain_object(explanation), stream, indent=2)
    stream.write("\n")


def explain_object(explanation: Explanation) -> dict[str, Any]:
    """The explanation as plain dictionaries and lists."""
    return {
        "schema": SCHEMA,
        "environment": {
            "torch": explanation.torch or None,
            "python": explanation.python or None,
            "device": explanation.device,
        },
        "script": {"argv": list(explanation.argv), "exit_status": explanation.status},
        "summary": {
            "break_sites": len(explanation.breaks),
            "break_events": explanation.break_events,
            "eager_frames": explanation.eager_frames,
            "graphs": len(explanation.graphs),
            "ops": explanation.ops,
            "recompiles": len(explanation.recompiles),
            "compile_seconds": round(explanation.compile_seconds, 3),
        },
        "breaks": [_break(site) for site in explanation.breaks],
        "recompiles": [_recompile(recompile) for recompile in explanation.recompiles],
        "frames": [_frame(frame) for frame in explanation.frames],
        "graphs": [_graph(graph) for graph in explanation.graphs],
        "notices": list(explanation.notices),
    }


def _break(site: BreakSite) -> dict[str, Any]:
    return {
        "rule": _id(site.rule),
        "gb_type": site.gb_type,
        "gb_id": site.gb_id,
        "reason": site.reason,
        "hints": list(site.hints),
        "advice": site.advice,
        "site": asdict(site.site),
        "function": site.function,
        "origin": site.origin.value,
        "count": site.count,
        "verdict": site.verdict.value,
        "compile_ids": list(site.compile_ids),
        "stack": [_caller(caller) for caller in site.stack],
    }


def _recompile(recompile: Recompile) -> dict[str, Any]:
    return {
        "rule": _id(recompile.rule),
        "function": recompile.function,
        "site": asdict(recompile.site),
        "trigger": _caller(recompile.trigger) if recompile.trigger else None,
        "guard": recompile.guard,
        "old": recompile.old,
        "new": recompile.new,
        "advice": recompile.advice,
        "compile_id": recompile.compile_id,
        "cause": recompile.cause,
    }


def _frame(frame: FrameFate) -> dict[str, Any]:
    return {
        "function": frame.function,
        "site": asdict(frame.site),
        "origin": frame.origin.value,
        "status": frame.status.value,
        "rest_only": frame.rest_only,
        "reason": frame.reason,
        "rule": _id(frame.rule),
        "gb_type": frame.gb_type,
        "gb_id": frame.gb_id,
        "advice": frame.advice,
        "break_site": asdict(frame.break_site) if frame.break_site else None,
        "over_limit": frame.over_limit,
        "count": frame.count,
    }


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        "compile_id": graph.compile_id,
        "function": graph.function,
        "site": asdict(graph.site) if graph.site else None,
        "ops": graph.ops,
        "devices": list(graph.devices),
    }


def _caller(caller: Caller) -> dict[str, Any]:
    return {"path": caller.path, "line": caller.line, "function": caller.function}


def _id(rule: Rule | None) -> str | None:
    return rule.id if rule else None
