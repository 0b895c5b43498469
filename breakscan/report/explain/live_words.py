"""What ``explain --live`` shows in the last lines of a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from breakscan.model.words import counted, seconds_in_words, short_path
from breakscan.record.parsers.frames import is_resumed, user_name
from breakscan.record.recording import Tally
from breakscan.report.printable import visible


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
