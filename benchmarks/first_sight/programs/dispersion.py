"""Molecules: the dispersion energy of density functional theory, by two models and several dampings."""

from collections.abc import Callable
from typing import Any

import torch
from torch_dftd.dftd3_xc_params import get_dftd3_default_params
from torch_dftd.functions.distance import calc_distances
from torch_dftd.functions.edge_extraction import calc_edge_index
from torch_dftd.functions.smoothing import poly_smoothing
from torch_dftd.functions.triplets import calc_triplets
from torch_dftd.nn.dftd2_module import DFTD2Module
from torch_dftd.nn.dftd3_module import DFTD3Module

DISTRIBUTION = "torch-dftd"
FOLDER = "torch_dftd"

NUMBERS = torch.tensor([8, 1, 1, 6, 1, 1])
PLACES = torch.randn(6, 3) * 2
CUTOFF = 12.0
CELL = torch.eye(3) * 12
PERIODIC = torch.tensor([True, True, True])
MOLECULES = torch.tensor([0, 0, 0, 1, 1, 1])
KINDS = {"d2": DFTD2Module, "d3": DFTD3Module}


def edges(*, both_ways=True, within=None):
    found, shifts = calc_edge_index(PLACES, cutoff=CUTOFF, bidirectional=both_ways)
    if within is not None:
        kept = within[found[0]] == within[found[1]]
        found, shifts = found[:, kept], shifts[kept]
    return found, shifts


def model(kind, damping="zero", **options):
    parameters = get_dftd3_default_params(damping, "pbe", old=kind == "d2")
    return KINDS[kind](parameters, cutoff=CUTOFF, bidirectional=True, **options)


def energy(kind, what, damping="zero", *, batched=False, periodic=False, **options):
    """What a model says of one molecule, or of two as a batch."""

    def build():
        made = model(kind, damping, **options)
        found, shifts = edges(within=MOLECULES if batched else None)
        given: dict[str, Any] = {"damping": damping, "shift_pos": shifts}
        if batched:
            given |= {"batch": MOLECULES, "batch_edge": MOLECULES[found[0]]}
        if periodic:
            cell = CELL.expand(2, 3, 3).clone() if batched else CELL
            pbc = PERIODIC.expand(2, 3) if batched else PERIODIC
            given |= {"cell": cell, "pbc": pbc}

        def run(numbers, places, found):
            return getattr(made, what)(numbers, places, found, **given)

        return run, (NUMBERS, PLACES.clone(), found)

    return build


def called(function, *arguments, **options):
    return lambda: (lambda *given: function(*given, **options), arguments)


DAMPINGS = ("zero", "bj", "zerom", "bjm")

CALLS: dict[str, Callable[[], Any]] = {
    **{f"d3_{damping}": energy("d3", "calc_energy_batch", damping) for damping in DAMPINGS},
    "d2": energy("d2", "calc_energy_batch"),
    "d3_chunks": energy("d3", "calc_energy_batch", n_chunks=2),
    "d3_three_bodies": energy("d3", "calc_energy_batch", abc=True),
    "d3_smooth": energy("d3", "calc_energy_batch", cutoff_smoothing="poly"),
    "d2_smooth": energy("d2", "calc_energy_batch", cutoff_smoothing="poly"),
    "d3_double": energy("d3", "calc_energy_batch", dtype=torch.float64),
    **{
        f"{kind}_{name}{suffix}": energy(kind, what, batched=batched, periodic=periodic)
        for kind in KINDS
        for name, what in (("energy", "calc_energy"), ("forces", "calc_energy_and_forces"))
        for batched, periodic, suffix in (
            (False, False, ""),
            (True, False, "_batched"),
            (False, True, "_periodic"),
            (True, True, "_periodic_batched"),
        )
        if kind == "d2" or periodic or not batched  # the third generation needs a cell for a batch
    },
    "edges": called(calc_edge_index, PLACES, cutoff=3.0),
    "edges_both_ways": called(calc_edge_index, PLACES, cutoff=3.0, bidirectional=True),
    "distances": called(calc_distances, PLACES, edges()[0]),
    "distances_shifted": called(calc_distances, PLACES, edges()[0], CELL, edges()[1]),
    "smoothing": called(poly_smoothing, torch.rand(5) * 10, 8.0),
    "triplets": called(calc_triplets, edges()[0]),
    "triplets_shifted": called(calc_triplets, edges()[0], edges()[1]),
    "triplets_batched": called(
        calc_triplets, edges(within=MOLECULES)[0], batch_edge=MOLECULES[edges(within=MOLECULES)[0][0]]
    ),
}
