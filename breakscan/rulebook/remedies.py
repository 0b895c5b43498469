"""Remedies: those that a rule knows for the code at hand, and those of ``remedies.toml``, by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from breakscan.model.findings import Finding, Mode, Site, Verdict
from breakscan.model.remedy import NewLine, Remedy, RemedyKind, Setting
from breakscan.rulebook.document import Rule
from breakscan.rulebook.value_uses import leaves_loop, line_of_library, line_of_test, needed_at
from breakscan.source.module import SourceModule
from breakscan.source.toml_text import parse_toml

_CAPTURES = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
"""Code in which Python needs the value breaks all the same, or fails."""
INTEGERS_OPEN = "allow_unspec_int_on_nn_module"
LEAVE_LOOP = "leave-loop"
NESTED = "nested_graph_breaks"
ASKS_FOR_NAMES = "BRK504"
"""With NESTED, torch 2.13 calls ``globals()`` in a caller of the function that asks, which may be another file's."""
DECIDE_OUTSIDE, COMPUTE_OUTSIDE = "decide-outside", "compute-outside"


@cache
def remedy_table() -> dict[str, Any]:
    """The kind, the text, the settings and the rewrites of each remedy, by name."""
    return parse_toml(Path(__file__).with_name("remedies.toml").read_text(encoding="utf-8"))


def remedy(name: str, write: NewLine | None = None, **facts: object) -> Remedy:
    """The remedy of that name, with the facts of the case."""
    entry = remedy_table()[name]
    settings = [Setting(*(part.format(**facts) for part in setting)) for setting in entry.get("settings", ())]
    text = entry["text"].format(setting=next(iter(settings), ""), **facts)
    # A number that is not known is said to be N.
    known = tuple(setting for setting in settings if setting.value != "N")
    return Remedy(RemedyKind(entry["kind"]), name, text, known, write, tuple(entry.get("rewrites", ())))


def remedies_at(rule: Rule, module: SourceModule, site: Site, *, returns: bool) -> tuple[str, ...]:
    """The names of remedies that only the code at a site decides on, for :func:`rule_remedies`, some with the line that
    decides; ``returns`` as of :func:`needed_at`."""
    if leaves_loop(module, site):
        return (LEAVE_LOOP,)
    names = []
    for name in (name for name in rule.flags if name in remedy_table()):
        is_sized = "shape" in name
        need = needed_at(module, site, returns=returns, sized=is_sized) if name in _CAPTURES else None
        if need is None:
            names.append(name)
        elif line := line_of_test(module, need):
            names.append(f"{DECIDE_OUTSIDE} {line}")
        elif (line := line_of_library(need)) and not is_sized:
            names.append(f"{COMPUTE_OUTSIDE} {line}")
    return tuple(names)


def rule_remedies(rule: Rule, mode: Mode, at_site: tuple[str, ...] = ()) -> tuple[Remedy, ...]:
    """The remedies of a rule, the best first.  ``at_site`` is what :func:`remedies_at` gives."""
    kind = RemedyKind.EDIT if rule.rewrites else RemedyKind.CONSTRUCT
    instead = Remedy(kind, rule.name, rule.instead_in(mode), rewrites=rule.rewrites)
    kept = at_site if mode is Mode.DEFAULT else () if mode.exports else (LEAVE_LOOP,)
    entries = [entry.partition(" ") for entry in at_site if entry in kept]
    others = [remedy(name, line=line) for name, _, line in entries if name in remedy_table()]
    if others and others[0].name in (LEAVE_LOOP, DECIDE_OUTSIDE, COMPUTE_OUTSIDE):
        # Python needs the value: what keeps it a tensor moves the break to that line.
        return (replace(others[0], rewrites=others[0].rewrites or rule.rewrites), *others[1:])
    return (instead, *others)


def finding_remedies(finding: Finding, rule: Rule | None) -> tuple[Remedy, ...]:
    """The remedies for a finding of ``check``, the best first."""
    raises = finding.mode is Mode.DEFAULT and finding.verdict is Verdict.RAISES
    return rule_remedies(rule, Mode.FULLGRAPH if raises else finding.mode, finding.remedies) if rule else ()
