"""A function of NumPy arrays, compiled as it is: normalise, outer product, clip, exp.

numpy_function.py [--device DEVICE] [--rows N] [--columns N]

On a GPU it is called under ``torch.device("cuda")``, which makes torch compute there what it has traced of NumPy.
"""

import argparse

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--rows", type=int, default=1024)
parser.add_argument("--columns", type=int, default=640)
given = parser.parse_args()


@torch.compile
def weights(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # With operators (a - a.mean()), torch 2.11 to 2.13 fail to trace it under torch.device.
    a = np.divide(np.subtract(a, np.mean(a)), np.std(a))
    b = np.divide(np.subtract(b, np.mean(b)), np.std(b))
    return np.exp(np.clip(np.outer(a, b), -2.0, 2.0))


generator = np.random.default_rng(0)
a = generator.standard_normal(given.rows)
b = generator.standard_normal(given.columns)
with torch.device(given.device):
    for _ in range(5):
        weights(a, b)
