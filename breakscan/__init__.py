"""breakscan: where torch.compile breaks, recompiles or falls back to eager, why, and what to write instead."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from breakscan.api import Recording, Report, explain, record, watch

__version__ = "0.1.0"
__all__ = ["Recording", "Report", "__version__", "explain", "record", "watch"]


def __getattr__(name: str) -> "Any":
    """Loads the Python API on first use: the command line does not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("breakscan.api"), name)
