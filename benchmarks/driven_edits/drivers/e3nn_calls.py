"""Calls of e3nn that reach what ``fix --unsafe`` edits. Needs opt-einsum, opt-einsum-fx, scipy and sympy."""

# mypy: ignore-errors

import torch
from common import J
from e3nn import o3
from e3nn.io import SphericalTensor
from e3nn.o3._spherical_harmonics_generator import _generate_spherical_harmonics
from e3nn.util._argtools import _get_io_irreps


def peaks(vectors, values=None):
    return SphericalTensor(2, p_val=1, p_arg=-1).with_peaks_at(vectors, values)


def generate(lmax):
    dtype = torch.get_default_dtype()
    try:
        _generate_spherical_harmonics(lmax)
    finally:
        torch.set_default_dtype(dtype)


def irreps_of_a_script():
    return _get_io_irreps(torch.jit.script(torch.nn.Identity()), irreps_in="1o")


POSITIONS = [[1.0, 0.0, 0.0], [3.0, 4.0, 0.0]]

J("peaks", lambda: (peaks, torch.tensor(POSITIONS)))
J("peaks with values", lambda: (peaks, torch.tensor(POSITIONS), torch.tensor([-1.5, 2.0])))
J("peaks with gradients", lambda: (peaks, torch.tensor(POSITIONS), torch.tensor([-1.5, 2.0])), True)
J("peaks with a zero", lambda: (peaks, torch.tensor(POSITIONS), torch.tensor([0.0, 2.0])))
J("one peak", lambda: (peaks, torch.tensor(POSITIONS[:1]), torch.tensor([2.0])))
J("equal peaks", lambda: (peaks, torch.tensor(POSITIONS[:1] * 2), torch.tensor([2.0, 2.0])))
J("opposed peaks", lambda: (peaks, torch.tensor(POSITIONS[:1] * 2), torch.tensor([2.0, -2.0])))
J("many peaks", lambda: (peaks, torch.randn(12, 3), torch.rand(12)))
for convert in (o3.matrix_to_angles, o3.matrix_to_axis_angle, o3.matrix_to_quaternion):
    name = convert.__name__
    J(name, lambda convert=convert: (convert, o3.rand_matrix(3)))
    J(f"{name} of one", lambda convert=convert: (convert, o3.rand_matrix()))
    J(f"{name} with gradients", lambda convert=convert: (convert, o3.rand_matrix(3)), True)
    J(f"{name} of another determinant", lambda convert=convert: (convert, torch.eye(3).repeat(2, 1, 1) * 1.1))
    J(f"{name} of nearly a rotation", lambda convert=convert: (convert, torch.eye(3).repeat(2, 1, 1) * 1.000003))
    J(f"{name} of a reflection", lambda convert=convert: (convert, -torch.eye(3).repeat(2, 1, 1)))
J("D_from_matrix", lambda: (o3.Irreps("2x0e+1o").D_from_matrix, o3.rand_matrix(2)))
for lmax in (0, 1, 2):
    J(f"generate {lmax}", lambda lmax=lmax: (generate, lmax))
J("irreps of a script", lambda: (irreps_of_a_script,))
J("irreps of a tuple", lambda: (_get_io_irreps, None, ((1, (1, -1)),), ((2, (0, 1)),)))
