"""The text of one problem for an issue tracker."""

from dataclasses import replace

import explain_results as made
import pytest

from breakscan.report.explain.issue import issue_text

EXPLANATION = made.explanation()
IN_LIBRARY = made.explanation(breaks=(replace(made.IN_LIBRARY, gb_id="GB0170"),))


def test_a_break_in_a_library_has_its_line_versions_and_page() -> None:
    text = issue_text(IN_LIBRARY, "lib/attention.py:88")
    assert text.startswith("# torch.compile: graph break in `attend`")
    for part in ("lib", f"torch {EXPLANATION.torch}", f"Python {EXPLANATION.python}", "attention.py:88"):
        assert part in text
    assert "[GB0170](https://" in text


def test_the_users_line_that_leads_there_and_ids_name_it_too() -> None:
    text = issue_text(IN_LIBRARY, "lib/attention.py:88")
    (problem,) = (one for one in IN_LIBRARY.problems if one.site == made.IN_LIBRARY.site)
    assert problem.users_line is not None
    assert issue_text(IN_LIBRARY, f"{problem.users_line.path}:{problem.users_line.line}") == text
    assert issue_text(IN_LIBRARY, "gb0170") == text


@pytest.mark.parametrize("where", ["model.py:9999", "BRK999"])
def test_what_names_nothing_is_answered_with_the_sites(where: str) -> None:
    with pytest.raises(ValueError, match=r"nothing is reported at .*: there is .*attention\.py:88"):
        issue_text(EXPLANATION, where)


def test_each_kind_of_problem_has_a_text() -> None:
    texts = [issue_text(EXPLANATION, where) for where in {f"{p.site.path}:{p.site.line}" for p in _problems()}]
    assert len(texts) > 3
    assert all("**What happens:** " in text and "**Why:** " in text for text in texts)


def _problems() -> list[made.Problem]:
    kinds = ("break", "failure", "recompiles", "function")
    return [one for one in EXPLANATION.problems if one.kind.value in kinds and one.cause is None]
