"""What reports say of the changes from one survey to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breakscan.model.words import counted, listed
from breakscan.report.survey.words import KIND_WORDS, cause_name
from breakscan.survey.comparison import ChangeGroup, EndingGroup, SurveyComparison
from breakscan.survey.unit_row import UnitRow

GROUP_COLUMNS = ("", "what", "units", "which", "where")


def what_changed(group: ChangeGroup) -> str:
    """``BRK401: breaks 0 → 1``, ``ok → failed``: the numbers are of all its units."""
    if isinstance(group, EndingGroup):
        return f"{group.before} → {group.after}"
    before, after = (sum(counts) for counts in zip(*((one.before, one.after) for one in group.changes), strict=True))
    return f"{cause_name(group.cause)}: {KIND_WORDS[group.cause.kind]} {before} → {after}"


def which_units(units: Sequence[UnitRow]) -> str:
    """``zoo:small (eval eager cpu)``; ``80 units: albert, bert and 38 more names``."""
    if len(units) == 1:
        conditions = f" ({' '.join(units[0].conditions)})" if units[0].conditions else ""
        return f"{units[0].name}{conditions}"
    return f"{counted(len(units), 'unit')}: {listed([unit.name for unit in units], 'name', most=4)}"


def where_changed(group: ChangeGroup) -> str:
    """The functions, or the last that the units said."""
    if isinstance(group, EndingGroup):
        return group.said
    places = ((one.function, one.path) for one in group.changes)
    return listed([" ".join(filter(None, (name, path and f"({path})"))) for name, path in places], "function")


def group_lines(group: ChangeGroup) -> Iterator[str]:
    """A line, and another one that says where."""
    yield f"{group.direction.value}: {what_changed(group)} in {which_units(group.units)}"
    if where := where_changed(group):
        yield f"    {where}"


def group_cells(group: ChangeGroup) -> tuple[str, ...]:
    """The cells of a group."""
    names = listed([unit.name for unit in group.units], "name", most=4)
    return group.direction.value, what_changed(group), str(len(group.units)), names, where_changed(group)


def versions_words(found: SurveyComparison) -> list[str]:
    """``torch 2.12.0 → 2.13.0``, for all that is not the same."""
    pairs = {(one.before.torch, one.after.torch) for one in found.changes}
    return [f"torch {was or 'none'} → {now or 'none'}" for was, now in sorted(pairs, key=str) if was != now]


def comparison_summary(found: SurveyComparison) -> str:
    """``3 units worse, 5 changed otherwise, 40 as before``."""
    worse = sum(change.is_regression for change in found.changes)
    parts = [f"{counted(worse, 'unit')} worse", f"{len(found.changes) - worse} changed otherwise"]
    parts.append(f"{found.unchanged} as before")
    if found.only_before:
        parts.append(f"{len(found.only_before)} only before")
    if found.only_after:
        parts.append(f"{len(found.only_after)} only after")
    return ", ".join(parts)
