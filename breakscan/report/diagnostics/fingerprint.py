"""What a service knows a diagnostic again by in the next run."""

from __future__ import annotations

import hashlib
from collections import Counter

from breakscan.report.diagnostics.diagnostic import Diagnostic, DiagnosticReport, Remark
from breakscan.report.diagnostics.line_texts import LineTexts


class Fingerprints:
    """The fingerprints of one report, 32 hexadecimal digits each; no two are the same.

    That of a diagnostic depends on the text of the line and on the function, not on the number of the line.
    """

    def __init__(self, report: DiagnosticReport) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._lines = LineTexts(report)

    def of(self, diagnostic: Diagnostic, path: str) -> str:
        """``path`` is how the format names the file."""
        site = diagnostic.site
        code = diagnostic.code or (self._lines.line(site.path, site.line) if site else "")
        return self._digest(diagnostic.id, path, diagnostic.function or "", code.strip())

    def of_remark(self, remark: Remark, path: str) -> str:
        """``path`` is how the format names the file."""
        return self._digest(remark.title, path, remark.message)

    def _digest(self, *key: str) -> str:
        self._seen[key] += 1
        return hashlib.sha256("\0".join((*key, str(self._seen[key]))).encode()).hexdigest()[:32]
