"""Why a tool cannot answer."""

from __future__ import annotations


class ToolFailure(Exception):
    """A call that cannot be answered.  Says why, and what to do."""
