"""``breakscan rule``, ``breakscan rules`` and ``breakscan rules replay``."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from breakscan.cli.options import FOLDER_PATH, argument, declared, format_option, option
from breakscan.cli.output import ProgressBar, report_stream
from breakscan.cli.programs import require_torch
from breakscan.model.words import counted
from breakscan.report.formats import RULE, RULES
from breakscan.report.rules import RuleListReport, RuleReport
from breakscan.rulebook.config import Settings, load_settings, resolve_target
from breakscan.rulebook.document import Rule
from breakscan.rulebook.ledger import (
    ExampleRulings,
    Ledger,
    ledger_folder,
    load_ledger,
    measured_versions,
    read_ledger,
    write_ledger,
)
from breakscan.rulebook.library import Library, load_library


@click.group(invoke_without_command=True)
@declared
@click.pass_context
def rules(ctx: click.Context, /, format_: str = format_option(RULES)) -> None:
    """List the rules, with the verdicts of the target torch version on their examples.

    The target is the version in the configuration, else the installed one.
    """
    if ctx.invoked_subcommand is not None:
        return
    settings = load_settings(Path.cwd())
    _write_list(list(settings.library), settings, format_)


def _write_list(rules: Sequence[Rule], settings: Settings, format_: str) -> None:
    target = resolve_target(settings)
    with report_stream(None) as stream:
        RULES.write(format_, RuleListReport(rules, load_ledger(target.ledger), target.torch), stream)


def _complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    words = [word for rule in load_library() for word in (rule.id, rule.name)]
    return [word for word in words if word.lower().startswith(typed.lower())]


@click.command()
@declared
def rule(rule: str = argument(metavar="RULE", shell_complete=_complete), format_: str = format_option(RULE)) -> None:
    """Explain RULE, an id such as BRK101 or a name such as branch-on-tensor.

    Shows why the compiler cannot do it, what to write instead, and the verdict of each torch version.  The start of an
    id, such as BRK1, lists the rules of a family.
    """
    settings = load_settings(Path.cwd())
    named = _chosen(settings.library, [rule])
    if len(named) > 1:
        _write_list(named, settings, "json" if format_ == "json" else "table")
        return
    ledgers = [load_ledger(version) for version in reversed(measured_versions())]
    with report_stream(None) as stream:
        RULE.write(format_, RuleReport(named[0], ledgers), stream)


@rules.command(short_help="Run every example of every rule through the installed torch.")
@declared
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    rules: tuple[str, ...] = argument(nargs=-1, metavar="[RULE]..."),
    write: bool = option("--write/--check", "Write the verdicts, or only compare them.  [write]", default=True),
    output: Path | None = option(
        "--output", "The folder of the verdict ledgers.  [that of the installed rules]", type=FOLDER_PATH
    ),
) -> None:
    """Run the examples of rules (all of them, or those of each RULE) through the installed torch.

    Each example is compiled alone, by default and with fullgraph=True, as it stands and inside a loop, a try
    and a with, and exported.  The verdicts are written into the ledger of that torch version.  Exits with 1 if torch
    contradicts a rule document, or, with --check, the ledger.
    """
    require_torch("rules replay", rules)
    from breakscan.recording import replay as runtime

    library = load_settings(Path.cwd()).library
    chosen = _chosen(library, rules)
    with ProgressBar("Replaying", patience=0) as progress:
        done = iter(range(len(chosen)))
        ledger = runtime.replay(chosen, lambda _: progress(next(done), len(chosen)))
    path = (output or ledger_folder()) / f"{ledger.torch}.json"
    known = read_ledger(path) if path.is_file() else Ledger(ledger.torch, ledger.python)
    problems = [
        problem
        for rule in chosen
        for label, rulings in ledger.examples.get(rule.id, {}).items()
        for problem in runtime.disagreements(rule, rulings, label)
    ]
    if not write:
        problems += list(_differences(known, ledger))
    else:
        kept = {rule.id: known.examples[rule.id] for rule in library if rules and rule.id in known.examples}
        try:
            write_ledger(Ledger(ledger.torch, ledger.python, {**kept, **ledger.examples}), path)
        except OSError as error:
            raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
    with report_stream(None) as stream:
        stream.writelines(f"{problem}\n" for problem in problems)
        examples = sum(len(labels) for labels in ledger.examples.values())
        replayed = f"{counted(len(chosen), 'rule')}, {counted(examples, 'example')} on torch {ledger.torch}"
        said = counted(len(problems), "disagreement") if problems else "the compiler agrees with the documents"
        stream.write(f"{replayed}: {said}{f' · wrote {path}' if write else ''}\n")
    ctx.exit(1 if problems else 0)


def _chosen(library: Library, words: Sequence[str]) -> list[Rule]:
    if not words:
        return list(library)
    try:
        chosen = {rule.id for word in words for rule in library.select(word)}
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return [rule for rule in library if rule.id in chosen]


def _differences(known: Ledger, seen: Ledger) -> Iterator[str]:
    """Yield the differences between a new replay and the ledger."""
    for rule, labels in seen.examples.items():
        for label, example in labels.items():
            recorded: ExampleRulings | None = known.examples.get(rule, {}).get(label)
            if recorded is None or recorded.digest != example.digest:
                yield f"{rule} {label}: the ledger does not hold this version of the example"
                continue
            before, after = (
                {(mode.value, place.value): ruling for (mode, place), ruling in one.rulings.items()}
                | {("nested", place.value): ruling for place, ruling in one.nested.items()}
                for one in (recorded, example)
            )
            for where in dict.fromkeys([*after, *(one for one in before if one[0] == "nested")]):
                was, now = (
                    " ".join((r.verdict.value, *r.gb)) if (r := one.get(where)) else "nothing"
                    for one in (before, after)
                )
                if was != now:
                    yield f"{rule} {label} ({', '.join(where)}): the ledger says {was}, Dynamo {now}"
