"""What is new in a run that goes on, a line an event."""

from __future__ import annotations

from collections.abc import Iterator

from breakscan.explain.explanation import Explanation, FrameStatus
from breakscan.model.words import duration, place
from breakscan.report.explain.reason_words import reason_words
from breakscan.report.explain.words import STATUS_WORDS, part_words, recompile_sentence
from breakscan.report.printable import printable
from breakscan.rulebook.document import rule_words


class News:
    """Remembers what it has told."""

    def __init__(self) -> None:
        self._told: set[object] = set()

    def lines(self, explanation: Explanation) -> Iterator[str]:
        """What has come since the last time: compilations, with why a function was compiled again; new sites of breaks;
        functions that are not compiled."""
        told = printable(explanation)
        again = {one.compile_id: recompile_sentence([one]) for one in told.recompiles}
        for compiled in told.compiles:
            if self._is_new("compiled", compiled.compile_id):
                why = f", again: {again[compiled.compile_id]}" if compiled.compile_id in again else ""
                took = duration(compiled.seconds)
                yield f"{compiled.at:8.1f} s  compiled {part_words(compiled)} at {place(compiled.site)} in {took}{why}"
        for site in told.breaks:
            if self._is_new("break", site.site, site.gb_type):
                inside = f" in {site.function}" if site.function else ""
                name = rule_words(site.rule) or site.gb_type
                yield f"{'':8}    {site.verdict.words} at {place(site.site)}{inside}: {name}"
        for frame in told.frames:
            lost = frame.status is not FrameStatus.PASSED_OVER and frame.break_site is None
            if lost and self._is_new("frame", frame.function, frame.site, frame.status):
                what = f"{part_words(frame)} {STATUS_WORDS[frame.status]} at {place(frame.site)}"
                yield f"{'':8}    {what}: {reason_words(frame.reason)}"

    def _is_new(self, *key: object) -> bool:
        is_new = key not in self._told
        self._told.add(key)
        return is_new
