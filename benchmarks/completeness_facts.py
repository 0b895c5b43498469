from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    TOLD = "yes"
    PARTLY = "partly"
    NOT_TOLD = "no"


@dataclass(frozen=True)
class Fact:
    pattern: str


FACTS = {}


def judge(*a):
    return Verdict.NOT_TOLD
