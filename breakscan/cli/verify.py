"""``breakscan verify``."""

import sys
from pathlib import Path

import click

from breakscan.cli.exit_status import INTERRUPTED
from breakscan.cli.measuring import MeasuringOptions, apply_option, apply_unseen_option, measured_report, say
from breakscan.cli.options import FILE_PATH, declared, flag, format_option, group, list_option, option, output_option
from breakscan.cli.selection import require_rewrites
from breakscan.fix.planner import WantedRewrites
from breakscan.prove.proof import ProofVerdict, Verification
from breakscan.prove.rewrites import ChangeError, of_settings, patched_files
from breakscan.prove.verify import Question
from breakscan.prove.verify import verify as prove
from breakscan.prove.worker import Candidate
from breakscan.recording.bootstrap.eager_compile import BACKEND
from breakscan.report.formats import VERIFY
from breakscan.rulebook.config import NearestSettings


@click.command(context_settings={"allow_interspersed_args": False})
@declared
def verify(
    ids: tuple[str, ...] | None = list_option("--rewrite", "Only these rewrites, or those of these rules."),
    patch: Path | None = option(
        "--patch", "Verify this unified diff instead.", type=click.Path(path_type=Path, dir_okay=False, exists=True)
    ),
    settings: tuple[str, ...] = option(
        "--config", "Verify this setting of torch.compile instead.", metavar="KEY=VALUE", multiple=True
    ),
    apply: bool = apply_option("the rewrites that are accepted"),
    apply_unseen: bool = apply_unseen_option("those that are not shown to be equal"),
    each: bool = flag(
        "--each", "Prove and time each rewrite by itself, too, where all together are accepted. --apply implies it."
    ),
    repro: Path | None = option(
        "--repro", "If compiled differs from eager, write a minimal program that shows it to this file.", type=FILE_PATH
    ),
    compile_backend: str = option(
        "--compile-backend", f"The backend of --compile.  [{BACKEND}]", default=BACKEND, metavar="NAME"
    ),
    measured: MeasuringOptions = group(MeasuringOptions),
    format_: str = format_option(VERIFY),
    output: Path | None = output_option,
) -> None:
    """Run PROGRAM with its ARGUMENTS as it is and rewritten, and report whether results are equal and it is faster.

    The rewrites are those of breakscan fix, for the code that runs: all together, and each by itself where they are
    not accepted together; or a patch, or settings. Your files are left alone. The program is run several times, each
    time up to its first calls of what it compiles: what it writes is not shown. Options of breakscan come before
    PROGRAM.

    The report also compares the compiled program, without any change, with eager, and names the first operation at
    which they differ.

    Exits with 0 if each change is tried, none is rejected and compiled agrees with eager, 1 otherwise, 2 if the
    program could not be measured, and 130 if it was interrupted: the report then shows what was proved so far.
    """
    if patch is not None and settings:
        raise click.UsageError("--patch and --config are verified one at a time")
    candidate = _candidate(patch, settings)
    if (apply or apply_unseen) and settings:
        raise click.UsageError("--apply cannot write a setting: set it in your program")
    rewrites, rules = _told_apart(ids)
    question = Question(
        NearestSettings(target="compile", select=rules, no_cache=True),
        WantedRewrites(frozenset(rewrites) if rewrites else None),
        candidate,
        apply or apply_unseen,
        apply_unseen,
        each,
        repro.absolute() if repro is not None else None,
    )
    user_program = measured.user_program("verify", compile_backend)
    verification = measured_report(lambda: prove(user_program, question, say), VERIFY, format_, output)
    sys.exit(_status(verification))


def _candidate(patch: Path | None, settings: tuple[str, ...]) -> Candidate | None:
    try:
        if patch is not None:
            return Candidate(patch.name, texts=patched_files(patch.read_text(encoding="utf-8"), Path.cwd()))
        return of_settings(settings) if settings else None
    except (ChangeError, OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(str(error), param_hint="--config" if patch is None else "--patch") from error


def _told_apart(ids: tuple[str, ...] | None) -> tuple[list[str], tuple[str, ...] | None]:
    """The ids of rewrites, and of rules."""
    rules = tuple(one for one in ids or () if one.upper().startswith("BRK"))
    rewrites = [one for one in ids or () if one not in rules]
    require_rewrites(rewrites)
    return rewrites, rules or None


def _status(verification: Verification) -> int:
    if verification.interrupted:
        return INTERRUPTED
    refused = any(proof.verdict in (ProofVerdict.REJECTED, ProofVerdict.NOT_TRIED) for proof in verification.proofs)
    return 1 if refused or verification.divergence is not None else 0
