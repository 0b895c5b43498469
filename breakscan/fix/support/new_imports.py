"""What an edit changes by the modules that it imports."""

from __future__ import annotations

from dataclasses import replace

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Edit

_TORCH = differs("the file imports torch, which it did not before", Effect.RAISES, Effect.STATE)


def with_new_imports(context: RewriteContext, edit: Edit) -> Edit:
    """The edit, which also states that it imports torch into a file that could be imported without it."""
    if "torch" not in context.imports or context.imports_torch:
        return edit
    return replace(edit, differences=[*edit.differences, _TORCH])
