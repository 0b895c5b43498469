"""Prints the names that a callable gives: ``python -m breakscan.survey.list_names MODULE:CALLABLE``."""

from __future__ import annotations

import json
import sys

from breakscan.survey.model_program import load


def names(place: str) -> list[str]:
    """The names, such as those of the models of a library."""
    return list(map(str, load(place)()))


if __name__ == "__main__":
    print(json.dumps(names(sys.argv[1])))
