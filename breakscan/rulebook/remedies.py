"""The remedies that a rule knows for the code at hand: edits of ``fix``, what to write, and settings of Dynamo."""

from __future__ import annotations

from breakscan.model.findings import Finding, Mode, Site, Verdict
from breakscan.model.remedy import DYNAMO, Remedy, RemedyKind, Setting
from breakscan.rulebook.document import Rule
from breakscan.source.module import SourceModule
from breakscan.source.value_uses import is_needed_in_python, leaves_loop

_CAPTURES = {
    "capture_scalar_outputs": "the number then stays in the graph, as one that is not known",
    "capture_dynamic_output_shape_ops": "the result then stays in the graph, with a size that is not known",
}
"""Settings with what they bring about.  Code in which Python needs the value breaks all the same, or fails."""
INTEGERS_OPEN = "allow_unspec_int_on_nn_module"
_SETTINGS = _CAPTURES | {INTEGERS_OPEN: "ints of modules are then left open, as those of arguments are"}
LEAVE_LOOP = Remedy(
    RemedyKind.REGION,
    "leave-loop",
    "compile what the loop calls, and not the loop: a test that leaves a loop has no other side to compute. Where "
    "further rounds change nothing, test it only if not torch.compiler.is_compiling()",
)


def remedies_at(rule: Rule, module: SourceModule, site: Site, *, returns: bool) -> tuple[str, ...]:
    """The names of remedies that only the code at a site decides on, for :func:`rule_remedies`; ``returns`` as of
    :func:`is_needed_in_python`."""
    if leaves_loop(module, site):
        return (LEAVE_LOOP.name,)

    def helps(name: str) -> bool:
        return name not in _CAPTURES or not is_needed_in_python(module, site, returns=returns, sized="shape" in name)

    return tuple(name for name in rule.flags if name in _SETTINGS and helps(name))


def rule_remedies(rule: Rule, mode: Mode, at_site: tuple[str, ...] = ()) -> tuple[Remedy, ...]:
    """The remedies of a rule, the best first.  ``at_site`` is what :func:`remedies_at` gives."""
    if LEAVE_LOOP.name in at_site and not mode.exports:
        return (LEAVE_LOOP,)
    kind = RemedyKind.EDIT if rule.rewrites else RemedyKind.CONSTRUCT
    instead = Remedy(kind, rule.name, rule.instead_in(mode), rewrites=rule.rewrites)
    return (instead, *(with_setting(name) for name in at_site if mode is Mode.DEFAULT and name in _SETTINGS))


def with_setting(name: str) -> Remedy:
    """The remedy of a setting that is switched on."""
    setting = Setting(DYNAMO, name, "True")
    return Remedy(RemedyKind.SETTING, name, f"set {setting}: {_SETTINGS[name]}", (setting,))


def finding_remedies(finding: Finding, rule: Rule | None) -> tuple[Remedy, ...]:
    """The remedies for a finding of ``check``, the best first."""
    raises = finding.mode is Mode.DEFAULT and finding.verdict is Verdict.RAISES
    return rule_remedies(rule, Mode.FULLGRAPH if raises else finding.mode, finding.remedies) if rule else ()
