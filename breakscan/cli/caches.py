"""``breakscan explain --caches``."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from breakscan.cli.exit_status import OutputError
from breakscan.cli.measuring import say
from breakscan.cli.output import report_stream
from breakscan.explanation.explanation import Explanation
from breakscan.prove.fork_server import caches_in
from breakscan.recording.bootstrap.eager_compile import BUNDLE
from breakscan.recording.launch import LaunchError, Requests, end_like, outliving_termination, own_rank, run_recorded
from breakscan.recording.recording import read_recording
from breakscan.recording.records import Record
from breakscan.recording.session import Session, start_session
from breakscan.report.caches import cold_start
from breakscan.report.formats import CACHES
from breakscan.source.writing import replace_content

_LOCAL_ALONE = ("FX_GRAPH", "AUTOGRAD", "AUTOTUNE")  # caches of torch that may lie on another machine


def explain_caches(
    program: str,
    argv: Sequence[str],
    requests: Requests,
    warm_up: Path | None,
    format_: str,
    output: Path | None,
    explained: Callable[[Session], Explanation],
) -> None:
    """Runs a program in two processes with one fresh folder of caches, and in a third with ``warm_up`` alone, which it
    writes; and reports what each has found.  Ends as the program does where that fails."""
    if format_ not in CACHES.names:
        raise click.UsageError(f"--caches has the formats {', '.join(CACHES.names)}")
    if argv[0] == "-":
        raise click.UsageError("--caches runs the program more than once, and standard input can be read once")
    if own_rank(os.environ):
        raise click.UsageError("--caches runs a program without ranks: give it the program of one")
    os.environ.update({f"TORCHINDUCTOR_{cache}_REMOTE_CACHE": "0" for cache in _LOCAL_ALONE})
    runs: list[Explanation] = []
    records: list[list[Record]] = []
    with tempfile.TemporaryDirectory(prefix="breakscan-", ignore_cleanup_errors=True) as root, outliving_termination():
        first, bundle = Path(root, "first"), Path(root, BUNDLE)

        def run(caches: Path, what: str, requests: Requests = requests) -> None:
            say(f"running the program {what}")
            os.environ.update(caches_in(caches))
            session = start_session(argv)
            try:
                requests.write(session.folder)
                if requests.load_caches:
                    shutil.copy(bundle, session.folder / BUNDLE)
                outcome = run_recorded(argv, session.folder)
                session.end(outcome)
                if outcome.status:
                    click.echo(f"breakscan: the program failed {what}: nothing is compared", err=True)
                    end_like(outcome.status)
                runs.append(explained(session))
                records.append([one for process in read_recording(session.folder) for one in process])
                saved = sorted(session.folder.glob(f"{BUNDLE}-*"), key=lambda path: path.stat().st_size)
                if saved:
                    shutil.copy(saved[-1], bundle)
            except LaunchError as error:
                raise click.ClickException(str(error)) from error
            finally:
                session.discard()

        run(first, "with empty caches", replace(requests, save_caches=warm_up is not None))
        if not runs[0].compiles:
            raise click.ClickException("nothing was compiled, so there is nothing to find in a cache")
        run(first, "with the caches of the first run")
        if warm_up is not None:
            if not bundle.exists():
                raise click.ClickException("torch has nothing to save: no cache stores what this program compiles")
            run(Path(root, "third"), "with the bundle and empty caches", replace(requests, load_caches=True))
            try:
                replace_content(warm_up, bundle.read_bytes())
            except OSError as error:
                raise OutputError(f"cannot write {warm_up}: {error.strerror}") from error
    say("")
    size = warm_up.stat().st_size if warm_up else None
    start = cold_start(program, runs, records[1], str(warm_up) if warm_up else None, size)
    if output is None:
        CACHES.write(format_, start, sys.stderr)
        return
    with report_stream(output) as stream:
        CACHES.write(format_, start, stream)
