"""Comments that suppress findings: ``# breakscan: ignore[BRK101] reason`` and ``# breakscan: ignore-file[...]``.

This module reads and adds them, and finds those that suppress nothing."""

import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase

from breakscan.model.findings import Finding, SourceError
from breakscan.model.words import grouped
from breakscan.source.module import SourceModule, SourceProblem, read_source
from breakscan.source.paths import display_path, selects
from breakscan.source.python_text import parse_text, python_text

DIRECTIVE = re.compile(r"#\s*breakscan:\s*")
_LETTERS = f"{ascii_lowercase}-"
LOOKS_LIKE_A_SELECTOR = re.compile(r"[:=]?\s*(BRK\w*|ALL\b|[a-z0-9]+(?:-[a-z0-9]+)+$)", re.IGNORECASE)
KINDS = ("ignore", "ignore-file")


@dataclass(frozen=True, slots=True)
class Directive:
    """One suppression.  It applies to the lines from ``first`` to ``last`` (None: the whole file) for the rules
    that ``selectors`` select (None: all)."""

    line: int
    column: int
    selectors: tuple[str, ...] | None
    first: int
    last: int | None

    def covers(self, finding: Finding) -> bool:
        if self.last is not None and not self.first <= finding.site.line <= self.last:
            return False
        return self.selectors is None or any(selects(word, finding.rule, finding.name) for word in self.selectors)


@dataclass(frozen=True, slots=True)
class Suppressions:
    """All suppressions of a file.  ``malformed`` are comments that suppress nothing because they cannot be parsed."""

    path: str
    directives: tuple[Directive, ...] = ()
    malformed: tuple[SourceError, ...] = ()

    @classmethod
    def read(cls, module: SourceModule) -> "Suppressions":
        """The suppressions in the comments of a module.

        A comment applies to the statement that it is in or after, on any of its lines; in a compound statement, to the
        header.  A comment on a separate line between two statements applies to the next one."""
        if "breakscan:" not in module.text:
            return cls(module.display)
        found: list[Directive | SourceError]
        try:
            found = list(_read(module))
        except (tokenize.TokenError, SyntaxError) as error:
            reason = f"the comments of this file cannot be read, none of them counts: {error}"
            found = [_malformed(module.display, 1, 1, reason)]
        directives = tuple(one for one in found if isinstance(one, Directive))
        return cls(module.display, directives, tuple(one for one in found if isinstance(one, SourceError)))

    def covers(self, finding: Finding) -> bool:
        return any(directive.covers(finding) for directive in self.directives)

    def problems(self, problem_with: Callable[[str], str | None]) -> tuple[SourceError, ...]:
        """Errors in the comments.  ``problem_with`` gives the reason why a word names no rule."""
        found = list(self.malformed)
        for directive in self.directives:
            unknown = filter(None, map(problem_with, directive.selectors or ()))
            found += [SourceError(self.path, directive.line, directive.column, f"suppression: {u}") for u in unknown]
        return tuple(sorted(found, key=lambda problem: (problem.line, problem.column)))


def _read(module: SourceModule) -> Iterator[Directive | SourceError]:
    """The directives in the comments of a module, and what is wrong with the others."""
    waiting: list[tokenize.TokenInfo] = []
    first: int | None = None
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            waiting.append(token)
        elif token.type == tokenize.NEWLINE or token.type == tokenize.ENDMARKER:
            last = token.start[0]
            for comment in waiting:
                starts = list(DIRECTIVE.finditer(comment.string))
                ends = [*(match.start() for match in starts[1:]), len(comment.string)]
                for match, end in zip(starts, ends, strict=False):
                    text = comment.string[match.end() : end]
                    column = comment.start[1] + match.start() + 1
                    alone = not comment.line[: comment.start[1]].strip()
                    lines = first if first is not None else last, last
                    yield _directive(module.display, comment.start[0], column, text, alone, *lines)
            waiting, first = [], None
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT) and first is None:
            first = token.start[0]


def _directive(
    path: str, line: int, column: int, text: str, alone: bool, first: int, last: int
) -> Directive | SourceError:
    kind = text[: len(text) - len(text.lstrip(_LETTERS))]
    rest = text[len(kind) :].lstrip()
    selectors: tuple[str, ...] | None = None
    problem = ""
    if kind not in KINDS:
        problem = f"'breakscan: {kind}' is not known: write ignore[…] or ignore-file[…]"
    elif kind == "ignore-file" and not alone:
        problem = "ignore-file must stand on a line of its own: write ignore for this statement"
    elif rest.startswith("["):
        inside, closed, _ = rest[1:].partition("]")
        selectors = tuple(word.strip() for word in inside.split(",") if word.strip())
        if not closed or not selectors:
            problem = f"write {kind}[BRK101, …]: {'no rule' if closed else 'no ]'} in the brackets"
    elif named := LOOKS_LIKE_A_SELECTOR.match(rest):
        problem = f"put the rule into brackets: {kind}[{named[1]}]"
    if problem:
        return _malformed(path, line, column, problem)
    return Directive(line, column, selectors, *((1, None) if kind == "ignore-file" else (first, last)))


def _malformed(path: str, line: int, column: int, message: str) -> SourceError:
    return SourceError(path, line, column, f"this comment silences nothing: {message}")


def with_suppressions(text: str, rules: Mapping[int, Iterable[str]], reason: str) -> str:
    """The text with a comment that suppresses ``rules``, by line, at the end of the statement of each line; any other
    comment stays in front.  Raises TokenError or SyntaxError where the text is no Python."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    ends = [token.start[0] for token in tokens if token.type == tokenize.NEWLINE]
    wanted: dict[int, set[str]] = defaultdict(set)
    for line, names in rules.items():
        wanted[next(end for end in ends if end >= line)].update(names)
    lines = text.split("\n")
    for end, names in wanted.items():
        comment = f"# breakscan: ignore[{', '.join(sorted(names))}] {reason}"
        lines[end - 1] = f"{lines[end - 1].rstrip()}  {comment}".rstrip()
    return "\n".join(lines)


def unused_suppressions(files: Iterable[Path], covered: Iterable[Finding]) -> list[SourceError]:
    """Messages about the comments in files, given by their absolute paths, that suppress none of the findings
    ``covered``, or that name a rule none of them is of."""
    by_path = grouped((finding.site.path, finding) for finding in covered)
    cwd = Path.cwd()
    return [one for file in files for one in _unused_in(file, display_path(file, cwd), by_path)]


def _unused_in(file: Path, display: str, by_path: dict[str, list[Finding]]) -> Iterator[SourceError]:
    try:
        text = python_text(read_source(file, display), file, display)
        if "breakscan:" not in text:
            return
        directives = Suppressions.read(parse_text(text, file, display)).directives
    except SourceProblem:
        return  # it is reported as not checked
    for directive in directives:
        for word in directive.selectors or (None,):
            part = replace(directive, selectors=None if word is None else (word,))
            if not any(map(part.covers, by_path.get(display, ()))):
                what = "nothing is" if word is None else f"{word} is not"
                message = f"unused suppression: {what} found here"
                yield SourceError(display, directive.line, directive.column, message)
