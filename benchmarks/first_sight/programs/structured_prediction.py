"""Structured prediction: chains, trees, alignments and grammars over semirings, and beam search."""

from collections.abc import Callable
from typing import Any

import torch
import torch_struct as ts

DISTRIBUTION = "torch-struct"
FOLDER = "torch_struct"

SHAPES: dict[str, tuple[int, ...]] = {
    "LinearChainCRF": (2, 4, 3, 3),
    "SemiMarkovCRF": (2, 4, 3, 2, 2),
    "DependencyCRF": (2, 4, 4),
    "TreeCRF": (2, 4, 4, 3),
    "NonProjectiveDependencyCRF": (2, 4, 4),
    "AlignmentCRF": (2, 4, 4, 3),
}
LENGTHS = torch.tensor([4, 3])
LENGTHS_OF = {"LinearChainCRF": LENGTHS + 1, "SemiMarkovCRF": LENGTHS + 1}
OF_DISTRIBUTIONS = ("partition", "max", "argmax", "marginals", "entropy", "count", "mode")


def asked(kind, what, *given, potentials=None, lengths=None, **options):
    """What a distribution that is made in compiled code says."""

    def run(*tensors):
        made = getattr(ts, kind)(tensors if len(tensors) > 1 else tensors[0], lengths=lengths, **options)
        value = getattr(made, what)
        return value(*given) if callable(value) else value

    tensors = (torch.randn(SHAPES[kind]),) if potentials is None else potentials
    return lambda: (run, tensors)


def sampled(kind, shape=(2,)):
    return asked(kind, "sample", shape)


def scored(kind):
    def build():
        potentials = torch.randn(SHAPES[kind])
        event = getattr(ts, kind)(potentials).argmax
        return (lambda p, e: getattr(ts, kind)(p).log_prob(e)), (potentials, event)

    return build


def compared(kind, what):
    def run(p, q):
        return getattr(getattr(ts, kind)(p), what)(getattr(ts, kind)(q))

    return lambda: (run, (torch.randn(SHAPES[kind]), torch.randn(SHAPES[kind])))


def parts(kind, sequence, extra):
    return lambda: (lambda s: kind.to_parts(s, extra), (sequence,))


def back(kind, sequence, extra):
    return lambda: (lambda p: kind.from_parts(p), (kind.to_parts(sequence, extra),))


def semiring(make, potentials, structure="LinearChain", what="sum"):
    def run(p):
        return getattr(getattr(ts, structure)(make()), what)(p)

    return lambda: (run, (potentials,))


def trained(kind):
    def run(potentials):
        loss = -getattr(ts, kind)(potentials).partition.sum()
        loss.backward()
        return loss

    return lambda: (run, (torch.randn(SHAPES[kind]).requires_grad_(),))


class Model(ts.AutoregressiveModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 5)

    def forward(self, inputs, state=None):
        if not state:
            state = (torch.zeros(inputs.shape[0], 1, 5),)
        hidden = torch.tanh(self.layer(inputs) + state[0][:, -1:])
        return hidden, (hidden[:, -1:],)


def generated(what, *given):
    def build():
        model = Model()

        def run(start):
            made = ts.Autoregressive(model, (start,), 5, 3)
            return getattr(made, what)(*given)

        return run, (torch.zeros(2, 1, 5),)

    return build


def layered(make):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.Linear(3, 9)

        def forward(self, x):
            return make(self.weights(x).reshape(2, 4, 3, 3))

    return lambda: (Layer(), (torch.randn(2, 4, 3),))


GRAMMAR = (torch.randn(2, 4, 3), torch.randn(2, 2, 5, 5), torch.randn(2, 2))
CHAIN = torch.randn(2, 4, 3, 3)
CALLS: dict[str, Callable[..., Any]] = {}
for name in SHAPES:
    for what in OF_DISTRIBUTIONS:
        CALLS[f"{name} {what}"] = asked(name, what)
    CALLS |= {
        f"{name} lengths": asked(name, "argmax", lengths=LENGTHS_OF.get(name, LENGTHS)),
        f"{name} kmax": asked(name, "kmax", 2),
        f"{name} topk": asked(name, "topk", 2),
        f"{name} gumbel": asked(name, "gumbel_crf", 0.5),
        f"{name} sample": sampled(name),
        f"{name} log prob": scored(name),
        f"{name} kl": compared(name, "kl"),
        f"{name} cross entropy": compared(name, "cross_entropy"),
        f"{name} trained": trained(name),
    }
for what in OF_DISTRIBUTIONS:
    CALLS[f"SentCFG {what}"] = asked("SentCFG", what, potentials=GRAMMAR)
SEQUENCE = torch.tensor([[0, 1, 2, 1, 0], [2, 1, 0, 0, 1]])
HEADS = torch.tensor([[0, 1, 2, 3], [2, 0, 2, 3]])
SPANS = torch.tensor([[0, -1, 1, 0, -1], [1, -1, -1, 0, -1]])
CALLS |= {
    "alignment local": asked("AlignmentCRF", "argmax", local=True),
    "alignment gap": asked("AlignmentCRF", "partition", max_gap=1),
    "single root": asked("DependencyCRF", "argmax", multiroot=False),
    "single root free": asked("NonProjectiveDependencyCRF", "marginals", multiroot=True),
    "hmm": lambda: (
        lambda t, e, i, o: ts.HMM(t, e, i, o).partition,
        (
            torch.randn(3, 3).log_softmax(0),
            torch.randn(5, 3).log_softmax(0),
            torch.randn(3).log_softmax(0),
            torch.randint(0, 5, (2, 4)),
        ),
    ),
    "chain parts": parts(ts.LinearChain, SEQUENCE, 3),
    "chain back": back(ts.LinearChain, SEQUENCE, 3),
    "segment parts": parts(ts.SemiMarkov, SPANS, (2, 5)),
    "segment back": back(ts.SemiMarkov, SPANS, (2, 5)),
    "heads parts": parts(ts.DepTree, HEADS, None),
    "heads back": back(ts.DepTree, HEADS, None),
    "convert": lambda: (ts.convert, (torch.randn(2, 4, 4),)),
    "unconvert": lambda: (ts.unconvert, (torch.randn(2, 5, 5),)),
    "sum": semiring(lambda: ts.LogSemiring, CHAIN),
    "sum plain": semiring(lambda: ts.StdSemiring, CHAIN.exp()),
    "sum max": semiring(lambda: ts.MaxSemiring, CHAIN),
    "sum fast": semiring(lambda: ts.FastLogSemiring, CHAIN),
    "sum fast max": semiring(lambda: ts.FastMaxSemiring, CHAIN),
    "sum fast sample": semiring(lambda: ts.FastSampleSemiring, CHAIN, what="marginals"),
    "sum entropy": semiring(lambda: ts.EntropySemiring, CHAIN),
    "sum kmax": semiring(lambda: ts.KMaxSemiring(2), CHAIN),
    "sum temperature": semiring(lambda: ts.TempMax(0.5), CHAIN, what="marginals"),
    "sum gumbel max": semiring(lambda: ts.GumbelMaxSemiring(0.5), CHAIN, what="marginals"),
    "sum gumbel": semiring(lambda: ts.GumbelCRFSemiring(0.5), CHAIN, what="marginals"),
    "sum sampled": semiring(lambda: ts.SampledSemiring, CHAIN, what="marginals"),
    "sum many sampled": semiring(lambda: ts.MultiSampledSemiring, CHAIN, what="marginals"),
    "sum sparse": semiring(lambda: ts.SparseMaxSemiring, CHAIN, what="marginals"),
    "sum checkpoint": semiring(lambda: ts.CheckpointSemiring(ts.FastLogSemiring, 0), CHAIN, what="marginals"),
    "sum shards": semiring(lambda: ts.CheckpointShardSemiring(ts.LogSemiring, 1), CHAIN, what="marginals"),
    "tree of dependencies": semiring(lambda: ts.LogSemiring, torch.randn(2, 4, 4), "DepTree", "marginals"),
    "spans": semiring(lambda: ts.LogSemiring, torch.randn(2, 4, 4, 3), "CKY_CRF", "marginals"),
    "simplex": lambda: (lambda v: ts.project_simplex(v, 1), (torch.randn(3, 4),)),
    "nonprojective": lambda: (lambda s: ts.deptree_nonproj(s, True), (torch.randn(2, 4, 4),)),
    "nonprojective one": lambda: (lambda s: ts.deptree_part(s, False, lengths=LENGTHS), (torch.randn(2, 4, 4),)),
    "greedy": generated("greedy_max"),
    "greedy temperature": generated("greedy_tempmax", 0.5),
    "beam": generated("beam_topk", 2),
    "without replacement": generated("sample_without_replacement", (2,)),
    "draw": generated("sample", (2,)),
    "layer": layered(lambda p: ts.LinearChainCRF(p).marginals),
    "layer max": layered(lambda p: ts.LinearChainCRF(p).max),
}
for sparse in (True, False):
    value = torch.zeros(2, 2, 3).long() if sparse else torch.nn.functional.one_hot(torch.zeros(2, 2, 3).long(), 5)
    CALLS[f"generated log prob {sparse}"] = generated("log_prob", value, sparse)
