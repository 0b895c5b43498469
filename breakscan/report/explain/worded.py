"""The values of an explanation that JSON and HTML hold as words, and rules, which they hold as ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, get_args

from breakscan.explain.compiled import ConstantReason
from breakscan.explain.explanation import FunctionPart, RankEnding, RankShare
from breakscan.explain.notice import AnyNotice
from breakscan.explain.reasons import Reason
from breakscan.record.parsers.graphs import AutogradChange
from breakscan.record.parsers.guards import Demand, TensorDemand, Within
from breakscan.report.explain.autograd_words import change_words
from breakscan.report.explain.guard_words import demand_words, value_words
from breakscan.report.explain.notice_words import notice_words
from breakscan.report.explain.rank_words import ending_words, share_words
from breakscan.report.explain.reason_words import constant_words, reason_words
from breakscan.report.explain.words import part_words
from breakscan.rulebook.document import Rule

WORDS: Mapping[type, Callable[[Any], str]] = {
    **dict.fromkeys(get_args(Reason), reason_words),
    **dict.fromkeys(get_args(RankShare), share_words),
    ConstantReason: constant_words,
    AutogradChange: change_words,
    RankEnding: ending_words,
    **dict.fromkeys(get_args(AnyNotice), notice_words),
    Demand: demand_words,
    TensorDemand: demand_words,
    Within: value_words,
    FunctionPart: part_words,
    Rule: attrgetter("id"),
}
"""By the class of the value."""
