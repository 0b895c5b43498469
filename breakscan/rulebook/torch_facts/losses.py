"""Facts about losses that rewrites need: what they compute for zeros cannot be seen from samples with other values."""

from __future__ import annotations

from collections.abc import Mapping

ZERO_AT_ZERO = frozenset({"binary_cross_entropy", "huber_loss", "kl_div", "l1_loss", "mse_loss", "smooth_l1_loss"})
"""Losses of single elements that are zero, with a gradient that is no NaN, if both arguments are zero."""
WEIGHTED = "binary_cross_entropy_with_logits"
"""The loss of single elements that is zero only with a weight of zero."""
OF_CLASSES = frozenset({"cross_entropy", "nll_loss"})
"""Losses that leave out targets with the index ``ignore_index``."""
IGNORED_BY_DEFAULT = -100
"""The index of the targets that these leave out."""
OF_MODULES: Mapping[str, str] = {
    "torch.nn.BCELoss": "binary_cross_entropy",
    "torch.nn.BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "torch.nn.CrossEntropyLoss": "cross_entropy",
    "torch.nn.HuberLoss": "huber_loss",
    "torch.nn.KLDivLoss": "kl_div",
    "torch.nn.L1Loss": "l1_loss",
    "torch.nn.MSELoss": "mse_loss",
    "torch.nn.NLLLoss": "nll_loss",
    "torch.nn.SmoothL1Loss": "smooth_l1_loss",
}
"""The functions in ``torch.nn.functional`` that modules call."""
ELEMENTWISE_SETTINGS = frozenset({"beta", "delta", "log_target"})
"""Arguments that do not depend on the number of elements."""
