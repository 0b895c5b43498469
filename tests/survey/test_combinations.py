"""Combinations of choices."""

from __future__ import annotations

from itertools import product

import pytest

from breakscan.survey.combinations import combinations


@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (3, 1, 2), (0, 2)])
def test_all_of_them_once_and_the_likeliest_first(sizes: tuple[int, ...]) -> None:
    found = list(combinations(sizes))
    assert sorted(found) == list(product(*map(range, sizes)))
    assert [sum(one) for one in found] == sorted(sum(one) for one in found)
