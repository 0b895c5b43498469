"""What is said of a run that does not meet its gates or its lock: what is allowed, what was found, where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breakscan.explain.gates.gates import Unmet
from breakscan.explain.gates.lock_file import Judgement
from breakscan.explain.gates.site_match import KnownBreak
from breakscan.model.findings import Site
from breakscan.model.words import counted, place, position
from breakscan.report.printable import visible

MOST_PLACES = 5


def unmet_sentence(gate: Unmet) -> str:
    """``--max-breaks 3 is not met: 5 break sites at vision.py:39:16, vision.py:53:12, …``."""
    found = counted(gate.found, gate.thing)
    return visible(f"{gate.option} is not met: {found} at {places(gate.sites)}")


def places(sites: Sequence[Site]) -> str:
    """The first few, and how many more there are."""
    shown = [position(site) for site in sites[:MOST_PLACES]]
    rest = len(sites) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def lock_sentences(judgement: Judgement, lock: str) -> Iterator[str]:
    """What a run does that its lock, a file of this name, does not allow."""
    for one in judgement.new:
        yield visible(f"not in {lock}: {_named(one)}")
    for allowed, now in judgement.worse:
        yield visible(f"worse than {lock} allows: {_named(now)}; {_difference(allowed, now)}")


def _named(one: KnownBreak) -> str:
    inside = f" in {one.function}" if one.function else ""
    code = f": {one.code}" if one.code else ""
    return f"{place(one)} {one.verdict.words}, {one.kind}{inside}{code}"


def _difference(allowed: KnownBreak, now: KnownBreak) -> str:
    if now.verdict is not allowed.verdict:
        return f"the lock says that it {allowed.verdict.words}"
    return f"met {now.count} times, {allowed.count} in the lock"


def outdated_words(judgement: Judgement) -> str:
    """In what a lock is more than a run needs: ``2 breaks gone, 1 milder``."""
    parts = [
        counted(judgement.gone, "break") + " gone" if judgement.gone else "",
        f"{judgement.milder} milder or met less often" if judgement.milder else "",
        f"{judgement.edited} on a changed line" if judgement.edited else "",
    ]
    return ", ".join(filter(None, parts))
