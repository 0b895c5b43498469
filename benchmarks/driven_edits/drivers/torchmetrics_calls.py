"""Calls of torchmetrics that reach what ``fix --unsafe`` edits. Needs lightning-utilities, regex and scipy."""

# mypy: ignore-errors

import itertools
from unittest import mock

import torch
import torch.distributed as dist
import torchmetrics.functional.classification as C
import torchmetrics.functional.clustering as U
import torchmetrics.functional.image as I
import torchmetrics.functional.nominal as N
import torchmetrics.functional.regression as R
import torchmetrics.functional.retrieval as Q
import torchmetrics.functional.segmentation as S
import torchmetrics.functional.text as T
from common import J, K
from torch import nn
from torchmetrics.classification import BinaryAccuracy
from torchmetrics.functional.classification.hinge import _binary_hinge_loss_update
from torchmetrics.functional.classification.logauc import _reduce_logauc
from torchmetrics.functional.detection import modified_panoptic_quality, panoptic_quality
from torchmetrics.functional.image import lpips
from torchmetrics.functional.image.arniqa import _arniqa_update
from torchmetrics.functional.segmentation.utils import check_if_binarized
from torchmetrics.image import fid, mifid
from torchmetrics.retrieval import RetrievalRecallAtFixedPrecision
from torchmetrics.utilities import checks, compute, data, distributed

BINARY = "accuracy auroc average_precision calibration_error confusion_matrix eer hinge_loss logauc roc stat_scores"
MULTICLASS = "accuracy auroc average_precision calibration_error eer hinge_loss logauc roc precision_recall_curve"
MULTILABEL = "accuracy auroc average_precision confusion_matrix eer logauc roc stat_scores precision_recall_curve"
FIXED = {
    "precision_at_fixed_recall": {"min_recall": 0.5},
    "recall_at_fixed_precision": {"min_precision": 0.5},
    "sensitivity_at_specificity": {"min_specificity": 0.5},
    "specificity_at_sensitivity": {"min_sensitivity": 0.5},
}


def scores(*shape):
    return torch.rand(*(shape or (12,)))


def classes(*shape, most=2):
    return torch.randint(0, most, shape or (12,))


def binary():
    return scores(), classes()


def multiclass():
    return torch.randn(12, 4).softmax(-1), classes(12, most=4)


def multilabel():
    return scores(12, 3), classes(12, 3)


for name in [*BINARY.split(), "precision_recall_curve"]:
    function = getattr(C, f"binary_{name}")
    J(f"binary {name}", lambda function=function: (function, *binary()))
    J(f"binary {name} of logits", lambda function=function: (function, torch.randn(12), classes()))
    J(f"binary {name} of labels", lambda function=function: (function, classes(), classes()))
    J(f"binary {name} of other labels", lambda function=function: (function, classes() * 2, classes()))
    J(f"binary {name} of one class", lambda function=function: (function, scores(), torch.ones(12).long()))
    J(f"binary {name} of other classes", lambda function=function: (function, scores(), classes() * 2))
    J(f"binary {name} ignoring", lambda function=function: (function, scores(), classes(most=3), K(ignore_index=2)))
for name in MULTICLASS.split():
    function = getattr(C, f"multiclass_{name}")
    J(f"multiclass {name}", lambda function=function: (function, *multiclass(), K(num_classes=4)))
    J(
        f"multiclass {name} of one class",
        lambda function=function: (function, multiclass()[0], torch.zeros(12).long(), K(num_classes=4)),
    )
for name in MULTILABEL.split():
    function = getattr(C, f"multilabel_{name}")
    J(f"multilabel {name}", lambda function=function: (function, *multilabel(), K(num_labels=3)))
    J(
        f"multilabel {name} of labels",
        lambda function=function: (function, classes(12, 3), classes(12, 3), K(num_labels=3)),
    )
    J(
        f"multilabel {name} of other labels",
        lambda function=function: (function, classes(12, 3) * 2, classes(12, 3), K(num_labels=3)),
    )
    J(
        f"multilabel {name} of other classes",
        lambda function=function: (function, scores(12, 3), classes(12, 3) + 1, K(num_labels=3)),
    )
    J(
        f"multilabel {name} of one class",
        lambda function=function: (function, scores(12, 3), torch.tensor([0, 1, 1]).repeat(12, 1), K(num_labels=3)),
    )
for name, average in itertools.product(("auroc", "average_precision", "logauc"), ("macro", "weighted", "none")):
    for one_class in (False, True):
        J(
            f"multiclass {name} {average}",
            lambda name=name, average=average, one_class=one_class: (
                getattr(C, f"multiclass_{name}"),
                multiclass()[0],
                torch.tensor([0, 1] * 6) if one_class else classes(12, most=4),
                K(num_classes=4, average=average),
            ),
        )
J(
    "logauc weighted",
    lambda: (
        lambda fpr, tpr, weights: _reduce_logauc([fpr, fpr], [tpr, tpr], average="weighted", weights=weights),
        torch.linspace(0, 1, 9),
        torch.linspace(0, 1, 9).sqrt(),
        torch.tensor([1.0, 2]),
    ),
)
J(
    "logauc of nan",
    lambda: (
        lambda fpr, tpr, weights: _reduce_logauc(
            [fpr, fpr], [tpr, tpr * torch.nan], average="weighted", weights=weights
        ),
        torch.linspace(0, 1, 9),
        torch.linspace(0, 1, 9).sqrt(),
        torch.tensor([1.0, 2]),
    ),
)
for (name, options), thresholds in itertools.product(FIXED.items(), (None, 4)):
    J(
        f"binary {name}",
        lambda name=name, options=options, thresholds=thresholds: (
            getattr(C, f"binary_{name}"),
            *binary(),
            K(thresholds=thresholds, **options),
        ),
    )
    J(
        f"binary {name} of one class",
        lambda name=name, options=options, thresholds=thresholds: (
            getattr(C, f"binary_{name}"),
            scores(),
            torch.zeros(12).long(),
            K(thresholds=thresholds, **options),
        ),
    )
    J(
        f"multiclass {name}",
        lambda name=name, options=options, thresholds=thresholds: (
            getattr(C, f"multiclass_{name}"),
            *multiclass(),
            K(num_classes=4, thresholds=thresholds, **options),
        ),
    )
J(
    "specicity_at_sensitivity",
    lambda: (C.specificity_sensitivity.specicity_at_sensitivity, *binary(), K(task="binary", min_sensitivity=0.5)),
)
for squared in (False, True):
    J("binary hinge", lambda squared=squared: (_binary_hinge_loss_update, torch.randn(6), classes(6), squared), True)
    for mode in ("crammer-singer", "one-vs-all"):
        J(
            f"multiclass hinge {mode}",
            lambda squared=squared, mode=mode: (
                C.multiclass_hinge_loss,
                *multiclass(),
                K(num_classes=4, squared=squared, multiclass_mode=mode),
            ),
            True,
        )
for norm in ("l1", "l2", "max"):
    J(f"calibration {norm}", lambda norm=norm: (C.binary_calibration_error, *binary(), K(norm=norm)))
    J(
        f"calibration {norm} of right scores",
        lambda norm=norm: (
            C.binary_calibration_error,
            torch.tensor([0.0, 1, 1]),
            torch.tensor([0, 1, 1]),
            K(norm=norm),
        ),
    )
for task in ("demographic_parity", "equal_opportunity", "all"):
    J(f"fairness {task}", lambda task=task: (C.binary_fairness, *binary(), classes(most=3), task))
    J(
        f"fairness {task} of equal groups",
        lambda task=task: (C.binary_fairness, torch.ones(4), torch.ones(4).long(), classes(4), task),
    )
J("group rates", lambda: (C.binary_groups_stat_rates, *binary(), classes(), 2))
J("group rates of other groups", lambda: (C.binary_groups_stat_rates, *binary(), classes() * 4, 2))

for name in (
    "adjusted_mutual_info_score adjusted_rand_score completeness_score homogeneity_score rand_score v_measure_score"
).split():
    J(name, lambda name=name: (getattr(U, name), classes(most=3), classes(most=3)))
    J(f"{name} of equal labels", lambda name=name: ((lambda x, f=getattr(U, name): f(x, x)), classes(most=3)))
    J(f"{name} of one class", lambda name=name: (getattr(U, name), torch.zeros(12).long(), classes(most=3)))
    J(f"{name} to one class", lambda name=name: (getattr(U, name), classes(most=3), torch.zeros(12).long()))
    J(f"{name} of unlike labels", lambda name=name: (getattr(U, name), torch.arange(4), torch.zeros(4).long()))
J("calinski", lambda: (U.calinski_harabasz_score, scores(12, 2), torch.arange(12) % 3))
J("calinski of equal points", lambda: (U.calinski_harabasz_score, torch.ones(12, 2), torch.arange(12) % 3))

OBJECTS = torch.tensor([[[[6, 0], [0, 0], [6, 0]], [[0, 1], [0, 0], [7, 0]], [[7, 0], [7, 0], [7, 0]]]])
for function in (panoptic_quality, modified_panoptic_quality):
    for given in (OBJECTS, torch.where(OBJECTS == 6, 7, OBJECTS), torch.where(OBJECTS == 6, 9, OBJECTS)):
        for options in ({}, {"allow_unknown_preds_category": True}):
            J(
                function.__name__,
                lambda function=function, given=given, options=options: (
                    function,
                    given.clone(),
                    OBJECTS.clone(),
                    K(things={0, 1}, stuffs={6, 7}, **options),
                ),
            )


def images(channels=3, size=24):
    return scores(1, channels, size, size), scores(1, channels, size, size)


def features(kind, x):
    """The slices of a network of torchvision, without their layers."""
    net = kind.__new__(kind)
    nn.Module.__init__(net)
    net.slices = nn.ModuleList([nn.ReLU()] * 7)
    for place in range(1, 6):
        setattr(net, f"slice{place}", nn.ReLU())
    return net(x)


for kind in (lpips.SqueezeNet, lpips.Alexnet, lpips.Vgg16):
    J(kind.__name__, lambda kind=kind: (features, kind, scores(1, 3, 4, 4)))
for normalize in (False, True):
    for shift in (0, -0.5, 0.5, -1.5):
        J(
            "lpips",
            lambda normalize=normalize, shift=shift: (
                lpips._lpips_update,
                scores(1, 3, 4, 4) + shift,
                scores(1, 3, 4, 4),
                lambda x, y, normalize: x - y,
                normalize,
            ),
        )
        J(
            "valid image",
            lambda normalize=normalize, shift=shift: (lpips._valid_img, scores(1, 3, 4, 4) + shift, normalize),
        )
        J(
            "arniqa",
            lambda normalize=normalize, shift=shift: (
                lambda x, normalize: _arniqa_update(x, Normalized(), normalize),
                scores(1, 3, 4, 4) + shift,
                normalize,
            ),
        )


class Normalized(nn.Module):
    def forward(self, x, normalize):
        return x.mean((1, 2, 3))


for options in ({}, {"data_range": 1.0}, {"data_range": (0.2, 0.8)}, {"return_full_image": True}, {"sigma": 0.5}):
    J(
        "ssim",
        lambda options=options: (I.structural_similarity_index_measure, *images(), K(kernel_size=5, **options)),
        True,
    )
J(
    "ssim of a range",
    lambda: (
        lambda x, y, most: I.structural_similarity_index_measure(x, y, data_range=most),
        *images(),
        torch.tensor(1.0),
    ),
)
J("vif", lambda: (I.visual_information_fidelity, *images(1, 41)))
J("vif of flat images", lambda: (I.visual_information_fidelity, torch.ones(1, 1, 41, 41), scores(1, 1, 41, 41)))
J("vif of opposites", lambda: (lambda x: I.visual_information_fidelity(1 - x, x), scores(1, 1, 41, 41)))


class Flat(nn.Module):
    num_features = 3

    def forward(self, x):
        return x.float().mean((2, 3))


def distance(kind, real, fake, **options):
    metric = kind(feature=Flat(), normalize=True, **options)
    metric.update(real, real=True)
    metric.update(fake, real=False)
    found = metric.compute()
    metric.reset()
    return found, [value for value in metric.metric_state.values() if isinstance(value, torch.Tensor)]


for kind in (fid.FrechetInceptionDistance, mifid.MemorizationInformedFrechetInceptionDistance):
    for kept in (False, True):
        J(
            kind.__name__,
            lambda kind=kind, kept=kept: (
                distance,
                kind,
                scores(4, 3, 4, 4),
                scores(4, 3, 4, 4),
                K(reset_real_features=kept),
            ),
        )
    J(f"{kind.__name__} of equal images", lambda kind=kind: (lambda x: distance(kind, x, x), scores(4, 3, 4, 4)))
    J(f"{kind.__name__} of one image", lambda kind=kind: (distance, kind, scores(1, 3, 4, 4), scores(1, 3, 4, 4)))
for scale in (0.0, 1.0):
    J("cosine distance", lambda scale=scale: (mifid._compute_cosine_distance, scores(4, 3), scores(4, 3) * scale))
J(
    "mifid",
    lambda: (mifid._mifid_compute, scores(3), torch.eye(3), scores(4, 3), scores(3), torch.eye(3) * 2, scores(4, 3)),
)
J(
    "mifid of equal features",
    lambda: (
        lambda mean, matrix, x: mifid._mifid_compute(mean, matrix, x, mean, matrix, x),
        scores(3),
        torch.eye(3),
        scores(4, 3),
    ),
)

for function in (N.theils_u,):
    J(function.__name__, lambda function=function: (function, classes(most=3), classes(most=3)))
    J(
        f"{function.__name__} of one class",
        lambda function=function: (function, torch.zeros(12).long(), classes(most=3)),
    )
    J(
        f"{function.__name__} to one class",
        lambda function=function: (function, classes(most=3), torch.zeros(12).long()),
    )
for multioutput in ("raw_values", "uniform_average", "variance_weighted"):
    for function in (R.explained_variance, R.r2_score):
        J(
            f"{function.__name__} {multioutput}",
            lambda function=function, multioutput=multioutput: (
                function,
                scores(6, 3),
                scores(6, 3),
                K(multioutput=multioutput),
            ),
            True,
        )
        J(
            f"{function.__name__} {multioutput} of constants",
            lambda function=function, multioutput=multioutput: (
                function,
                torch.tensor([1.0, 1, 0]).repeat(6, 1),
                torch.tensor([1.0, 0, 0.5]).repeat(6, 1),
                K(multioutput=multioutput),
            ),
        )
        J(
            f"{function.__name__} {multioutput} of one column",
            lambda function=function, multioutput=multioutput: (
                function,
                scores(6),
                scores(6),
                K(multioutput=multioutput),
            ),
        )
J("r2_score of one", lambda: (R.r2_score, scores(1), scores(1)))
J("r2_score adjusted", lambda: (R.r2_score, scores(6), scores(6), K(adjusted=2)))
J("pearson", lambda: (R.pearson_corrcoef, scores(6), scores(6)), True)
J("pearson of columns", lambda: (R.pearson_corrcoef, scores(6, 3), scores(6, 3)))
J("pearson of constants", lambda: (R.pearson_corrcoef, torch.ones(6), scores(6)))
J("pearson of some constants", lambda: (R.pearson_corrcoef, scores(6, 3) * torch.tensor([0.0, 1, 1]), scores(6, 3)))
for power in (-1.0, 0.0, 1.0, 1.5, 2.0, 3.0):
    J(f"tweedie {power}", lambda power=power: (R.tweedie_deviance_score, scores(6) + 0.1, scores(6) + 0.1, power), True)
    J(
        f"tweedie {power} of zeros",
        lambda power=power: (R.tweedie_deviance_score, scores(6) + 0.1, torch.zeros(6), power),
    )
    J(f"tweedie {power} to zeros", lambda power=power: (R.tweedie_deviance_score, torch.zeros(6), scores(6), power))

for name in "average_precision fall_out normalized_dcg r_precision recall reciprocal_rank auroc hit_rate".split():
    function = getattr(Q, f"retrieval_{name}")
    J(f"retrieval {name}", lambda function=function: (function, scores(6), classes(6)))
    J(f"retrieval {name} of floats", lambda function=function: (function, scores(6), classes(6).float()))
    J(f"retrieval {name} of other labels", lambda function=function: (function, scores(6), classes(6) * 3))
    J(f"retrieval {name} of none", lambda function=function: (function, scores(6), torch.zeros(6).long()))
    J(f"retrieval {name} of all", lambda function=function: (function, scores(6), torch.ones(6).long()))


def recall_at(preds, target, indexes):
    metric = RetrievalRecallAtFixedPrecision(min_precision=0.5, max_k=3)
    metric.update(preds, target, indexes)
    return metric.compute()


J("recall at a precision", lambda: (recall_at, scores(6), classes(6), torch.tensor([0, 0, 0, 1, 1, 1])))
J("recall at a precision of none", lambda: (recall_at, scores(6), torch.zeros(6).long(), torch.zeros(6).long()))
for weight in ("simple", "linear", "square"):
    for per_class in (False, True):
        J(
            f"generalized dice {weight}",
            lambda weight=weight, per_class=per_class: (
                S.generalized_dice_score,
                classes(2, 3, 6, 6),
                classes(2, 3, 6, 6),
                K(num_classes=3, weight_type=weight, per_class=per_class),
            ),
        )
        J(
            f"generalized dice {weight} of indices",
            lambda weight=weight, per_class=per_class: (
                S.generalized_dice_score,
                classes(2, 6, 6),
                classes(2, 6, 6),
                K(num_classes=3, weight_type=weight, per_class=per_class, input_format="index"),
            ),
        )
J("check_if_binarized", lambda: (check_if_binarized, classes(6)))
J("check_if_binarized of others", lambda: (check_if_binarized, scores(6)))
J("hausdorff", lambda: (S.hausdorff_distance, classes(1, 2, 6, 6), classes(1, 2, 6, 6), K(num_classes=2)))

PREDICTED = ["the cat is on the mat", "a dog"]
for wanted in (
    [["there is a cat on the mat", "a cat is on the mat"], ["a dog"]],
    [[""], [""]],
    [["xyz"], ["xyz xyz xyz"]],
):
    for function in (T.bleu_score, T.chrf_score, T.translation_edit_rate):
        for given in (PREDICTED, ["", ""]):
            J(function.__name__, lambda function=function, given=given, wanted=wanted: (function, given, wanted))
for answer in ("1976", "", "in the year 1976", "no"):
    J(
        "squad",
        lambda answer=answer: (
            T.squad,
            [{"prediction_text": answer, "id": "1"}],
            [{"answers": {"answer_start": [97], "text": ["1976"]}, "id": "1"}],
        ),
    )

for normalization in ("sigmoid", "softmax", None):
    for shift in (0, 1):
        J(
            f"normalize {normalization}",
            lambda normalization=normalization, shift=shift: (
                compute.normalize_logits_if_needed,
                scores(4, 3) + shift,
                normalization,
            ),
            True,
        )
J("bincount", lambda: (data._bincount, classes(most=4), 4))
J("bincount without a length", lambda: (data._bincount, classes(most=4)))


def full_state(metric, **inputs):
    ticks = itertools.count(0.0)
    with mock.patch.object(checks, "perf_counter", lambda: next(ticks)):
        checks.check_forward_full_state_property(metric, input_args=inputs, num_update_to_compare=[3, 4], reps=1)


class Resetting(BinaryAccuracy):
    def update(self, preds, target):
        super().update(preds, target)
        if self.tp.sum() > 2:
            self.reset()


for metric in (BinaryAccuracy, Resetting):
    J(
        f"full state of {metric.__name__}",
        lambda metric=metric: (lambda x, y: full_state(metric, preds=x, target=y), torch.ones(2), torch.ones(2).long()),
    )


def gathered(x):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        return distributed.gather_all_tensors(x)
    finally:
        dist.destroy_process_group()


J("gather", lambda: (gathered, scores(3, 2)))
