"""The stance of torch: ``torch._dynamo.eval_frame._stance``, which ``torch.compiler.set_stance`` sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from breakscan.record.records import DEFAULT_STANCE


@contextmanager
def known_stance() -> Iterator[bool]:
    """Yields False where this torch does not tell its stance."""
    from torch._dynamo import eval_frame

    yield isinstance(getattr(getattr(eval_frame, "_stance", None), "stance", None), str)


def current_stance() -> str:
    """The stance as ``set_stance`` names it; the default one where this torch does not tell."""
    from torch._dynamo import eval_frame

    return getattr(getattr(eval_frame, "_stance", None), "stance", DEFAULT_STANCE)
