"""What holds for all tests."""

import contextlib
import signal

# A shell that starts the tests in the background has them ignore Ctrl-C, and all programs that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)
