"""Facts about torch's functions that running them on a CPU does not show, kept by hand, each with the reason.

What can be measured does not belong here: ask ``operators.py``."""

from collections.abc import Mapping

DISTINCTIVE_METHODS = frozenset(
    "unsqueeze masked_fill masked_fill_ masked_select masked_scatter permute contiguous expand expand_as detach "
    "scatter scatter_ scatter_add scatter_add_ gather index_select nonzero softmax log_softmax sigmoid tanh relu "
    "unbind repeat_interleave new_zeros new_ones new_full new_tensor type_as bmm matmul logsumexp cumsum clamp "
    "clamp_ isnan isinf isfinite topk argmax argmin amax amin neg_ mul_ div_ add_ sub_ zero_ unique_consecutive "
    "requires_grad_ view_as narrow tril triu roll flatten_parameters item to_dense abs_ sqrt rsqrt "
    "floor ceil numel ndimension new_empty bernoulli_ normal_ uniform_ fill_ copy_ index_fill index_add_ any".split()
)
"""Methods that hardly anything but a tensor has.  A judgement about other libraries."""
SUGGESTIVE_METHODS = frozenset(
    "sum mean max min all std var prod unique tolist reshape view squeeze long bool type".split()
)
"""Methods that arrays and series have too: on an unknown value they only suggest a tensor.  A judgement about other
libraries."""
TELLING_ATTRIBUTES = frozenset(
    "shape dtype unsqueeze squeeze view permute transpose contiguous reshape expand size dim ndim numel masked_fill "
    "new_zeros new_ones new_tensor new_full type_as detach requires_grad is_floating_point flatten "
    "unbind softmax sigmoid float long bool half masked_select gather scatter argmax argmin nonzero cumsum "
    "repeat_interleave matmul bmm clamp mean abs sqrt view_as expand_as is_cuda T mT any all sum max min".split()
)
"""Attributes and methods that tensors have and containers, strings, modules and configurations do not.  A judgement
about other libraries."""
COMMON_METHODS = frozenset("add apply_ copy count float format index int map_ pop remove split storage to type".split())
"""Methods of tensors that other objects have too.  A judgement about other libraries."""
TAKES_TENSOR_FIRST = frozenset(
    "abs all any argmax argmin argsort bmm clamp conv1d conv2d cumsum diff dropout einsum_ exp flatten gather gelu "
    "interpolate isfinite isinf isnan layer_norm linear log log_softmax masked_fill masked_select matmul max mean min "
    "mm norm normalize ones_like zeros_like empty_like full_like rand_like randn_like pad permute pow prod relu "
    "repeat_interleave reshape round sigmoid sign silu sin softmax sort split sqrt squeeze std sum tanh topk transpose "
    "tril triu unbind unique unsqueeze var where cross_entropy mse_loss is_tensor nonzero cos square".split()
)
"""Last parts of the names of functions whose first argument is taken for a tensor.  The interpreter also meets wrappers
of these names that the program defines."""
RETURN_THE_MODULE = frozenset("to cuda cpu half float double bfloat16 eval train requires_grad_ share_memory".split())
"""Methods of ``nn.Module`` that return the module.  Modules are not operators, and are not measured."""
WAITS_FOR_THE_DEVICE = frozenset({"cpu", "cuda", "is_nonzero", "item", "numpy", "to", "tolist", "__array__"})
"""Methods that may copy from the device, which a CPU does not show."""
COPIED_BETWEEN_DEVICES = frozenset({"cpu", "cuda"})
"""Methods that change neither dtype nor shape.  Not all of them run on a CPU."""
READS_THE_ONLY_ELEMENT = frozenset({"is_nonzero"})
"""Functions for a tensor of one element, which torch's samples lack, and which the calls that are made do not have."""
COMPUTED_WITH_NUMBERS = frozenset(
    "add sub mul div floor_divide true_divide remainder fmod pow sqrt square abs neg floor ceil".split()
)
"""Functions that Dynamo computes at compile time where they are given Python numbers alone."""
DIVIDES = frozenset({"div", "divide", "floor_divide", "fmod", "remainder"})
"""Functions that raise for integers where the divisor is zero, which torch's samples leave out."""
FIRST_SIZE_BY_DATA = frozenset({"argwhere", "bincount", "masked_select", "nonzero", "unique", "unique_consecutive"})
"""Functions whose first size depends on what is in the tensor, by torch's tag ``dynamic_output_shape`` of their
operators.  Running them shows sizes, not what they depend on."""
FIND_INDICES = frozenset({"numpy.where"})
"""Functions that return indices if a condition is all that they are given.  NumPy's functions are measured with all
arguments."""
GIVES_A_TENSOR = frozenset({"torch.distributions.kl_divergence", "torch.distributions.kl.kl_divergence"})
"""Functions written in Python without annotations, which are no operators."""
COUNT_LAST = frozenset({"unique", "unique_consecutive"})
"""Functions whose last result, with ``return_counts``, has one dimension.  Shapes are measured of single results."""
RECURRENT_MODULES = frozenset({"torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"})
"""Modules at which a function runs eager (``VariableBuilder`` of torch 2.13).  Modules are not measured."""
CHANGES_MORE_THAN_IT_RETURNS = frozenset(
    "backward compile enable_grad load manual_seed no_grad register_hook retain_grad save seed set_default_dtype "
    "set_grad_enabled set_num_threads set_printoptions set_rng_state share_memory use_deterministic_algorithms".split()
)
"""Functions that change the state of torch, of the process, or of a file, none of which is a tensor."""
SETS_THE_GENERATOR = frozenset({"manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state"})
"""Functions that decide which random numbers are drawn next.  They take no tensor that is changed, or none at all."""
SHOWS_THE_MEMORY = frozenset({"data_ptr", "set_", "storage", "untyped_storage"})
"""Methods for the memory of a tensor.  What is done with an address, or through a storage, no call of them shows."""
CONVERTS_WHERE_GIVEN = frozenset({"type"})
"""Methods that convert a tensor to the dtype that they are given, and without one return a text, as measured."""
TAKES_FUNCTIONS_OR_FLAGS = frozenset({"_assert", "_assert_async", "_check", "cond", "while_loop"})
"""Functions that call what they are given, or raise for a flag that they are given."""
WRITING_ARGUMENTS = frozenset({"out", "inplace"})
"""Arguments by which a call writes into a tensor that it is given.  The operators are measured without them."""
INPLACE_AT = {
    **dict.fromkeys(("hardsigmoid", "hardswish", "mish", "relu", "relu6", "selu", "silu"), 1),
    **dict.fromkeys(("celu", "elu", "leaky_relu"), 2),
    **dict.fromkeys(("alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"), 3),
    **dict.fromkeys(("hardtanh", "threshold"), 3),
    "rrelu": 4,
}
"""The position of ``inplace`` in functions of ``torch.nn.functional``.  The stubs have it, the generated tables do not.
``tests/rulebook/torch_facts/test_not_measured.py`` compares it with their signatures."""
FILLED_WITH_NUMBERS = frozenset({"tensor", "as_tensor", "full", "arange"})
"""Functions whose result has the dtype class of the Python numbers that they are given.  Their samples hold no
tensor."""
OF_THE_DEFAULT_DTYPE = frozenset("zeros ones empty rand randn eye linspace range scalar_tensor".split())
"""Functions whose result has the default dtype.  Their samples hold no tensor."""
DIMENSIONS_OF_NEW = {
    **dict.fromkeys(("arange", "linspace", "logspace", "randperm", "range", "hann_window", "bincount"), 1),
    "eye": 2,
    "scalar_tensor": 0,
}
"""The number of dimensions of the results of functions that get numbers.  ``bincount`` refuses the floats that are
measured."""
ONLY_LOOKED_AT = frozenset({"shape", "dtype", "device", "ndim"})
"""Attributes that say what a tensor is like and give no other tensor."""
ONLY_ANSWERS = frozenset(
    "torch.Size torch.can_cast torch.compiler.is_compiling torch.compiler.is_dynamo_compiling torch.cuda.is_available "
    "torch.device torch.finfo torch.get_default_dtype torch.iinfo torch.is_autocast_enabled torch.is_grad_enabled "
    "torch.is_inference_mode_enabled torch.is_storage torch.is_tensor torch.jit.is_scripting torch.jit.is_tracing "
    "torch.promote_types torch.from_numpy torch.result_type".split()
)
"""Functions that return a value and do nothing else, but that are no operators of tensors, and are not measured.
``tests/rulebook/torch_facts/test_not_measured.py`` tries them."""

COUNTS_DIMENSIONS = frozenset({"dim", "ndim", "ndimension"})
"""Methods that return the number of dimensions of a tensor."""

TRUE_WHILE_TRACING = ("is_compiling", "is_dynamo_compiling", "is_torchdynamo_compiling", "is_torch_compiling")
"""Functions of ``torch``, and those of packages that return the same, which are True while Dynamo traces."""
ONLY_WHILE_DYNAMO_TRACES = ("is_dynamo_compiling", "is_torchdynamo_compiling")
"""Those of them that torch answers with False in an export without Dynamo; packages differ."""
FALSE_WHILE_TRACING = ("is_scripting", "is_exporting", "is_in_onnx_export", "is_torch_fx_proxy", "is_jit_tracing")
"""The same for those that are False. ``torch.jit.is_tracing`` is one too, but packages have others by that name.
While something is exported, ``torch.compiler.is_exporting`` is True."""


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
