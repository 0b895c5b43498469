"""Spiking neurons, spike encodings and their losses."""

from collections.abc import Callable
from typing import Any

import snntorch
import torch
from snntorch import functional, spikegen, surrogate

DISTRIBUTION = FOLDER = "snntorch"

X = torch.rand(5, 8)
SPIKES = (torch.rand(6, 5, 4) > 0.5).float()
TARGETS = torch.tensor([0, 1, 2, 3, 0])


def steps(neuron):
    def build():
        state = neuron.reset_mem() if hasattr(neuron, "reset_mem") else None
        state = state if isinstance(state, tuple) else (state,)
        return neuron, (X, *state)

    return build


def hidden(neuron):
    return lambda: (neuron, (X,))


def network():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 6), torch.nn.Linear(6, 4)
            self.lif1, self.lif2 = snntorch.Leaky(beta=0.9), snntorch.Leaky(beta=0.9, learn_beta=True)

        def forward(self, x):
            mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
            spikes = []
            for _ in range(3):
                spike, mem1 = self.lif1(self.first(x), mem1)
                spike, mem2 = self.lif2(self.second(spike), mem2)
                spikes.append(spike)
            return torch.stack(spikes)

    return Net(), (X,)


CALLS: dict[str, Callable[..., Any]] = {"network": network}
for reset in ("subtract", "zero", "none"):
    CALLS |= {
        f"leaky {reset}": steps(snntorch.Leaky(beta=0.9, reset_mechanism=reset)),
        f"leaky hidden {reset}": hidden(snntorch.Leaky(beta=0.9, init_hidden=True, reset_mechanism=reset)),
        f"lapicque {reset}": steps(snntorch.Lapicque(beta=0.9, reset_mechanism=reset)),
        f"synaptic {reset}": steps(snntorch.Synaptic(alpha=0.9, beta=0.8, reset_mechanism=reset)),
        f"synaptic hidden {reset}": hidden(
            snntorch.Synaptic(alpha=0.9, beta=0.8, init_hidden=True, reset_mechanism=reset)
        ),
        f"alpha {reset}": steps(snntorch.Alpha(alpha=0.9, beta=0.8, reset_mechanism=reset)),
        f"rleaky {reset}": steps(snntorch.RLeaky(beta=0.9, linear_features=8, reset_mechanism=reset)),
        f"rsynaptic {reset}": steps(snntorch.RSynaptic(alpha=0.9, beta=0.8, linear_features=8, reset_mechanism=reset)),
    }
CALLS |= {
    "leaky output": hidden(snntorch.Leaky(beta=0.9, init_hidden=True, output=True)),
    "leaky inhibition": hidden(snntorch.Leaky(beta=0.9, init_hidden=True, inhibition=True)),
    "slstm": steps(snntorch.SLSTM(8, 6)),
    "slstm hidden": hidden(snntorch.SLSTM(8, 6, init_hidden=True)),
    "leaky parallel": lambda: (snntorch.LeakyParallel(8, 6), (torch.rand(3, 5, 8),)),
    "rate": lambda: (lambda x: spikegen.rate(x, num_steps=4), (X,)),
    "rate of time": lambda: (lambda x: spikegen.rate(x, time_var_input=True), (X,)),
    "latency": lambda: (lambda x: spikegen.latency(x, num_steps=4, normalize=True, linear=True), (X,)),
    "latency tau": lambda: (lambda x: spikegen.latency(x, num_steps=4, tau=5, threshold=0.01), (X,)),
    "delta": lambda: (lambda x: spikegen.delta(x, threshold=0.1, off_spike=True), (X,)),
    "targets rate": lambda: (lambda x: spikegen.targets_rate(x, num_classes=4), (TARGETS,)),
    "targets latency": lambda: (lambda x: spikegen.targets_latency(x, num_classes=4, num_steps=5), (TARGETS,)),
    "convert": lambda: (lambda x: spikegen.to_one_hot(x, num_classes=4), (TARGETS,)),
    "from one hot": lambda: (spikegen.from_one_hot, (torch.nn.functional.one_hot(TARGETS, 4),)),
    "accuracy rate": lambda: (functional.accuracy_rate, (SPIKES, TARGETS)),
    "accuracy temporal": lambda: (functional.accuracy_temporal, (SPIKES, TARGETS)),
    "l1 sparsity": lambda: (functional.l1_rate_sparsity(), (SPIKES,)),
}
for loss in (
    "ce_rate_loss",
    "ce_count_loss",
    "ce_max_membrane_loss",
    "mse_count_loss",
    "mse_membrane_loss",
    "ce_temporal_loss",
    "mse_temporal_loss",
):
    CALLS[loss] = lambda loss=loss: (getattr(functional, loss)(), (SPIKES, TARGETS))
for grad in (
    "atan",
    "fast_sigmoid",
    "sigmoid",
    "straight_through_estimator",
    "triangular",
    "spike_rate_escape",
    "heaviside",
    "LSO",
    "SFS",
    "SSO",
):
    CALLS[f"surrogate {grad}"] = lambda grad=grad: (getattr(surrogate, grad)(), (X - 0.5,))
