"""Calls of pytorch-metric-learning that reach what ``fix --unsafe`` edits. Needs scikit-learn."""

# mypy: ignore-errors

import sys
import types

import numpy as np
import torch
from common import J, K
from torch import nn
from torch.utils.data import TensorDataset


class Index:
    """The part of an index of faiss that the package uses."""

    def __init__(self, size):
        self.rows = torch.zeros(0, size)

    def add(self, rows):
        self.rows = torch.cat([self.rows, rows])

    def search(self, query, k):
        found = torch.cdist(torch.as_tensor(query), self.rows).topk(k, largest=False)
        return found.values, found.indices


class Kmeans:
    """Takes the first rows for the centres."""

    def __init__(self, size, clusters, **options):
        self.index, self.clusters = Index(size), clusters

    def train(self, rows):
        self.index.add(torch.from_numpy(rows[: self.clusters]))


faiss = types.ModuleType("faiss")
faiss.__dict__.update(IndexFlatL2=Index, Kmeans=Kmeans, get_num_gpus=lambda: 0)
sys.modules |= dict.fromkeys(("faiss", "faiss.contrib", "faiss.contrib.torch_utils"), faiss)

from pytorch_metric_learning import losses, miners, reducers, samplers, testers, trainers  # noqa: E402
from pytorch_metric_learning.utils import accuracy_calculator, distributed, inference, loss_and_miner_utils  # noqa: E402

OF_CLASSES = {"num_classes": 4, "embedding_size": 4}


def embeddings(rows=8):
    return torch.randn(rows, 4, requires_grad=True)


def labels(rows=8):
    return torch.arange(rows) % 4


def of_pairs(loss):
    """A loss that counts what it records, and is given its pairs."""
    return lambda x, *indices: (loss(x, indices_tuple=indices), getattr(loss, "average_angle", None))


def recorded(loss):
    return lambda x, y: (loss(x, y), getattr(loss, "average_angle", None))


def mined(miner, loss):
    return lambda x, y: loss(x, y, miner(x, y))


for name, make in {
    "AngularLoss": lambda: losses.AngularLoss(collect_stats=True),
    "CircleLoss": losses.CircleLoss,
    "FastAPLoss": losses.FastAPLoss,
    "NTXentLoss": losses.NTXentLoss,
    "SupConLoss": losses.SupConLoss,
    "ContrastiveLoss": losses.ContrastiveLoss,
    "RankedListLoss": lambda: losses.RankedListLoss(margin=1, Tn=0),
    "RankedListLoss_with_temperature": lambda: losses.RankedListLoss(margin=0.4, Tn=2, Tp=1, alpha=1.2),
    "ThresholdConsistentMarginLoss": losses.ThresholdConsistentMarginLoss,
    "ThresholdConsistentMarginLoss_strict": lambda: losses.ThresholdConsistentMarginLoss(
        margin_plus=-1.5, margin_minus=1.5
    ),
    "TripletMarginLoss_by_class": lambda: losses.TripletMarginLoss(
        reducer=reducers.ClassWeightedReducer(torch.rand(4))
    ),
}.items():
    J(f"{name} eval", lambda make=make: (recorded(make()), embeddings(), labels()))
    J(name, lambda make=make: (recorded(make()), embeddings(), labels()), True)
    J(f"{name} of one class", lambda make=make: (recorded(make()), embeddings(), torch.zeros(8).long()), True)
    J(f"{name} of unlike classes", lambda make=make: (recorded(make()), embeddings(), torch.arange(8)), True)

for loss in (losses.NTXentLoss, losses.SupConLoss, losses.CircleLoss, losses.ThresholdConsistentMarginLoss):
    pairs = [torch.tensor(one) for one in ([0, 1], [4, 5], [0, 1], [2, 3])]
    clash = [torch.tensor(one) for one in ([0, 1], [4, 5], [0, 1], [4, 3])]
    J(f"{loss.__name__} of pairs", lambda loss=loss, pairs=pairs: (of_pairs(loss()), embeddings(), *pairs), True)
    J(
        f"{loss.__name__} of clashing pairs",
        lambda loss=loss, pairs=clash: (of_pairs(loss()), embeddings(), *pairs),
        True,
    )

J("DistanceWeightedMiner", lambda: (miners.DistanceWeightedMiner(), torch.randn(8, 4), labels()))
J("DistanceWeightedMiner, all far", lambda: (miners.DistanceWeightedMiner(), torch.eye(4), torch.arange(4) % 2))
J("mined", lambda: (mined(miners.DistanceWeightedMiner(), losses.TripletMarginLoss()), embeddings(), labels()), True)
J(
    "triplets in a loop",
    lambda: (
        lambda y: loss_and_miner_utils.get_all_triplets_indices_loop_method(
            y, *loss_and_miner_utils.get_matches_and_diffs(y, None)
        ),
        labels(),
    ),
)
J(
    "triplets of masks",
    lambda: (
        loss_and_miner_utils.get_all_triplets_indices_loop_method,
        labels(4),
        torch.eye(4).flip(0),
        1 - torch.eye(4),
    ),
)
J(
    "DistributedLossWrapper",
    lambda: (distributed.DistributedLossWrapper(losses.ContrastiveLoss()), embeddings(), labels()),
    True,
)


def sampled(rows, y):
    sampler = samplers.TuplesToWeightsSampler(
        nn.Identity(), miners.BatchHardMiner(), TensorDataset(rows, y), dataloader_num_workers=0
    )
    return list(sampler), sampler.weights


class Visualizer:
    def fit_transform(self, rows):
        return np.asarray(rows)[:, :2]


def tested(kind, rows, y, **options):
    tester = kind(dataloader_num_workers=0, **options)
    return tester.test({"val": TensorDataset(rows, y)}, 1, nn.Identity())


def accuracy(query, query_labels, reference=None, reference_labels=None, same=False, k=None):
    found = accuracy_calculator.AccuracyCalculator(k=k, exclude=("AMI", "NMI"))
    return found.get_accuracy(query, query_labels, reference, reference_labels, same)


def frozen(x, y):
    models = {"trunk": nn.Identity(), "embedder": nn.Linear(4, 4)}
    optimizers = {"embedder_optimizer": torch.optim.SGD(models["embedder"].parameters(), 0.1)}
    trainers.MetricLossOnly(
        models,
        optimizers,
        8,
        {"metric_loss": losses.ContrastiveLoss()},
        TensorDataset(x, y),
        freeze_these=["embedder"],
        dataloader_num_workers=0,
    )


J("TuplesToWeightsSampler", lambda: (sampled, torch.randn(8, 4), labels()))
J(
    "tester",
    lambda: (tested, testers.GlobalEmbeddingSpaceTester, torch.randn(8, 4), labels(), K(visualizer=Visualizer())),
)
J(
    "tester of parents",
    lambda: (
        tested,
        testers.WithSameParentLabelTester,
        torch.randn(8, 4),
        torch.stack([labels(), labels() // 2], 1),
    ),
)
J("accuracy", lambda: (accuracy, torch.randn(8, 4), labels()))
J("accuracy of two", lambda: (accuracy, torch.randn(4, 4), labels(4), torch.randn(8, 4), labels()))
J("accuracy of the first rows", lambda: (lambda x, y: accuracy(x[:4], y[:4], x, y, True), torch.randn(8, 4), labels()))
J("accuracy of other rows", lambda: (accuracy, torch.randn(4, 4), labels(4), torch.randn(8, 4), labels(), True))
J(
    "accuracy of other labels",
    lambda: (lambda x, y, other: accuracy(x[:4], other, x, y, True), torch.randn(8, 4), labels(), labels(4).flip(0)),
)
J("accuracy without a match", lambda: (accuracy, torch.randn(4, 4), labels(4) + 9, torch.randn(8, 4), labels()))
J("accuracy of few", lambda: (accuracy, torch.randn(8, 4), torch.zeros(8).long(), None, None, False, 1))
J("FaissKNN", lambda: (inference.FaissKNN(), torch.randn(4, 4), 2, torch.randn(6, 4)))
J("FaissKMeans", lambda: (inference.FaissKMeans(), torch.randn(8, 4), 2))
J("frozen", lambda: (frozen, torch.randn(8, 4), labels()))
