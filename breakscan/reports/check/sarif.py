"""SARIF 2.1.0, for code scanning: what both commands write alike, and the report of ``check``."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from breakscan import __version__
from breakscan.findings import CheckResult, Finding, Severity, Site, SourceError
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.source_lines import source_lines
from breakscan.reports.shared.wording import one_line, region_words, sentence, verdict_sentence
from breakscan.rulebook.document import Rule
from breakscan.rulebook.library import Library

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ROOT = "%SRCROOT%"


class SarifRun:
    """One run of breakscan, filled piece by piece.  ``category`` keeps ``check`` and ``explain`` of one commit apart;
    ``root`` is the folder that paths are relative to where they lie below it; ``texts`` holds sources that are not on
    disk.  All strings must be printable."""

    def __init__(self, category: str, root: str, texts: Mapping[str, str] | None = None) -> None:
        self._category = category
        self._root = root.rstrip("/\\") or root
        self._rules: dict[str, Mapping[str, Any]] = {}
        self._results: list[dict[str, Any]] = []
        self._notifications: list[dict[str, Any]] = []
        self._alike: Counter[tuple[str, ...]] = Counter()
        self._lines = {path: text.split("\n") for path, text in (texts or {}).items()}

    def add_result(
        self,
        rule: Mapping[str, Any],
        severity: Severity,
        message: str,
        site: Site,
        *,
        function: str | None = None,
        code: str | None = None,
        count: int = 1,
        related: Iterable[tuple[Site, str]] = (),
        flow: Sequence[tuple[Site, str]] = (),
    ) -> None:
        """A result at a site.  ``code`` is the text of its line, read from the file where it is not given: by it, and
        not by its number, the result is known again in the next run.  ``flow`` is the way there, outermost first."""
        id_ = str(rule["id"])
        self._rules.setdefault(id_, rule)
        location = self._location(site)
        if function:
            location["logicalLocations"] = [{"fullyQualifiedName": function, "kind": "function"}]
        result: dict[str, Any] = {
            "ruleId": id_,
            "ruleIndex": list(self._rules).index(id_),
            "level": LEVELS[severity],
            "message": {"text": message},
            "locations": [location],
            "partialFingerprints": {
                "breakscanSite/v1": self._fingerprint(id_, site, function, code or self._line(site))
            },
        }
        if count > 1:
            result["occurrenceCount"] = count
        if others := [{**self._location(other), "message": {"text": words}} for other, words in related]:
            result["relatedLocations"] = [{"id": number, **other} for number, other in enumerate(others, 1)]
        if len(flow) > 1:
            steps = [{"location": {**self._location(at), "message": {"text": words}}} for at, words in flow]
            result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
        self._results.append(result)

    def add_notification(self, level: str, message: str, site: Site | None = None) -> None:
        """Something about the run itself; ``level`` is ``error``, ``warning`` or ``note``."""
        notification: dict[str, Any] = {"level": level, "message": {"text": message}}
        if site:
            notification["locations"] = [self._location(site)]
        self._notifications.append(notification)

    def write(self, stream: TextIO) -> None:
        """Writes the log as one JSON object, ASCII only, and a line end."""
        failed = any(notification["level"] == "error" for notification in self._notifications)
        run = {
            "tool": {"driver": {"name": "breakscan", "version": __version__, "rules": list(self._rules.values())}},
            "automationDetails": {"id": f"breakscan/{self._category}/"},
            "invocations": [{"executionSuccessful": not failed, "toolExecutionNotifications": self._notifications}],
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {_ROOT: {"uri": _file_uri(self._root).rstrip("/") + "/"}},
            "results": self._results,
        }
        json.dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, stream, indent=2)
        stream.write("\n")

    def _location(self, site: Site) -> dict[str, Any]:
        region = {"startLine": site.line}
        if (site.end_line, site.end_column) != (site.line, site.column):
            region |= {"startColumn": site.column, "endLine": site.end_line, "endColumn": site.end_column}
        return {"physicalLocation": {"artifactLocation": self._artifact(site.path), "region": region}}

    def _artifact(self, path: str) -> dict[str, str]:
        path = os.path.abspath(path)
        if path.startswith(self._root + os.sep):
            below = path[len(self._root) + 1 :].replace(os.sep, "/")
            return {"uri": quote(below), "uriBaseId": _ROOT}
        return {"uri": _file_uri(path)}

    def _line(self, site: Site) -> str:
        if site.path not in self._lines:
            self._lines[site.path] = source_lines(site.path)
        return next(iter(self._lines[site.path][site.line - 1 : site.line]), "")

    def _fingerprint(self, rule: str, site: Site, function: str | None, code: str) -> str:
        """The same for the same line of code of the same function, wherever it stands in the file."""
        key = (rule, self._artifact(site.path)["uri"], function or "", code.strip())
        self._alike[key] += 1
        return hashlib.sha256("\0".join((*key, str(self._alike[key]))).encode()).hexdigest()[:32]


def rule_descriptor(rule: Rule) -> dict[str, Any]:
    """What a viewer shows of a rule: its document is its help."""
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": sentence(rule.why)},
        "help": {"text": f"Why: {sentence(rule.why)}\nInstead: {sentence(rule.instead)}", "markdown": rule.body},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": ["torch.compile", rule.kind.value]},
    }


def checkout_root() -> str:
    """The folder that code scanning resolves paths against: the checkout in GitHub Actions, else the root of the git
    repository, else the working directory."""
    if workspace := os.environ.get("GITHUB_WORKSPACE"):
        return os.path.abspath(workspace)
    here = Path.cwd()
    return str(next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here))


def write_sarif(result: CheckResult, stream: TextIO, library: Library, texts: Mapping[str, str]) -> None:
    """Writes the result of ``check``.  ``texts`` holds the sources of paths that are not on disk."""
    result = printable(result)
    run = SarifRun("check", checkout_root(), texts)
    for finding in result.findings:
        rule = library.get(finding.rule)
        assert rule is not None, finding.rule
        run.add_result(
            rule_descriptor(printable(rule)),
            finding.severity,
            _message(finding, result.torch),
            finding.site,
            function=finding.function,
            related=_related(finding),
        )
    for level, problems in (("error", result.errors), ("warning", result.warnings)):
        for problem in problems:
            run.add_notification(level, problem.message, _site(problem))
    run.write(stream)


def _message(finding: Finding, torch: str) -> str:
    words = [one_line(finding), verdict_sentence(finding, torch), region_words(finding)]
    return " ".join(sentence(word[:1].upper() + word[1:]) for word in words if word)


def _related(finding: Finding) -> list[tuple[Site, str]]:
    related = []
    if finding.region:
        at = Site(finding.region.path, finding.region.line, 1, finding.region.line, 1)
        related.append((at, f"the compiler starts here: {finding.region.how}"))
    if finding.behind:
        related.append((finding.behind, "this comes first, and hides it"))
    return related


def _site(problem: SourceError) -> Site:
    return Site(problem.path, problem.line, problem.column, problem.line, problem.column + 1)


def _file_uri(path: str) -> str:
    path = path.replace(os.sep, "/")
    return f"file://{quote(path)}" if path.startswith("/") else f"file:///{quote(path, safe='/:')}"
