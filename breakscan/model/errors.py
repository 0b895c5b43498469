"""What ends a command with one line."""

from __future__ import annotations


class InputError(Exception):
    """What breakscan was given cannot be used, or what it needs is missing.  Says why, and what to do: the command line
    prints it, and exits with 2."""
