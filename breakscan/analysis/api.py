"""What torch's functions, methods and attributes return: the generated table, and what stubs do not say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BOOL_RESULT = frozenset(
    "isnan isinf isfinite isposinf isneginf isreal isclose isin eq ne lt le gt ge equal_ greater greater_equal less "
    "less_equal not_equal logical_and logical_or logical_not logical_xor any all signbit bool".split()
)
INT_RESULT = frozenset(
    "argmax argmin argsort nonzero argwhere count_nonzero bincount searchsorted bucketize randint randint_like "
    "randperm tril_indices triu_indices one_hot long int short byte char multinomial".split()
)
FLOAT_RESULT = frozenset(
    "rand randn rand_like randn_like linspace logspace float half double bfloat16 mean std var sqrt rsqrt exp log log2 "
    "log10 log1p expm1 sin cos tan sinh cosh tanh sigmoid softmax log_softmax erf norm cdist linear gelu silu "
    "layer_norm batch_norm cross_entropy mse_loss l1_loss scaled_dot_product_attention dropout conv1d conv2d conv3d "
    "embedding normalize bernoulli normal eye hann_window softplus tanh_ atan2 atan asin acos".split()
)
REDUCTIONS = frozenset(
    "sum mean prod max min amax amin all any std var norm median nanmedian nanmean nansum argmax argmin logsumexp "
    "count_nonzero std_mean var_mean det trace dist dot vdot".split()
)
LOSSES = frozenset({"cross_entropy", "mse_loss", "l1_loss", "nll_loss", "binary_cross_entropy", "kl_div"})
DTYPE_CLASS = {
    **dict.fromkeys(("float", "float16", "float32", "float64", "half", "double", "bfloat16"), "float"),
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "uint8", "long", "short"), "int"),
    "bool": "bool",
}
TENSOR_TYPES = {
    "Tensor": None,
    "FloatTensor": "float",
    "HalfTensor": "float",
    "DoubleTensor": "float",
    "BFloat16Tensor": "float",
    "LongTensor": "int",
    "IntTensor": "int",
    "ShortTensor": "int",
    "ByteTensor": "int",
    "BoolTensor": "bool",
}
FACTORIES = frozenset({"tensor", "as_tensor", "from_numpy", "asarray", "frombuffer", "zeros", "ones", "full", "empty"})


@dataclass(frozen=True, slots=True)
class TorchApi:
    """Names by what they return: ``tensor``, ``tensors``, ``varies`` (either), ``size``, ``python`` or ``other``."""

    methods: dict[str, str]
    attributes: dict[str, str]
    functions: dict[str, str]
    modules: frozenset[str]
    modules_with_parameters: frozenset[str]


@cache
def load_api(version: str) -> TorchApi:
    """The facts of a version such as ``2.13``; those of the last table where it has none."""
    folder = Path(__file__).parent / "torch_api"
    path = folder / f"{version}.json"
    if not path.exists():
        path = sorted(folder.glob("*.json"))[-1]
    data = json.loads(path.read_text(encoding="utf-8"))
    functions = {f"torch.{name}": kind for kind, names in data["functions"].items() for name in names}
    functions |= {f"torch.nn.functional.{n}": kind for kind, names in data["functional"].items() for n in names}
    for namespace, names in data["namespaces"].items():
        functions |= {f"torch.{namespace}.{name}": "tensor" for name in names}
    for name in FACTORIES:
        functions[f"torch.{name}"] = "tensor"
    return TorchApi(
        methods={name: kind for kind, names in data["methods"].items() for name in names},
        attributes={name: kind for kind, names in data["attributes"].items() for name in names},
        functions=functions,
        modules=frozenset(f"torch.nn.{name}" for name in data["modules"]["all"]),
        modules_with_parameters=frozenset(f"torch.nn.{name}" for name in data["modules"]["with_parameters"]),
    )
