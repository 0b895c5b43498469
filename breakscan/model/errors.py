"""Errors that end a command with one line."""

from __future__ import annotations


class InputError(Exception):
    """An input cannot be used, or something that breakscan needs is missing.  The text says why, and what to do: the
    command line prints it and exits with 2."""
