"""Workflow commands that make GitHub Actions show what a run came to as annotations on the lines."""

from __future__ import annotations

import os
from collections import Counter
from typing import TextIO

from breakscan.findings import Severity
from breakscan.reports.explain.diagnostics import points
from breakscan.reports.explain.words import headline, outcome_line, why_nothing_compiled
from breakscan.reports.shared.github_commands import LEVELS, MOST_SHOWN, annotation, checkout_path, command, inert
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.wording import counted
from breakscan.runtime.explain.explanation import Explanation


def write_explain_github(explanation: Explanation, stream: TextIO) -> None:
    """Writes how the run ended and the headline as plain lines, then one annotation a point.

    GitHub shows ten of each level; what is beyond goes to a folded group of the log.  Paths are relative to the
    checkout (``GITHUB_WORKSPACE``) where they lie below it.
    """
    explanation = printable(explanation)
    workspace = os.environ.get("GITHUB_WORKSPACE")
    # The first line is a plain one: the program may have left an unfinished line on the same stream.
    stream.write(inert(outcome_line(explanation)) + "\n")
    if explanation.graphs:
        stream.write(inert(headline(explanation)) + "\n")
    else:
        stream.write(command("warning", {"title": "Nothing was compiled"}, why_nothing_compiled(explanation)))
    shown: Counter[Severity] = Counter()
    rest = []
    for point in points(explanation):
        site = point.site
        said = f"{site.path}:{site.line}: {point.title}: {point.message}"
        shown[point.severity] += 1
        if shown[point.severity] > MOST_SHOWN:
            rest.append(f"{LEVELS[point.severity]}: {said}")
            continue
        path = checkout_path(site.path, workspace)
        stream.write(annotation(LEVELS[point.severity], point.title, path, site, said))
    if rest:
        # The group's title is what GitHub shows of it.
        title = f"{counted(len(rest), 'point')} more than GitHub shows as annotations ({MOST_SHOWN} of each level)"
        stream.write(command("group", {}, title))
        stream.writelines(inert(line) + "\n" for line in rest)
        stream.write(command("endgroup", {}, ""))
    for notice in explanation.notices:
        stream.write(inert(f"Note: {notice}.") + "\n")
