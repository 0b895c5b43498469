"""Recommenders: ranking, matching and multi-task models, their layers, losses and quantizers."""

from collections.abc import Callable
from typing import Any

import torch
from torch_rechub.basic import layers
from torch_rechub.basic.features import DenseFeature, SequenceFeature, SparseFeature
from torch_rechub.basic.loss_func import BPRLoss, HingeLoss, InBatchNCELoss, NCELoss, RegularizationLoss
from torch_rechub.models import matching, multi_task, ranking
from torch_rechub.models.generative.hstu import HSTUModel
from torch_rechub.models.generative.rqvae import RQVAEModel

DISTRIBUTION = "torch-rechub"
FOLDER = "torch_rechub"

SIZE, LENGTH = 8, 5
SPARSE = [SparseFeature(name, 20, SIZE) for name in ("user", "city", "item", "brand")]
DENSE = [DenseFeature("age"), DenseFeature("price")]
ITEM = SparseFeature("item", 20, SIZE, padding_idx=0)
HISTORY = SequenceFeature("history", 20, SIZE, "concat", shared_with="item", padding_idx=0)
NEGATIVE_HISTORY = SequenceFeature("unseen", 20, SIZE, "concat", shared_with="item", padding_idx=0)
NEGATIVES = SequenceFeature("negatives", 20, SIZE, "concat", shared_with="item", padding_idx=0)
SUMMED = SequenceFeature("history", 20, SIZE, "mean", shared_with="item", padding_idx=0)
MLP = {"dims": [8], "dropout": 0.1}


def batch() -> dict[str, torch.Tensor]:
    history = torch.randint(1, 20, (4, LENGTH))
    history[0, 3:] = 0
    return {
        **{feature.name: torch.randint(1, 20, (4,)) for feature in SPARSE},
        **{feature.name: torch.rand(4) for feature in DENSE},
        "history": history,
        "unseen": torch.randint(1, 20, (4, LENGTH)),
        "negatives": torch.randint(1, 20, (4, 3)),
        **{name: torch.randint(1, 20, (4, LENGTH)) for name in ("seq", "pos", "neg")},
        "weight": torch.rand(4),
    }


def model(make):
    return lambda: (make(), (batch(),))


def layer(make, *arguments):
    return lambda: (make(), arguments)


def tower(make, mode):
    def build():
        made = make()
        made.mode = mode
        return made, (batch(),)

    return build


def dssm():
    return matching.DSSM(SPARSE[:2], SPARSE[2:], MLP, MLP, temperature=0.1)


def comirec_sa():
    return matching.ComirecSA(SPARSE[:1], [HISTORY], [ITEM], [NEGATIVES])


def comirec_dr():
    return matching.ComirecDR(SPARSE[:1], [HISTORY], [ITEM], [NEGATIVES], LENGTH)


def mind(**options):
    return matching.MIND(SPARSE[:1], [HISTORY], [ITEM], [NEGATIVES], LENGTH, **options)


def gru4rec():
    return matching.GRU4Rec(SPARSE[:1], [HISTORY], [ITEM], [NEGATIVES], {"dims": [16, SIZE]})


def sasrec():
    features = [
        SequenceFeature("seq", 20, SIZE, "concat"),
        *(SequenceFeature(name, 20, SIZE, "concat", shared_with="seq") for name in ("pos", "neg")),
    ]
    return matching.SASRec(features, max_len=LENGTH)


def narm():
    return matching.NARM(SequenceFeature("history", 20, SIZE, "concat"), 6, 0.1, 0.1)


def stamp():
    return matching.STAMP(SequenceFeature("history", 20, SIZE, "concat"), 0.1, 0.1)


def youtube_dnn():
    return matching.YoutubeDNN([*SPARSE[:2], SUMMED], [ITEM], [NEGATIVES], {"dims": [16, SIZE]})


def youtube_sbc():
    weight = [DenseFeature("weight")]
    return matching.YoutubeSBC(SPARSE[:2], SPARSE[2:], weight, MLP, MLP, batch_size=4, n_neg=2)


def dien():
    return ranking.DIEN(SPARSE[:2], [HISTORY], [NEGATIVE_HISTORY], [ITEM], {"dims": [8]})


def din():
    return ranking.DIN(SPARSE[:2], [HISTORY], [ITEM], {"dims": [8]}, {"dims": [8]})


def bst():
    return ranking.BST(SPARSE[:2], [HISTORY], [ITEM], {"dims": [8]}, nhead=2)


TASKS = ["classification", "regression"]
TOWERS = [{"dims": [4]}, {"dims": [4]}]
FIELDS = torch.randn(4, 4, SIZE)
FLAT = torch.randn(4, 12)
SEQUENCE = torch.randn(4, LENGTH, SIZE)
MASK = torch.arange(LENGTH) < torch.tensor([[5], [3], [4], [1]])

CALLS: dict[str, Callable[[], Any]] = {
    "afm": model(lambda: ranking.AFM(SPARSE, SIZE)),
    "autoint": model(lambda: ranking.AutoInt(SPARSE, DENSE, mlp_params={"dims": [8]})),
    "bst": model(bst),
    "dcn": model(lambda: ranking.DCN([*SPARSE, *DENSE], 2, MLP)),
    "dcn_v2": model(lambda: ranking.DCNv2([*SPARSE, *DENSE], 2, MLP)),
    "dcn_v2_stacked": model(lambda: ranking.DCNv2(SPARSE, 2, MLP, "stacked", use_low_rank_mixture=False)),
    "ffm": layer(lambda: layers.FFM(3), torch.randn(4, 3, 3, SIZE)),
    "compose_excitation": layer(lambda: layers.CEN(SIZE, 6, 2), torch.randn(4, 6, SIZE)),
    "deepfm": model(lambda: ranking.DeepFM([*SPARSE, *DENSE], SPARSE, MLP)),
    "dien": model(dien),
    "din": model(din),
    "edcn": model(lambda: ranking.EDCN(SPARSE, 2, {"dims": [8]})),
    "edcn_pooled": model(lambda: ranking.EDCN(SPARSE, 2, {"dims": [8]}, bridge_type="attention_pooling")),
    **{
        f"fibinet_{kind}": model(lambda kind=kind: ranking.FiBiNet(SPARSE, MLP, bilinear_type=kind))
        for kind in ("field_all", "field_each", "field_interaction")
    },
    "widedeep": model(lambda: ranking.WideDeep(SPARSE, [*SPARSE, *DENSE], MLP)),
    "aitm": model(lambda: multi_task.AITM(SPARSE, 2, {"dims": [8]}, TOWERS)),
    "esmm": model(lambda: multi_task.ESMM(SPARSE[:2], SPARSE[2:], {"dims": [8]}, {"dims": [8]})),
    "mmoe": model(lambda: multi_task.MMOE(SPARSE, TASKS, 2, {"dims": [8]}, TOWERS)),
    "ple": model(lambda: multi_task.PLE(SPARSE, TASKS, 2, 2, 1, {"dims": [8]}, TOWERS)),
    "shared_bottom": model(lambda: multi_task.SharedBottom(SPARSE, TASKS, {"dims": [8]}, TOWERS)),
    **{
        f"{make.__name__}_{mode or 'both'}": tower(make, mode)
        for make in (dssm, comirec_sa, comirec_dr, mind, gru4rec, sasrec, narm, stamp, youtube_dnn, youtube_sbc)
        for mode in (None, "user", "item")
    },
    "mind_dynamic": model(lambda: mind(dynamic_interest=True)),
    "facebook": model(
        lambda: matching.FaceBookDSSM(
            SPARSE[:2], [ITEM], [SparseFeature("brand", 20, SIZE, shared_with="item")], MLP, MLP
        )
    ),
    "sine": model(lambda: matching.SINE(["history"], ["item"], ["negatives"], 20, SIZE, SIZE, 4, 2, LENGTH)),
    "hstu": lambda: (
        HSTUModel(20, 16, 2, 2, 8, 8, max_seq_len=LENGTH),
        (batch()["history"], torch.rand(4, LENGTH) * 1000),
    ),
    "hstu_untimed": lambda: (
        HSTUModel(20, 16, 2, 2, 8, 8, max_seq_len=LENGTH, use_time_embedding=False),
        (batch()["history"],),
    ),
    "rqvae": layer(lambda: RQVAEModel(12, [4, 4], 6, [8], sk_epsilons=[0.0, 0.0]), FLAT),
    "rqvae_sinkhorn": layer(lambda: RQVAEModel(12, [4, 4], 6, [8], sk_epsilons=[0.1, 0.1]), FLAT),
    "rqvae_kmeans": layer(
        lambda: RQVAEModel(12, [2, 2], 6, [8], kmeans_init=True, sk_epsilons=[0.0, 0.0]), torch.randn(16, 12)
    ),
    "mask": lambda: (layers.InputMask(), (batch(), [HISTORY, NEGATIVE_HISTORY])),
    "cin": layer(lambda: layers.CIN(4, [6, 6]), FIELDS),
    "cross_mix": layer(lambda: layers.CrossNetMix(12), FLAT),
    "interests": layer(lambda: layers.MultiInterestSA(SIZE, 2), SEQUENCE, MASK.unsqueeze(-1).float()),
    **{
        f"capsules_{kind}": layer(lambda kind=kind: layers.CapsuleNetwork(SIZE, LENGTH, kind, 2), SEQUENCE, MASK.long())
        for kind in (0, 1, 2)
    },
    "average": layer(layers.AveragePooling, SEQUENCE, MASK.unsqueeze(1).float()),
    "sum": layer(layers.SumPooling, SEQUENCE),
    "interacting": layer(lambda: layers.InteractingLayer(SIZE), FIELDS),
    "hinge": layer(HingeLoss, torch.rand(4), torch.rand(4, 3)),
    "bpr": layer(BPRLoss, torch.rand(4), torch.rand(4, 3)),
    "nce": layer(NCELoss, torch.randn(4, 20), torch.tensor([1, 0, 3, 4])),
    "nce_in_batch": layer(InBatchNCELoss, torch.randn(4, 6), torch.randn(20, 6), torch.tensor([1, 0, 3, 4])),
    "regularized": lambda: (
        RegularizationLoss(0.1, 0.1, 0.1, 0.1),
        (ranking.WideDeep(SPARSE, SPARSE, MLP),),
    ),
}
