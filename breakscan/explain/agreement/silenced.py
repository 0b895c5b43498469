"""Recorded breaks whose rule the configuration or a comment turns off."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from breakscan.explain.agreement.result import Missed
from breakscan.explain.agreement.sources import Sources
from breakscan.explain.exported import ExportFailure
from breakscan.model.findings import Confidence, Finding, Kind, Severity
from breakscan.rulebook.config import FileSettings, Settings, enabled_rules
from breakscan.rulebook.document import Rule
from breakscan.rulebook.library import load_library
from breakscan.source.selectors import PerFileIgnores
from breakscan.source.suppressions import Suppressions


def silencer(settings: FileSettings, sources: Sources) -> Callable[[Missed | ExportFailure], bool]:
    """Returns a function that says whether the rule of a recorded break is turned off at its site."""

    def is_silenced(site: Missed | ExportFailure) -> bool:
        module = sources.module(site.site.path)
        if site.rule is None or module is None:
            return False
        path = Path(os.path.abspath(site.site.path))
        if _is_off(site.rule, path, settings.of(path)):
            return True
        return Suppressions.read(module).covers(_as_finding(site))

    return is_silenced


def _is_off(rule: Rule, path: Path, settings: Settings) -> bool:
    enabled = enabled_rules(settings, load_library(settings.rule_folders))
    return rule.id not in enabled or PerFileIgnores(settings).covers(path, rule.id, rule.name)


def _as_finding(site: Missed | ExportFailure) -> Finding:
    assert site.rule is not None
    return Finding(
        rule=site.rule.id,
        name=site.rule.name,
        kind=Kind.GRAPH_BREAK,
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        message=site.rule.message,
        site=site.site,
        function=site.function,
        region=None,
        gb=(),
        torch="",
    )
