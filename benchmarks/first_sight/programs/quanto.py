"""Quantized tensors, modules and weights."""

from collections.abc import Callable
from typing import Any

import torch
from optimum import quanto

DISTRIBUTION, FOLDER = "optimum-quanto", "optimum/quanto"

X = torch.rand(4, 32)


def quantized(module, inputs, weights=quanto.qint8, activations=None, freeze=True):
    def build():
        net = torch.nn.Sequential(module())
        quanto.quantize(net, weights=weights, activations=activations)
        if activations is not None:
            with quanto.Calibration():
                net(*inputs)
        if freeze:
            quanto.freeze(net)
        return net, inputs

    return build


CALLS: dict[str, Callable[..., Any]] = {}
for label, weights in {
    "int8": quanto.qint8,
    "int4": quanto.qint4,
    "int2": quanto.qint2,
    "float8": quanto.qfloat8,
}.items():
    CALLS[f"linear {label}"] = quantized(lambda: torch.nn.Linear(32, 32), (X,), weights)
    CALLS[f"linear {label} unfrozen"] = quantized(lambda: torch.nn.Linear(32, 32), (X,), weights, freeze=False)
    CALLS[f"quantize weight {label}"] = lambda weights=weights: (
        lambda w: quanto.quantize_weight(w, weights, 0, quanto.absmax_scale(w, weights, 0)).dequantize(),
        (torch.rand(32, 32),),
    )
CALLS |= {
    "conv": quantized(lambda: torch.nn.Conv2d(3, 4, 3), (torch.rand(1, 3, 8, 8),)),
    "norm": quantized(lambda: torch.nn.LayerNorm(32), (X,), activations=quanto.qint8),
    "linear activations": quantized(lambda: torch.nn.Linear(32, 32), (X,), activations=quanto.qint8),
    "linear activations unfrozen": quantized(
        lambda: torch.nn.Linear(32, 32), (X,), activations=quanto.qint8, freeze=False
    ),
    "quantize activation": lambda: (
        lambda x: quanto.quantize_activation(x, quanto.qint8, torch.tensor(0.1)).dequantize(),
        (X,),
    ),
    "absmax": lambda: (lambda x: quanto.absmax_scale(x), (X,)),
    "absmax axis": lambda: (lambda x: quanto.absmax_scale(x, quanto.qint8, 0), (X,)),
    "group": lambda: (lambda x: quanto.group(x, 0, 16), (X,)),
    "ungroup": lambda: (lambda x: quanto.ungroup(quanto.group(x, 0, 16), 0, X.shape), (X,)),
    "pack": lambda: (
        lambda x: quanto.PackedTensor.pack(x, 4).unpack(),
        (torch.randint(0, 15, (8, 8), dtype=torch.uint8),),
    ),
    "max optimizer": lambda: (lambda x: quanto.MaxOptimizer()(x, quanto.qint4, 0, 16), (X,)),
    "absmax optimizer": lambda: (lambda x: quanto.AbsmaxOptimizer()(x, quanto.qint8, 0), (X,)),
    "hqq optimizer": lambda: (lambda x: quanto.HqqOptimizer()(x, quanto.qint4, 0, 16), (X,)),
    "axis to dim": lambda: (lambda x: quanto.axis_to_dim(x, 0), (X,)),
}
