"""The versions of torch that breakscan supports.  This is the one place that names them.
``tools/sync_torch_versions.py`` writes them into ``pyproject.toml``, the README and the documentation;
``tests/test_torch_versions.py`` fails where one of these says something else."""

import re

SUPPORTED = ("2.11", "2.12", "2.13", "2.14", "2.15")  # the minor versions that were tried, oldest first
PINNED = "2.13.0"  # the version that CI and the development environment install, and that the rule documents describe
NESTED = "+nested"  # ends the name of a version that is meant with ``torch._dynamo.config.nested_graph_breaks``
NESTED_FROM = "2.13"  # the first version whose verdicts with that setting are recorded
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?!\d)", re.ASCII)


def version_key(version: str) -> tuple[int, int]:
    """``(2, 13)`` of ``2.13.0+cpu``.  Raises ValueError if it is no version."""
    match = _VERSION.match(version)
    if not match:
        raise ValueError(f"{version!r} is not a torch version such as 2.13")
    return int(match[1]), int(match[2])


def is_version(version: str) -> bool:
    """True if this is a version such as ``2.13.0+cpu``."""
    return _VERSION.match(version) is not None


def minor_version(version: str) -> str:
    """``2.13`` of ``2.13.0+cpu``.  Raises ValueError if it is no version."""
    return ".".join(map(str, version_key(version)))


def target_version(version: str) -> str:
    """``2.13`` of ``2.13.0+cpu``, and ``2.13+nested`` of ``2.13.0+nested``."""
    return minor_version(version) + (NESTED if version.endswith(NESTED) else "")


def has_compiler(version: str) -> bool:
    """True if this version of torch has ``torch.compile``."""
    return version_key(version) >= (2, 0)


def is_too_old(version: str) -> bool:
    """True if the version is older than all supported ones."""
    return version_key(version) < version_key(SUPPORTED[0])


def is_too_new(version: str) -> bool:
    """True if the version is newer than all supported ones."""
    return version_key(version) > version_key(SUPPORTED[-1])


def supported_range() -> str:
    """``2.11 to 2.15``."""
    return f"{SUPPORTED[0]} to {SUPPORTED[-1]}"
