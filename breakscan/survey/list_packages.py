"""Prints the version of this Python and of its packages: ``python -m breakscan.survey.list_packages``."""

from __future__ import annotations

import json
import platform
from importlib.metadata import distributions


def packages() -> dict[str, str]:
    """The versions of the installed packages, by their names in small letters; of one that is there twice, the first,
    which is imported."""
    found: dict[str, str] = {}
    for one in distributions():
        name = one.metadata["Name"]
        if name:
            found.setdefault(name.lower(), one.version)
    return found


if __name__ == "__main__":
    print(json.dumps([platform.python_version(), packages()]))
