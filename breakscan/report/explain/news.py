"""A run that goes on: its counts until now, and a line for each new event."""

from __future__ import annotations

from collections.abc import Iterator

from breakscan.explanation.breaks import part_words
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.recompiles import recompile_sentence
from breakscan.model.problem import ProblemKind
from breakscan.model.words import counted, duration, place
from breakscan.recording.recording import Tally
from breakscan.report.printable import printable


def tally_words(tally: Tally) -> str:
    """``12 graphs, 3 breaks, 2 recompiles, 41 s compiling``."""
    parts = [counted(tally.kinds["GraphCompiled"], "graph"), counted(tally.kinds["BreakSeen"], "break")]
    if recompiles := tally.kinds["RecompileSeen"]:
        parts.append(counted(recompiles, "recompile"))
    return f"{', '.join(parts)}, {tally.compile_seconds:.0f} s compiling"


class News:
    """The events that were not reported yet."""

    def __init__(self) -> None:
        self._reported: set[object] = set()

    def lines(self, explanation: Explanation) -> Iterator[str]:
        """Yield a line for each new compilation (with the reason if it is a recompile), break site, and function that
        is not compiled."""
        shown = printable(explanation)
        again = {one.compile_id: recompile_sentence([one]) for one in shown.recompiles}
        for compiled in shown.compiles:
            if self._is_new("compiled", compiled.compile_id):
                why = f", again: {again[compiled.compile_id]}" if compiled.compile_id in again else ""
                took = duration(compiled.seconds)
                yield f"{compiled.at:8.1f} s  compiled {part_words(compiled)} at {place(compiled.site)} in {took}{why}"
        for one in shown.problems:
            inside = f" in {one.function}" if one.function else ""
            if one.kind is ProblemKind.BREAK and self._is_new("break", one.site, one.gb_type):
                yield f"{'':8}    {one.what} at {place(one.site)}{inside}: {one.rule_words or one.name}"
            elif one.is_lost and self._is_new("frame", one.functions, one.site, one.what):
                part = f"the rest of {one.function}" if one.rest_only else one.function
                yield f"{'':8}    {part} {one.what} at {place(one.site)}: {one.why}"

    def _is_new(self, *key: object) -> bool:
        is_new = key not in self._reported
        self._reported.add(key)
        return is_new
