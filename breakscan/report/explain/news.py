"""What a run that goes on shows: what was met until now, and what is new, a line an event."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from breakscan.explanation.breaks import part_words
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.recompiles import recompile_sentence
from breakscan.model.problem import ProblemKind
from breakscan.model.words import counted, duration, place, seconds_in_words, short_path
from breakscan.recording.parsers.frames import is_resumed, user_name
from breakscan.recording.recording import Tally
from breakscan.report.printable import printable, visible


def tally_words(tally: Tally) -> str:
    """``12 graphs, 3 breaks, 2 recompiles, 41 s compiling``."""
    parts = [counted(tally.kinds["GraphCompiled"], "graph"), counted(tally.kinds["BreakSeen"], "break")]
    if recompiles := tally.kinds["RecompileSeen"]:
        parts.append(counted(recompiles, "recompile"))
    return f"{', '.join(parts)}, {tally.compile_seconds:.0f} s compiling"


def live_lines(tally: Tally, news: Iterable[str], width: int) -> list[str]:
    """The lines with their colors: what there was in all and what is being compiled, then the news, the newest last."""
    now = Text(f"── breakscan: {tally_words(tally)}", "bold")
    if (running := tally.compiling) is not None:
        code, seconds = running
        what = f"the rest of {user_name(code.name)}" if is_resumed(code.name) else code.name
        place = f"{short_path(code.path.rpartition('/')[2])}:{code.line}"
        now.append(visible(f" · compiling {what} ({place}), {seconds_in_words(seconds)}"), "yellow")
    return [_drawn(line, width) for line in (now, *(Text(line, "dim") for line in news))]


def _drawn(line: Text, width: int) -> str:
    line.truncate(width, overflow="ellipsis")
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, force_jupyter=False)
    console.print(line, end="", soft_wrap=True)
    return stream.getvalue()


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
        for one in told.problems:
            inside = f" in {one.function}" if one.function else ""
            if one.kind is ProblemKind.BREAK and self._is_new("break", one.site, one.gb_type):
                yield f"{'':8}    {one.what} at {place(one.site)}{inside}: {one.rule_words or one.name}"
            elif one.is_lost and self._is_new("frame", one.functions, one.site, one.what):
                part = f"the rest of {one.function}" if one.rest_only else one.function
                yield f"{'':8}    {part} {one.what} at {place(one.site)}: {one.why}"

    def _is_new(self, *key: object) -> bool:
        is_new = key not in self._told
        self._told.add(key)
        return is_new
