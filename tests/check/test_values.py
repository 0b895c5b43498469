"""Values decide, not names."""

from __future__ import annotations

import textwrap

from breakscan.model.findings import Confidence
from breakscan.report.findings import conditions_in_words


def body(source: str, signature: str = "self, x") -> str:
    return f"class Net(nn.Module):\n    def forward({signature}):\n" + textwrap.indent(textwrap.dedent(source), " " * 8)


def test_shapes_types_and_devices_are_no_tensors(marked) -> None:
    marked(
        body("""
            if x.shape[0] > 2 and x.dim() == 3 and x.numel() and x.size(-1) > x.shape[-1] // 2:
                x = x + 1
            if x.is_floating_point() or x.is_cuda or x.requires_grad or x.device.type == "cpu" or len(x) > 3:
                x = x + 1
            b, t = x.size()
            if b * t > 10:
                x = x + 1
            if self.training and x is not None and isinstance(x, torch.Tensor):
                x = x + 1
            return x
        """)
    )


def test_values_flow_through_assignments_arithmetic_and_containers(marked) -> None:
    marked(
        body("""
            total = (x * 2).sum() - 1
            parts = [total, 3]
            first, second = parts
            if first > 0:  # ! BRK101
                x = x + 1
            if second > 0:
                x = x + 1
            named = {"total": total, "count": 3}
            if named["total"] > 0:  # ! BRK101
                x = x + 1
            if named["count"] > 0:
                x = x + 1
            for chunk in x.chunk(2):
                if chunk.mean() > 0:  # ! BRK101
                    x = x + 1
            return x
        """)
    )


def test_a_name_that_is_bound_anew_is_what_it_is_bound_to(marked) -> None:
    marked(
        body("""
            value = x.sum()
            value = x.shape[0]
            if value > 3:
                x = x + 1
            return x
        """)
    )


def test_what_a_function_returns_and_is_given(marked) -> None:
    marked("""
        def size_and_sum(t):
            return t.shape[0], t.sum()

        class Net(nn.Module):
            def forward(self, x):
                size, total = size_and_sum(x)
                if size > 3:
                    x = x + 1
                if total > 3:  # ! BRK101
                    x = x + 1
                return x
    """)


def test_attributes_of_a_module_come_from_its_init(marked) -> None:
    marked("""
        class Net(nn.Module):
            def __init__(self, width: int, gate=True):
                super().__init__()
                self.width = width
                self.gate = gate
                self.register_buffer("scale", torch.ones(()))
                self.bias = nn.Parameter(torch.zeros(width))
                self.linear = nn.Linear(width, width)

            def forward(self, x):
                if self.width > 3 and self.gate:
                    x = x + 1
                if self.scale > 1:  # ! BRK101
                    x = x * self.scale
                if self.bias.abs().max() > 1:  # ! BRK101
                    x = x + self.bias
                if self.linear(x).mean() > 0:  # ! BRK101
                    x = x + 1
                return x
    """)


def test_none_tests_narrow(marked) -> None:
    marked("""
        def mix(x: torch.Tensor, mask: torch.Tensor | None = None):
            if mask is None:
                return x
            return x * mask

        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                return mix(x)
    """)


def test_an_optional_input_makes_a_finding_conditional(check) -> None:
    [finding] = check(
        body(
            """
            if mask is not None:
                if mask.all():
                    x = x + 1
            return x
            """,
            "self, x, mask: torch.Tensor | None = None",
        )
    ).findings
    assert finding.confidence is Confidence.CONDITIONAL
    assert conditions_in_words(finding.conditions) == "`mask` is given"


def test_a_dtype_test_makes_a_finding_conditional(check) -> None:
    [finding] = check(
        body("""
            if x.dtype == torch.float16 and torch.isinf(x).any():
                x = x.clamp(-1, 1)
            return x
        """)
    ).findings
    assert finding.confidence is Confidence.CONDITIONAL
    assert conditions_in_words(finding.conditions) == "`x.dtype == torch.float16`"


def test_a_flag_that_is_off_by_default_makes_a_finding_conditional(check) -> None:
    [finding] = check(body("if verbose:\n    print(x)\nreturn x", "self, x, verbose=False")).findings
    assert conditions_in_words(finding.conditions) == "`verbose` is on"


def test_confidence_tells_proof_from_assumption(check) -> None:
    source = """
        class Net(nn.Module):
            def forward(self, x, y: torch.Tensor):
                a = x.sum().item()
                return a + y.sum().item()
    """
    assumed, proved = check(source).findings
    assert (assumed.confidence, proved.confidence) == (Confidence.LIKELY, Confidence.CERTAIN)


def test_unknown_is_no_finding(marked) -> None:
    marked("""
        from elsewhere import thing, make

        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                if thing(x) > 3 or make().ready:
                    x = x + 1
                return x
    """)


def test_a_guess_is_shown_only_when_asked_for(check) -> None:
    source = """
        from elsewhere import thing

        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                if thing(x).sum() > 3:
                    x = x + 1
                return x
    """
    assert check(source).findings == ()
    [finding] = check(source, confidence=Confidence.POSSIBLE).findings
    assert (finding.rule, finding.confidence) == ("BRK101", Confidence.POSSIBLE)


def test_a_module_of_any_class_may_return_anything(marked) -> None:
    marked("""
        class Net(nn.Module):
            def __init__(self, encoder: nn.Module):
                super().__init__()
                self.encoder = encoder

            def forward(self, x: torch.Tensor):
                features, sizes = self.encoder(x)
                return F.interpolate(features, size=sizes[0])
    """)


def test_a_condition_is_said_without_two_negations(check) -> None:
    [finding] = check(
        body("""
            if x.dtype != torch.float16:
                return x
            if torch.isinf(x).any():
                x = x.clamp(-1, 1)
            return x
        """)
    ).findings
    assert conditions_in_words(finding.conditions) == "`x.dtype == torch.float16`"


def test_the_targeted_version_decides(check) -> None:
    source = body("y = x * random.random()\nreturn y * random.choice([1, 2])").replace(
        "class", "import random\nclass", 1
    )
    assert [f.site.line for f in check(source, target_torch="2.13").findings] == [7, 8]
    assert [f.site.line for f in check(source, target_torch="2.15").findings] == [8]


def test_a_literal_decides_the_tests_of_what_it_is_passed_to(marked) -> None:
    marked(
        """
        def reduce(x, how="mean"):
            if how == "check":
                if x.sum() > 0:
                    return x
            elif how in ("flag", "mark") and x.max() > 1:
                return x
            return x.mean()

        class Net(nn.Module):
            def forward(self, x):
                return reduce(x, "sum") + reduce(x, how="sum")
        """
    )


def test_what_the_default_rules_out_is_conditional(check) -> None:
    source = body('if how == "check" and x.sum() > 0:\n    x = -x\nreturn x', 'self, x, how: str = "mean"')
    (finding,) = check(source).findings
    assert (finding.confidence, conditions_in_words(finding.conditions)) == (Confidence.CONDITIONAL, "`how == 'check'`")


def test_a_class_test_narrows(marked, check) -> None:
    marked(
        """
        class Net(nn.Module):
            def forward(self, x: torch.Tensor, sigma: torch.Tensor | float):
                if isinstance(sigma, (int, float)):
                    x = x * float(sigma)
                return x
        """
    )
    source = """
    def scale(x: torch.Tensor, size):
        if isinstance(size, torch.Tensor) and size > 1:
            x = -x
        return x
    """
    (finding,) = check(source, regions="all").findings
    assert conditions_in_words(finding.conditions) == "`size` is a tensor"


def test_what_became_a_tensor_on_one_path_is_one_on_that_path(check) -> None:
    source = """
    def pick(x: torch.Tensor, sizes):
        if isinstance(sizes, torch.Tensor):
            sizes = sizes.detach() + 1
        if sizes > 2:
            x = -x
        return x
    """
    (finding,) = check(source, regions="all").findings
    assert (finding.confidence, conditions_in_words(finding.conditions)) == (
        Confidence.CONDITIONAL,
        "`sizes` is a tensor",
    )


def test_one_of_several_functions(marked) -> None:
    marked(
        """
        class Net(nn.Module):
            def __init__(self, easy):
                super().__init__()
                self.pick = self.low if easy else self.high

            def low(self, x):
                return x < 0

            def high(self, x):
                return x > 0

            def forward(self, x):
                keep = self.pick(x)
                return x[keep]  # ! BRK303
        """
    )


def test_an_attribute_that_init_leaves_empty_may_be_set_later(marked) -> None:
    marked(
        """
        class Net(nn.Module):
            def __init__(self, low=None):
                super().__init__()
                self.low = low
                self.cache = None

            def fill(self, x: torch.Tensor):
                self.cache = x.sum()

            def forward(self, x):
                if self.low is not None:
                    x = x[x > self.low]  # ! BRK303
                if self.cache is not None and self.cache > 0:  # ! BRK101
                    x = -x
                return x
        """
    )


def test_a_mask_by_how_it_is_used_or_named(marked) -> None:
    marked(
        body("kept = x[keep]  # ! BRK303\nrest = x[~keep]  # ! BRK303\nreturn kept, rest", "self, x, keep")
        + "\n"
        + body("return x[mask]  # ! BRK303", "self, x, mask").replace("Net", "Other")
    )


def test_a_single_number_out_of_one_dimension(marked) -> None:
    marked(
        body("""
            steps = torch.arange(4)
            at = (steps == 2).nonzero(as_tuple=True)[0][0]  # ! BRK301
            return x[at + 1] + x[steps[1:]].sum()  # ! BRK210
        """)
    )


def test_a_test_of_a_number_that_random_drew(marked) -> None:
    marked(
        "import random\n"
        + body("""
            depth = random.randint(0, 3)
            if depth > 2:  # ! BRK481
                x = x + 1
            return x + depth
        """)
    )


def test_arithmetic_with_a_number_that_random_drew(marked) -> None:
    marked(
        "import random\n"
        + body("""
            depth = random.randint(0, 3) + 1  # ! BRK481
            return x + depth
        """)
    )


def test_integers_that_forward_is_given(marked) -> None:
    marked(
        """
        class Bias(nn.Module):
            def forward(self, i, j):
                return torch.arange(j - i, j) if j > i else torch.arange(j)
        """
    )


def test_a_report_of_something_seldom_is_conditional_on_its_test(check) -> None:
    source = body("""
        if len(self.blocks) > 3:
            logger.warning("deep")
        logger.warning("always")
        return x
    """)
    found = check("import logging\nlogger = logging.getLogger(__name__)\n" + source).findings
    assert [(f.confidence, conditions_in_words(f.conditions)) for f in found] == [
        (Confidence.CONDITIONAL, "`len(self.blocks) > 3`"),
        (Confidence.CERTAIN, None),
    ]


def test_what_only_leads_to_an_exception_is_no_finding(marked) -> None:
    marked(
        body("""
            if x.dim() != 2:
                seen = x.unique()
                raise ValueError(f"{seen.tolist()}")
            return x
        """)
    )


def test_iterating_a_dictionary_gives_its_keys(marked) -> None:
    marked(
        body(
            """
            for key in parts:
                if key == 3:
                    x = x + parts[key]
            return x
            """,
            "self, x, parts: dict[int, torch.Tensor]",
        )
    )
