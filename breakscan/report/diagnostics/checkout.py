"""Where the checkout lies that a report is about: services resolve paths against it, whatever the working directory."""

from __future__ import annotations

import os
from pathlib import Path

from breakscan.source.paths import relative_to

_VARIABLES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""What GitHub Actions and GitLab call the folder of the checkout."""


def checkout_root() -> str:
    """The folder of the checkout in GitHub Actions and GitLab, else the root of the git repository, else the working
    directory; absolute."""
    for variable in _VARIABLES:
        if folder := os.environ.get(variable):
            return os.path.abspath(folder)
    here = Path.cwd()
    return str(next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here))


def path_in_checkout(path: str, root: str) -> str:
    """A path relative to the root, with slashes; as it is where it lies outside."""
    relative = relative_to(os.path.abspath(path), root)
    return path if relative is None else relative
