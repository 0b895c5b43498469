"""``breakscan`` and ``python -m breakscan``."""

import atexit
import contextlib
import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status: 2 if work was not done, 74 if its report was not written."""
    import click

    from breakscan.cli.exit_status import INTERRUPTED, OutputError, show_failure, standard_output
    from breakscan.cli.main import cli

    atexit.register(gc.freeze)  # before Python exits, its collector would walk all trees that are left
    try:
        with standard_output():
            status = cli.main(arguments, prog_name="breakscan", standalone_mode=False)
    except click.ClickException as error:
        with contextlib.suppress(OSError):  # standard error may be full, too
            error.show()
        return error.exit_code if isinstance(error, click.UsageError | OutputError) else 2
    except click.Abort:
        return INTERRUPTED
    except Exception as error:
        return show_failure(error)
    return status if isinstance(status, int) else 0


if __name__ == "__main__":
    # `python -m` puts the working directory first: a click.py or random.py there would be run.
    if sys.path and not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    sys.exit(main())
