"""The rule of an event or of a recorded break."""

from dataclasses import replace

from breakscan.model.findings import Place
from breakscan.rulebook.document import ArgumentPattern, EventPattern, Rule
from breakscan.rulebook.events import Argument, Event, EventKind
from breakscan.rulebook.library import load_library
from breakscan.rulebook.matching import RuleIndex, explaining_rule

CALL = Event(
    EventKind.CALL,
    1,
    1,
    1,
    9,
    callee="torch.where",
    operands=frozenset({"tensor", "tensor:bool"}),
    arguments=(Argument(0, None, frozenset({"tensor"})), Argument(None, "out", frozenset({"none"}))),
)


def matches(event: Event, pattern: EventPattern) -> bool:
    """True if a rule with this pattern alone is the rule for an event."""
    rule = replace(next(iter(load_library())), match=(pattern,))
    return RuleIndex([rule]).matching(event) != []


def test_every_demand_must_hold() -> None:
    pattern = EventPattern(EventKind.CALL, callee=("torch.where",), operand=("tensor:bool",))
    assert matches(CALL, pattern)
    assert not matches(CALL, replace(pattern, callee=("torch.were",)))
    assert not matches(CALL, replace(pattern, operand=("number",)))
    assert not matches(CALL, replace(pattern, event=EventKind.CONVERT))
    assert not matches(CALL, replace(pattern, place=(Place.LOOP,)))


def test_a_star_stands_for_any_rest() -> None:
    assert matches(CALL, EventPattern(EventKind.CALL, callee=("torch.*",)))
    assert not matches(CALL, EventPattern(EventKind.CALL, callee=("math.*",)))


def test_arguments_by_index_or_name() -> None:
    def demands(index: int | None, name: str | None, *states: str) -> bool:
        return matches(CALL, EventPattern(EventKind.CALL, arguments=(ArgumentPattern(index, name, states),)))

    assert demands(0, "condition", "tensor")
    assert demands(2, "out", "none")
    assert demands(1, "input", "absent")
    assert not demands(1, "out", "absent")
    assert not demands(1, "input", "present")
    assert demands(1, "input", "tensor", "absent")
    assert demands(0, "condition", "number", "tensor")
    assert not demands(0, "condition", "number", "absent")


def test_code_outside_regions_matches_only_rules_for_anywhere() -> None:
    outside = replace(CALL, in_region=False)
    assert not matches(outside, EventPattern(EventKind.CALL))
    assert matches(outside, EventPattern(EventKind.CALL, anywhere=True))


def test_the_index_wants_what_a_rule_could_match() -> None:
    index = RuleIndex(rule for rule in load_library() if rule.id in ("BRK302", "BRK402"))
    assert index.wants(EventKind.CALL, "torch.where")
    assert index.wants(EventKind.CALL, "logging.Logger.warning_once")
    assert not index.wants(EventKind.CALL, "torch.sin")
    assert not index.wants(EventKind.BRANCH, None)


def explain(gb: str, text: str, form: str | None = None) -> Rule | None:
    return explaining_rule(load_library(), gb=gb, text=text, form=form)


def test_the_form_at_the_site_tells_branches_apart() -> None:
    text = "Data-dependent branching"
    assert getattr(explain("GB0170", text, "if"), "id", None) == "BRK101"
    assert getattr(explain("GB0170", text, "while"), "id", None) == "BRK102"
    assert getattr(explain("GB0170", text, "guard"), "id", None) == "BRK108"


def test_the_text_tells_skipped_functions_apart() -> None:
    text = "Attempted to call function marked as skipped\nmodule: {}, qualname: {}, skip reason"
    assert getattr(explain("GB0007", text.format("_warnings", "warn")), "id", None) == "BRK403"
    assert getattr(explain("GB0007", text.format("made_up", "thing")), "id", None) == "BRK420"


def test_a_sort_that_compares_tuples_is_a_sort() -> None:
    text = "Attempted to compare\n{}"
    assert getattr(explain("GB6622", text.format("scored.sort()")), "id", None) == "BRK209"
    assert getattr(explain("GB6622", text.format("first = sorted(scored)[0]")), "id", None) == "BRK209"
    assert getattr(explain("GB6622", text.format("if (a, 1) == (b, 1):")), "id", None) == "BRK220"


def test_an_unknown_break_has_no_rule() -> None:
    assert explain("GB9999", "something new") is None
