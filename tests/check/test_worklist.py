"""Late results reach the functions that were interpreted before: places, attributes and results."""

from collections.abc import Callable

from breakscan.model.findings import CheckResult, Verdict

_ALL = {"regions": "all"}


def test_a_place_reaches_functions_that_call_one_another(check: Callable[..., CheckResult]) -> None:
    source = """
        def map_dict(fn, tree: dict):
            for key, value in tree.items():
                map_any(fn, value)

        def map_any(fn, tree):
            if isinstance(tree, dict):
                return map_dict(fn, tree)
            elif isinstance(tree, torch.Tensor):
                return fn(tree)
            print(tree)

        def use(x: torch.Tensor):
            return map_any(torch.relu, x)
        """
    found = check(source, **_ALL).findings
    assert [(f.rule, f.verdict, f.via) for f in found if f.rule == "BRK401"] == [("BRK401", Verdict.EAGER, "map_dict")]
