"""breakscan: where torch.compile breaks, recompiles or falls back to eager, why, and what to write instead."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from breakscan.api import Recording, Report, explain, record

__version__ = "0.1.0"
__all__ = ["Recording", "Report", "__version__", "explain", "record"]


def __getattr__(name: str) -> "Any":
    """Loads the Python API on first use: the command line does not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("breakscan.api"), name)


class _Package(type(sys)):  # type: ignore[misc]
    """``breakscan.record`` and ``breakscan.explain`` are functions, also once the packages of the same names are
    imported: the import system would bind these."""

    def __setattr__(self, name: str, value: "Any") -> None:
        if name not in __all__ or not isinstance(value, type(sys)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
