"""What ``check --add-ignore`` and ``--remove-unused-ignores`` do: write comments that suppress findings into their
statements, and take out those that suppress nothing."""

from __future__ import annotations

import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from breakscan.model.findings import Finding, SourceError
from breakscan.source.module import SourceProblem, read_source
from breakscan.source.python_text import python_text
from breakscan.source.suppressions import UnusedSuppression, with_suppressions, without_suppressions
from breakscan.source.writing import rewrite_file


def add_ignores(findings: Iterable[Finding], reason: str) -> tuple[int, list[SourceError]]:
    """Suppresses the findings, whose sites are those of the files; returns how many, and what could not be written."""
    by_file: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    counts: dict[str, int] = defaultdict(int)
    for finding in findings:
        by_file[finding.site.path][finding.site.line].add(finding.rule)
        counts[finding.site.path] += 1
    problems = {path: problem for path, rules in by_file.items() if (problem := _suppress(path, rules, reason))}
    return sum(count for path, count in counts.items() if path not in problems), list(problems.values())


def remove_ignores(unused: Iterable[UnusedSuppression]) -> tuple[int, list[SourceError]]:
    """Takes comments out, or some words of them; returns how many comments, and what could not be written."""
    by_file: dict[str, list[UnusedSuppression]] = defaultdict(list)
    for one in unused:
        by_file[one.path].append(one)
    problems: list[SourceError] = []
    done = 0
    for path, comments in by_file.items():
        places = {(one.directive.line, one.directive.column): one.words for one in comments}
        problem = _rewrite(path, partial(without_suppressions, unused=places))
        problems += [problem] if problem else []
        done += 0 if problem else len(comments)
    return done, problems


def _suppress(path: str, rules: Mapping[int, Iterable[str]], reason: str) -> SourceError | None:
    """Suppresses rules by line; returns what is wrong where that cannot be written."""
    return _rewrite(path, partial(with_suppressions, rules=rules, reason=reason))


def _rewrite(path: str, change: Callable[[str], str]) -> SourceError | None:
    try:
        before = python_text(read_source(Path(path), path), path, path)
        rewrite_file(Path(path), path, before, change(before))
    except SourceProblem as problem:
        return problem.error
    except (tokenize.TokenError, SyntaxError) as error:
        return SourceError(path, 1, 1, f"the comments of this file cannot be read: {error}")
    return None
