"""``breakscan check``."""

import gc
import os
import sys
import time
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from click.core import ParameterSource

from breakscan.check.baseline import BaselineComparison, CheckedPaths, checked_lines
from breakscan.cli.baseline import BaselineOptions
from breakscan.cli.options import (
    CHECKED,
    KNOWN,
    REPORTED,
    SectionedCommand,
    argument,
    declared,
    flag,
    format_option,
    group,
    list_option,
    option,
    output_option,
)
from breakscan.cli.output import ProgressBar, is_read_on_terminal, report_stream
from breakscan.cli.selection import (
    Selection,
    quiet_option,
    recording_option,
    settings_at,
    warn_of_no_files,
    with_recordings,
)
from breakscan.model.findings import CheckResult, Finding, Severity, SourceError
from breakscan.model.words import counted
from breakscan.report.check import CheckReport, region_lines, summary_line
from breakscan.report.findings import versions_words
from breakscan.report.formats import CHECK
from breakscan.report.printable import visible
from breakscan.report.sources import cells_in
from breakscan.rulebook.config import FileSettings, check_targets, library_of
from breakscan.rulebook.library import Library
from breakscan.source.files import Discovery, discover, is_excluded
from breakscan.source.module import SourceProblem, read_source
from breakscan.source.paths import display_path, selects
from breakscan.source.python_text import python_text
from breakscan.source.suppressions import unused_suppressions, with_suppressions
from breakscan.source.writing import rewrite_file

STDIN = "-"
_SEVERITIES = (Severity.INFO, Severity.WARNING, Severity.ERROR)


@dataclass(frozen=True, slots=True)
class _Options:
    stdin_filename: str | None = option(
        "--stdin-filename", "Name of the file that is read from standard input (-).", CHECKED, metavar="NAME"
    )
    add_ignore: str | None = option(
        "--add-ignore", "Suppress each finding by a comment with this reason.", KNOWN, metavar="REASON"
    )
    warn_unused_ignores: bool = flag(
        "--warn-unused-ignores",
        "Report suppression comments that are not needed.  PATHS must be the whole project.",
        KNOWN,
    )
    fail_on: tuple[str, ...] | None = list_option(
        "--fail-on",
        "Exit with 1 only for these: rules (BRK101, BRK2, a name), or a severity and those above it (error, "
        "warning, info).",
        REPORTED,
    )
    show_regions: bool = flag("--show-regions", "List what counts as compiled, and from where.", REPORTED)
    exit_zero: bool = flag("--exit-zero", "Exit with 0 even if there are findings.", REPORTED)
    quiet: bool = quiet_option

    def stdin(self, paths: Sequence[str]) -> str | None:
        """The name of the file on standard input; None if ``paths`` are files.  Raises UsageError."""
        if STDIN not in paths and (self.stdin_filename is None or paths):
            if self.stdin_filename is not None:
                raise click.UsageError("--stdin-filename needs - as the only path")
            return None
        if len(paths) > 1:
            raise click.UsageError("- means standard input, and cannot be combined with other paths")
        return self.stdin_filename or STDIN

    def require_sense(self, ctx: click.Context, is_stdin: bool) -> None:
        """Raises UsageError for options that cannot be combined."""
        given = {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
        for name in _ABOUT_FILES:
            if is_stdin and name in given:
                raise click.UsageError(f"{_option(name)} needs files, and cannot be combined with standard input")
        for first, second in _EXCLUSIVE:
            if given >= {first, second}:
                raise click.UsageError(f"{_option(first)} and {_option(second)} cannot be combined")
        if self.add_ignore is not None and not (self.add_ignore and self.add_ignore.isprintable()):
            raise click.UsageError("--add-ignore needs a reason, in one line")


def _option(name: str) -> str:
    return "--recording" if name == "recordings" else f"--{name.replace('_', '-')}"


_ABOUT_FILES = ("recordings", "diff", "add_ignore", "warn_unused_ignores")
_EXCLUSIVE = (("baseline", "diff"), ("exit_zero", "fail_on"))
_OF_ONE_TARGET = ("recordings", "diff", "baseline", "add_ignore", "warn_unused_ignores", "fail_on", "show_regions")


@click.command(cls=SectionedCommand)
@declared
@click.pass_context
def check(
    ctx: click.Context,
    /,
    paths: tuple[str, ...] = argument(nargs=-1, type=click.Path(path_type=str)),
    selection: Selection = group(Selection),
    recordings: tuple[Path, ...] = recording_option,
    format_: str = format_option(CHECK),
    output: Path | None = output_option,
    baseline: BaselineOptions = group(BaselineOptions),
    diff: str | None = option("--diff", "Report only what is new since this branch left REF.", KNOWN, metavar="REF"),
    own: _Options = group(_Options),
) -> None:
    """Show where torch.compile will break the graph, recompile or fall back to eager in Python files and notebooks.

    PATHS are files, folders, or - for standard input; the default is the working directory.  Nothing is imported or
    run.

    Exits with 0 if there are no findings but those that the baseline allows; 1 if there are (with --fail-on, only if it
    names them), or a file is not valid Python; and 2 if part of the work could not be done.
    """
    stdin = own.stdin(paths)
    own.require_sense(ctx, stdin is not None)
    started = time.perf_counter()
    where = [stdin] if stdin is not None else list(paths or (".",))
    if selection.target_torch is not None and "," in selection.target_torch:
        if stdin is not None or format_ not in ("full", "json") or any(map(ctx.params.get, _OF_ONE_TARGET)):
            others = ", ".join(map(_option, _OF_ONE_TARGET))
            raise click.UsageError(f"--target-torch A,B lists what changes in files, as text or JSON, without {others}")
        ctx.exit(_compare_targets(where, selection, own, output, format_))
    settings = selection.settings()
    named = settings_at(where, settings)
    fails = _failing(own.fail_on, library_of(named))
    nothing = CheckResult((), (), 0, 0, check_targets(named))
    texts: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    if stdin is not None:
        discovery = Discovery((), ())
        files: Sequence[Path] = [Path(os.path.abspath(stdin))]
    else:
        discovery = discover(where, settings, force_exclude=selection.force_exclude)
        files = discovery.files
    # With --diff, the findings of the other commit are the known ones.
    allowed = baseline.read(files, settings, off=diff is not None)
    if stdin is not None:
        observed: FileSettings = settings
        result = _check_stdin(stdin, settings, nothing, texts, contents, selection.force_exclude)
    else:
        observed = with_recordings(settings, recordings, files) if files else settings
        # What a run of all files puts apart, one of a part of them reports: a baseline holds both.
        result = _check_files(where, discovery, observed, nothing, selection, own.quiet, allowed is None)
    compared: BaselineComparison | None = None
    checked = CheckedPaths.of_run(where, files, result, settings) if allowed is not None else None
    if allowed is not None and checked is not None:
        from_texts = {name: text.split("\n") for name, text in texts.items()}.__getitem__
        compared = allowed.compare(result.findings, checked, checked_lines if stdin is None else from_texts)
    elif diff is not None:
        from breakscan.cli.commit_diff import compare_with_commit

        compared = compare_with_commit(diff, where, files, result, settings, selection.jobs)
    if compared is not None:
        result = replace(result, findings=compared.new)
    unused = unused_suppressions(files, result.covered) if own.warn_unused_ignores else []
    result = replace(result, warnings=(*result.warnings, *unused))
    if own.add_ignore is not None:
        ctx.exit(_add_ignores(result, own.add_ignore))
    if own.show_regions:
        click.echo("\n".join(map(visible, region_lines(result))))
        ctx.exit(0)
    seconds = time.perf_counter() - started
    edits = 0
    # To plan edits takes longer than to check a file: only somebody who reads on a terminal waits for their number.
    if is_read_on_terminal(sys.stdout, output) and stdin is None and format_ == "full" and not own.quiet:
        from breakscan.fix.repair import fixable

        edits = len(fixable(result, observed))
    library = library_of(settings.of(Path(os.path.abspath(one.site.path))) for one in result.findings)
    cells = cells_in(result, contents)
    result = cells.result(result)
    for warning in result.warnings:
        click.echo(visible(f"warning: {warning.path}:{warning.line}:{warning.column}: {warning.message}"), err=True)
    report = CheckReport(result, seconds, library, texts, cells, compared.known if compared else 0, own.quiet, edits)
    with report_stream(output) as stream:
        if format_ == "full" and not (result.findings or result.errors or own.quiet):
            stream.write(f"{summary_line(report)}\n")  # rich takes longer to import than all else to start
        else:
            CHECK.write(format_, report, stream)
    unchecked = sum(not error.syntax for error in result.errors)
    failed = any(map(fails, result.findings))
    if allowed and checked and compared and stdin is None:
        # Findings that --baseline-add allows from now on are no failure.
        failed = allowed.status(compared, checked, unchecked, fails) != 0
    ctx.exit(2 if unchecked else int(bool(failed or result.errors or unused) and not own.exit_zero))


def _compare_targets(where: Sequence[str], selection: Selection, own: _Options, to: Path | None, format_: str) -> int:
    """Writes the findings that come, go or have another verdict from one version of torch to another, and returns the
    exit status: 1 if one comes or is more severe.  Raises UsageError."""
    versions = (selection.target_torch or "").replace(" ", "").split(",")
    if len(versions) != 2:
        raise click.UsageError("--target-torch takes one version, or two that are compared: 2.13,2.15")
    results: list[CheckResult] = []
    for version in versions:
        asked = replace(selection, target_torch=version)
        settings = asked.settings()
        discovery = discover(where, settings, force_exclude=selection.force_exclude)
        nothing = CheckResult((), (), 0, 0, check_targets(settings_at(where, settings)))
        results.append(_check_files(where, discovery, settings, nothing, asked, own.quiet, True))
    first, second = ({(one.site, one.rule, one.mode): one for one in result.findings} for result in results)
    lines, changes, fails = [], list[tuple[str, Finding | None, Finding | None]](), False
    for key in sorted({*first, *second}, key=lambda key: (key[0].path, key[0].line, key[0].column, key[1], key[2])):
        before, after = first.get(key), second.get(key)
        one = after or before
        verdicts = {f.verdict for f in (before, after) if f is not None}
        if one is None or (before and after and (len(verdicts) == 1 or None in verdicts)):
            continue  # the same, or not measured on one of them
        changes.append(("new" if before is None else "gone" if after is None else "changed", before, after))
        fails |= bool(after and (not before or _SEVERITIES.index(after.severity) > _SEVERITIES.index(before.severity)))
        was, now = (
            f"{f.severity.value} ({f.verdict.value if f.verdict else 'not measured'})" if f else "no finding"
            for f in (before, after)
        )
        lines.append(f"{one.site.path}:{one.site.line}:{one.site.column}: {was} → {now}  {one.rule} {one.message}")
    counts = Counter(change for change, *_ in changes)
    total = ", ".join(f"{counts[change]} {change}" for change in ("new", "gone", "changed") if counts[change])
    names = " → ".join(versions_words(result.targets) for result in results)
    lines.append(f"torch {names}: {total or 'nothing changes'} in {counted(results[1].files, 'file')}")
    lines += [f"{error.path}:{error.line}:{error.column}: not checked: {error.message}" for error in results[1].errors]
    with report_stream(to) as stream:
        if format_ == "json":
            rules = library_of(settings_at(where, settings))
            CHECK.write(format_, CheckReport(results[1], 0.0, rules, changes=changes), stream)
        else:
            stream.writelines(f"{visible(line)}\n" for line in lines)
    errors = {error.syntax for error in results[1].errors}
    return 2 if False in errors else int((fails or bool(errors)) and not own.exit_zero)


def _failing(asked: tuple[str, ...] | None, library: Library) -> Callable[[Finding], bool]:
    """Return a function that is True for findings that fail the run: all of them if none are ``asked`` for.  Raises
    UsageError for a word that names nothing."""
    if asked is None:
        return lambda finding: True
    severities = {one.value: set(_SEVERITIES[_SEVERITIES.index(one) :]) for one in _SEVERITIES}
    rules = [word for word in asked if word.lower() not in severities]
    for word in rules:
        if problem := library.problem_with(word):
            raise click.UsageError(f"--fail-on: {problem}; severities are {', '.join(severities)}")
    named = set().union(*(severities[word.lower()] for word in asked if word not in rules))
    return lambda finding: finding.severity in named or any(selects(word, finding.rule, finding.name) for word in rules)


def _add_ignores(result: CheckResult, reason: str) -> int:
    """Adds a comment for each finding, and returns the exit status."""
    by_file: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for finding in result.findings:
        by_file[finding.site.path][finding.site.line].add(finding.rule)
    problems = {path: problem for path, rules in by_file.items() if (problem := _suppress(path, rules, reason))}
    for error in (*result.errors, *problems.values()):
        click.echo(visible(f"{error.path}:{error.line}:{error.column}: {error.message}"), err=True)
    done = sum(finding.site.path not in problems for finding in result.findings)
    click.echo(f"breakscan: {counted(done, 'finding')} suppressed", err=True)
    return 2 if result.errors or problems else 0


def _suppress(path: str, rules: Mapping[int, Iterable[str]], reason: str) -> SourceError | None:
    try:
        before = python_text(read_source(Path(path), path), path, path)
        rewrite_file(Path(path), path, before, with_suppressions(before, rules, reason))
    except SourceProblem as problem:
        return problem.error
    except (tokenize.TokenError, SyntaxError) as error:
        return SourceError(path, 1, 1, f"the comments of this file cannot be read: {error}")
    return None


def _check_files(
    paths: Sequence[str],
    discovery: Discovery,
    settings: FileSettings,
    nothing: CheckResult,
    selection: Selection,
    quiet: bool,
    apart: bool,
) -> CheckResult:
    result = nothing
    if discovery.files:
        from breakscan.check.pipeline.check import check_paths
        from breakscan.check.pipeline.checker import Checker

        gc.disable()  # the process ends soon: neither search nor free the trees
        files, checker, jobs = discovery.files, Checker(settings), selection.jobs
        with ProgressBar("Checking", quiet=quiet) as progress:
            result = check_paths(files, settings, on_progress=progress, jobs=jobs, checkers=checker, apart=apart)
    warn_of_no_files(discovery, paths, selection)
    errors = sorted((*discovery.errors, *result.errors), key=lambda error: (error.path, error.line, error.column))
    return replace(result, errors=tuple(errors))


def _check_stdin(
    name: str,
    settings: FileSettings,
    nothing: CheckResult,
    texts: dict[str, str],
    contents: dict[str, bytes],
    force_exclude: bool,
) -> CheckResult:
    if force_exclude and is_excluded(os.path.abspath(name), settings):
        return nothing
    if sys.stdin is None:
        raise click.UsageError("standard input is closed: - reads the code from it")
    path = Path(os.path.abspath(name))
    display = display_path(path, os.getcwd())
    contents[display] = sys.stdin.buffer.read()
    try:
        texts[display] = python_text(contents[display], path, display)
    except SourceProblem as problem:
        return replace(nothing, errors=(problem.error,), files=1)
    from breakscan.check.pipeline.check import check_paths

    return check_paths((), settings, stdin=(texts[display], path))
