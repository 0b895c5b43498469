"""Calls of monai that reach what ``fix --unsafe`` edits. Needs scipy and scikit-image."""

# mypy: ignore-errors

import copy
import itertools
import logging
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from common import J as add
from common import K
from monai import inferers, losses, metrics
from monai import transforms as T
from monai.apps import utils as app_utils
from monai.apps.detection.networks.retinanet_detector import RetinaNetDetector
from monai.apps.detection.transforms import box_ops
from monai.apps.detection.utils import box_coder, detector_utils
from monai.apps.detection.utils.anchor_utils import AnchorGeneratorWithAnchorShape
from monai.apps.generation.maisi.networks import autoencoderkl_maisi as maisi
from monai.apps.pathology.transforms.post.array import GenerateInstanceBorder
from monai.apps.vista3d import inferer as vista_inferer
from monai.apps.vista3d import sampler as vista_sampler
from monai.auto3dseg import analyzer
from monai.data import MetaTensor, box_utils
from monai.data import utils as data_utils
from monai.data.test_time_augmentation import TestTimeAugmentation
from monai.fl.client import monai_algo
from monai.inferers import utils as inferer_utils
from monai.losses import unified_focal_loss
from monai.metrics import embedding_collapse
from monai.metrics import utils as metric_utils
from monai.metrics.cumulative_average import CumulativeAverage
from monai.metrics.meandice import DiceHelper
from monai.networks import nets
from monai.networks import utils as net_utils
from monai.networks.layers import AffineTransform, SavitzkyGolayFilter, convutils
from monai.transforms import utils as transform_utils
from monai.transforms.lazy import functional as lazy
from monai.transforms.post.array import SobelGradients
from monai.utils import profiling
from monai.visualize import class_activation_maps

# Otherwise, a handler of the first call writes what later ones log.
logging.getLogger().setLevel(logging.INFO)


def J(name, build, gradients=False):
    """Adds a call, before which the random numbers of the transforms start anew."""

    def seeded():
        T.Randomizable.R.seed(0)
        return build()

    add(name, seeded, gradients)


def logits(channels=3, size=6):
    return torch.randn(2, channels, size, size)


def classes(most=3, size=6):
    return torch.randint(0, most, (2, 1, size, size))


def one_hot(most=3, size=6):
    return torch.nn.functional.one_hot(torch.randint(0, most, (2, size, size)), most).permute(0, 3, 1, 2).float()


def boxes(count=3):
    low = torch.rand(count, 2) * 4
    return torch.cat([low, low + torch.rand(count, 2) * 4 + 1], 1)


# Losses
SEGMENTATION = (
    "DiceLoss GeneralizedDiceLoss DiceCELoss DiceFocalLoss GeneralizedDiceFocalLoss TverskyLoss HausdorffDTLoss "
    "LogHausdorffDTLoss MCCLoss BoundaryLoss SoftclDiceLoss SoftDiceclDiceLoss"
).split()
OF_FOCAL = (
    losses.FocalLoss,
    *(getattr(unified_focal_loss, f"Asymmetric{name}Loss") for name in ("FocalTversky", "Focal")),
)
OPTIONS = {
    "softmax": {"softmax": True, "to_onehot_y": True},
    "sigmoid": {"sigmoid": True, "include_background": False},
    "batch": {"softmax": True, "to_onehot_y": True, "batch": True},
}
for name in SEGMENTATION:
    for title, options in OPTIONS.items():
        if title == "batch" and name in ("SoftclDiceLoss", "SoftDiceclDiceLoss"):
            continue
        J(
            f"{name} {title}",
            lambda name=name, options=options: (
                getattr(losses, name)(**options),
                logits(),
                classes() if "to_onehot_y" in options else one_hot(),
            ),
            True,
        )
    J(
        f"{name} of one channel",
        lambda name=name: (
            getattr(losses, name)(softmax=True, to_onehot_y=True, include_background=False),
            logits(1),
            classes(2),
        ),
        True,
    )
for kind in (*OF_FOCAL, losses.AsymmetricUnifiedFocalLoss):
    J(kind.__name__, lambda kind=kind: (kind(to_onehot_y=True), logits(2), classes(2)), True)
    J(
        f"{kind.__name__} of one channel",
        lambda kind=kind: (kind(to_onehot_y=True), torch.rand(2, 1, 6, 6), classes(2)),
        True,
    )
J(
    "AsymmetricUnifiedFocalLoss of other classes",
    lambda: (losses.AsymmetricUnifiedFocalLoss(to_onehot_y=True), torch.rand(2, 2, 6, 6), classes(2) * 5),
    True,
)
J(
    "FocalLoss without background",
    lambda: (
        losses.FocalLoss(to_onehot_y=True, use_softmax=True, include_background=False, alpha=0.5),
        logits(),
        classes(),
    ),
    True,
)
J("MaskedDiceLoss", lambda: (losses.MaskedDiceLoss(softmax=True), logits(1), classes(2), torch.ones(2, 1, 6, 6)), True)
J("PatchAdversarialLoss", lambda: (losses.PatchAdversarialLoss(), torch.rand(2, 1, 4, 4), False, False), True)
J(
    "unified focal loss, ignoring",
    lambda: (losses.AsymmetricUnifiedFocalLoss(ignore_index=1, to_onehot_y=True), torch.rand(2, 1, 6, 6), classes(2)),
    True,
)
for weight in ([0.5, 1.0, 2.0], [-0.5, 1.0, 2.0], 0.5, -0.5):
    given = torch.tensor(weight)
    J(
        "DiceLoss of weights",
        lambda given=given: (
            lambda x, y, w: losses.DiceLoss(softmax=True, to_onehot_y=True, weight=w)(x, y),
            logits(),
            classes(),
            given,
        ),
        True,
    )
    J(
        "FocalLoss of weights",
        lambda given=given: (
            lambda x, y, w: losses.FocalLoss(to_onehot_y=True, weight=w)(x, y),
            logits(),
            classes(),
            given,
        ),
        True,
    )
J("AUCMLoss", lambda: (losses.AUCMLoss(), torch.rand(6, 1), classes(2)[0, 0, 0][:, None]), True)
J("AUCMLoss of other labels", lambda: (losses.AUCMLoss(), torch.rand(6, 1), torch.full((6, 1), 2.0)), True)
for mask in (None, torch.ones(1, 1, 6, 6), torch.ones(2, 1, 3, 6), torch.ones(1, 1, 6)):
    J("MaskedLoss", lambda mask=mask: (losses.MaskedLoss(torch.nn.functional.mse_loss), logits(), logits(), mask), True)

# Metrics
for name, more in {
    "compute_dice": (),
    "compute_iou": (),
    "compute_generalized_dice": (),
    "get_confusion_matrix": (),
    "compute_hausdorff_distance": (),
    "compute_average_surface_distance": (),
    "compute_surface_dice": ([1.0, 1.0],),
    "compute_panoptic_quality": None,
}.items():
    if more is None:
        continue
    function = getattr(metrics, name)
    J(name, lambda function=function, more=more: (function, one_hot(), one_hot(), *more))
    J(f"{name} of none", lambda function=function, more=more: (function, torch.zeros(2, 3, 6, 6), one_hot(), *more))
    J(
        f"{name} of nothing",
        lambda function=function, more=more: (function, torch.zeros(2, 3, 6, 6), torch.zeros(2, 3, 6, 6), *more),
    )
    J(f"{name} of fractions", lambda function=function, more=more: (function, one_hot() / 2, one_hot(), *more))
for weight, summed in itertools.product(("square", "simple", "uniform"), (False, True)):
    for given in (one_hot(), one_hot() * torch.tensor([0.0, 1, 1]).view(3, 1, 1), torch.zeros(2, 3, 6, 6)):
        J(
            f"generalized dice {weight}",
            lambda weight=weight, summed=summed, given=given: (
                metrics.compute_generalized_dice,
                one_hot(),
                given.clone(),
                K(weight_type=weight, sum_over_classes=summed),
            ),
        )
for subvoxels in (False, True):
    for limits in ([1.0, 1.0], [0.0, 2.0], [float("inf"), 1.0], [-1.0, 1.0]):
        J(
            "surface dice",
            lambda subvoxels=subvoxels, limits=limits: (
                metrics.compute_surface_dice,
                one_hot(3, 8),
                one_hot(3, 8),
                limits,
                K(use_subvoxels=subvoxels),
            ),
        )
J(
    "surface dice of one",
    lambda: (
        lambda x: metrics.compute_surface_dice(x, x, [1.0], include_background=True, use_subvoxels=True),
        torch.ones(1, 1, 6, 6),
    ),
)
for empty, component in itertools.product((False, True), (False, True)):
    J(
        "DiceHelper",
        lambda empty=empty, component=component: (
            DiceHelper(include_background=True, per_component=component, ignore_empty=empty, softmax=True),
            one_hot(2),
            one_hot(2),
        ),
    )
    J(
        "DiceHelper of none",
        lambda empty=empty, component=component: (
            DiceHelper(include_background=True, per_component=component, ignore_empty=empty, softmax=True),
            one_hot(2),
            torch.tensor([1.0, 0]).view(1, 2, 1, 1).repeat(2, 1, 6, 6),
        ),
    )
    J(
        "DiceHelper of nothing",
        lambda empty=empty, component=component: (
            lambda x: DiceHelper(include_background=True, per_component=component, ignore_empty=empty, softmax=True)(
                x, x
            ),
            torch.tensor([1.0, 0]).view(1, 2, 1, 1).repeat(2, 1, 6, 6),
        ),
    )
    for given in (one_hot(2), torch.tensor([1.0, 0]).view(1, 2, 1, 1).repeat(2, 1, 6, 6)):
        J(
            "compute_cc_dice",
            lambda empty=empty, given=given: (
                DiceHelper(ignore_empty=empty, per_component=True).compute_cc_dice,
                one_hot(2)[:1],
                given[:1].clone(),
            ),
        )
        J(
            "compute_cc_dice of nothing",
            lambda empty=empty, given=given: (
                DiceHelper(ignore_empty=empty, per_component=True).compute_cc_dice,
                torch.zeros(1, 2, 6, 6),
                given[:1].clone(),
            ),
        )
    J(
        "compute_channel",
        lambda empty=empty: (DiceHelper(ignore_empty=empty).compute_channel, torch.rand(6, 6) > 0.5, torch.rand(6, 6)),
        True,
    )
    J(
        "compute_channel of zeros",
        lambda empty=empty: (DiceHelper(ignore_empty=empty).compute_channel, torch.rand(6, 6) > 0.5, torch.zeros(6, 6)),
        True,
    )
    J(
        "compute_channel of nothing",
        lambda empty=empty: (
            DiceHelper(ignore_empty=empty).compute_channel,
            torch.zeros(6, 6) > 0.5,
            torch.zeros(6, 6),
        ),
        True,
    )


def averaged(*values):
    average = CumulativeAverage()
    for one in values:
        average.append(one)
    return average.aggregate()


J("CumulativeAverage", lambda: (averaged, torch.rand(3), torch.rand(3)))
J("CumulativeAverage of nan", lambda: (averaged, torch.tensor([1.0, torch.nan, 2]), torch.rand(3)))
J("CumulativeAverage of infinity", lambda: (averaged, torch.tensor(torch.inf), torch.rand(())))
LABELS = torch.tensor([0, 0, 1, 1, 2, 2])
for columns in (4, 6):
    J(
        "centroids",
        lambda columns=columns: (embedding_collapse._centroid_similarity, torch.randn(6, columns), LABELS.clone()),
        True,
    )
    J(
        "centroids of zeros",
        lambda columns=columns: (embedding_collapse._centroid_similarity, torch.zeros(6, columns), LABELS.clone()),
    )
    J(
        "centroids of one class",
        lambda columns=columns: (
            embedding_collapse._centroid_similarity,
            torch.randn(6, columns),
            torch.zeros(6).long(),
        ),
    )
    J("rank", lambda columns=columns: (embedding_collapse._effective_rank_score, torch.randn(6, columns)), True)
    J("rank of constants", lambda columns=columns: (embedding_collapse._effective_rank_score, torch.ones(6, columns)))
    J(
        "shift",
        lambda columns=columns: (embedding_collapse._domain_shift, torch.randn(6, columns), torch.randn(5, columns)),
        True,
    )
    J(
        "shift of constants",
        lambda columns=columns: (embedding_collapse._domain_shift, torch.ones(6, columns), torch.randn(6, columns)),
    )
    J(
        "collapse",
        lambda columns=columns: (
            embedding_collapse.compute_embedding_collapse,
            torch.randn(6, columns),
            LABELS.clone(),
        ),
    )
J("separation", lambda: (embedding_collapse._separation, torch.randn(6, 4), LABELS.clone()))
J("separation of many", lambda: (embedding_collapse._separation, torch.randn(6, 4), torch.arange(6)))
J("FID", lambda: (metrics.FIDMetric(), torch.rand(6, 3), torch.rand(6, 3)))
for scale in (-1.0, 1.0, torch.inf):
    J(
        "frechet",
        lambda scale=scale: (
            metrics.fid.compute_frechet_distance,
            torch.rand(2),
            torch.eye(2) * scale,
            torch.rand(2),
            torch.eye(2),
        ),
    )
J("FID of few", lambda: (metrics.FIDMetric(), torch.rand(2, 4), torch.rand(2, 4)))
for function in (metrics.compute_roc_auc, metrics.compute_average_precision):
    J(function.__name__, lambda function=function: (function, torch.rand(8), torch.arange(8) % 2))
    J(f"{function.__name__} of one class", lambda function=function: (function, torch.rand(8), torch.ones(8)))
    J(f"{function.__name__} of other classes", lambda function=function: (function, torch.rand(8), torch.arange(8) % 3))
J("is_binary_tensor", lambda: (metric_utils.is_binary_tensor, one_hot(), "x"))
J("is_binary_tensor of fractions", lambda: (metric_utils.is_binary_tensor, torch.rand(3), "x"))
J("variance", lambda: (metrics.VarianceMetric(spatial_map=True), torch.rand(3, 4)))
J(
    "label quality",
    lambda: (metrics.LabelQualityScore(scalar_reduction="none"), torch.rand(2, 3, 4), torch.rand(2, 3, 4)),
)
J("variance of one", lambda: (metrics.active_learning_metrics.compute_variance, torch.rand(1, 2, 4, 4)))
J(
    "confusion by sample",
    lambda: (metrics.ConfusionMatrixMetric(compute_sample=True), torch.ones(4, 2), torch.ones(4, 2)),
)
J("voronoi", lambda: (metric_utils.compute_voronoi_regions_fast, (torch.rand(6, 6) > 0.7).int()))

# Boxes
CODER = box_coder.BoxCoder((1.0, 1.0, 1.0, 1.0))
J("encode", lambda: (lambda x, y: CODER.encode([x], [y]), boxes(), boxes()))
J("encode of empty boxes", lambda: (lambda x, y: CODER.encode([x], [y]), boxes(), boxes()[:, [0, 1, 0, 1]]))
J("decode", lambda: (lambda x, y: CODER.decode(x, [y]), torch.randn(3, 4), boxes()))
J("decode of nan", lambda: (lambda x, y: CODER.decode(x, [y]), torch.full((3, 4), torch.nan), boxes()))
for name in ("box_iou", "box_giou", "box_pair_giou", "box_area"):
    function = getattr(box_utils, name)
    count = 1 if name == "box_area" else 2
    J(name, lambda function=function, count=count: (function, *(boxes() for _ in range(count))))
    J(
        f"{name} of empty boxes",
        lambda function=function, count=count: (function, *(boxes()[:, [0, 1, 0, 1]] for _ in range(count))),
    )
    if count == 2:
        J(f"{name} of an array", lambda function=function: (lambda x, y: function(x, y.numpy()), boxes(), boxes()))
J("boxes_center_distance", lambda: (lambda x, y: box_utils.boxes_center_distance(x, y.numpy()), boxes(), boxes()))
for mode in ("xyxy", "xxyy", "xywh", "ccwh"):
    J(f"convert to {mode}", lambda mode=mode: (box_utils.convert_box_mode, boxes(), "xyxy", mode))
    J(f"convert from {mode}", lambda mode=mode: (box_utils.convert_box_mode, -boxes(), mode, "xyxy"))
for target in ({"box": boxes(), "label": torch.zeros(3)}, {"box": torch.zeros(0), "label": torch.zeros(0).long()}):
    J(
        "check targets",
        lambda target=target: (
            detector_utils.check_training_targets,
            [torch.rand(1, 8, 8)],
            [dict(target)],
            2,
            "label",
            "box",
        ),
    )


def detector(debug=True):
    anchors = AnchorGeneratorWithAnchorShape(feature_map_scales=(1,), base_anchor_shapes=((2, 2), (4, 4)))
    net = torch.nn.Identity()
    net.spatial_dims, net.num_classes, net.num_anchors = 2, 3, 2
    net.cls_key, net.box_reg_key, net.size_divisible = "cls", "box", 1
    return RetinaNetDetector(net, anchors, debug=debug)


def matched(targets, anchors, quality):
    found = detector()
    found.proposal_matcher = Chosen(quality)
    with mock.patch("monai.apps.detection.networks.retinanet_detector.Matcher", Chosen):
        return found.compute_anchor_matched_idxs([anchors], [{"boxes": targets, "labels": LABELS[:3]}], [len(anchors)])


class Chosen:
    def __init__(self, quality):
        self.quality = quality

    def __call__(self, matrix):
        return torch.where(matrix.amax(0) > self.quality, matrix.argmax(0), -1)


for quality in (-1.0, 0.3, 2.0):
    J("matched", lambda quality=quality: (matched, boxes(), boxes(5), quality))
J(
    "samples of classes",
    lambda: (
        lambda x, b, y, m: detector().get_cls_train_sample_per_image(
            x, {"box": b, "boxes": b, "labels": y, "label": y}, m
        ),
        torch.randn(5, 3),
        boxes(),
        LABELS[:3].clone(),
        torch.tensor([0, -1, 2, -1, -1]),
    ),
)
J(
    "samples of boxes",
    lambda: (
        lambda x, b, y, a, m: detector().get_box_train_sample_per_image(
            x, {"box": b, "boxes": b, "labels": y, "label": y}, a, m
        ),
        torch.randn(5, 4),
        boxes(),
        LABELS[:3].clone(),
        boxes(5),
        torch.tensor([0, -1, 2, -1, -1]),
    ),
)
J(
    "training components",
    lambda: (lambda d: (setattr(d, "proposal_matcher", 1), d._check_detector_training_components()), detector()),
)
J("reshaped", lambda: (lambda x: detector()._reshape_maps([x]), torch.randn(1, 6, 4, 4)))
J("clip masks", lambda: (box_ops.convert_box_to_mask, np.array([[0, 0, 3, 3]]), np.array([1]), (4, 4), 0))
J(
    "convert_box_to_mask",
    lambda: (box_ops.convert_box_to_mask, torch.tensor([[0, 0, 9, 3.0]]), torch.tensor([1]), (4, 4), -1),
)


# Networks and layers
def bessel(function, *given):
    return function(*given)


for value in (0.0, 0.5, -0.5, 5.0, -5.0):
    for function in (convutils._modified_bessel_0, convutils._modified_bessel_1):
        J(function.__name__, lambda function=function, value=value: (bessel, function, torch.tensor(value)))
    for order in (2, 3):
        J("bessel", lambda value=value, order=order: (bessel, convutils._modified_bessel_i, order, torch.tensor(value)))
for kind in ("erf", "sampled", "scalespace"):
    J(
        f"gaussian_1d {kind}",
        lambda kind=kind: (lambda s: convutils.gaussian_1d(s, approx=kind), torch.tensor(1.5)),
        True,
    )
J("same_padding", lambda: (convutils.same_padding, 4, 1))
for size, order in ((5, 2), (7, 3)):
    J("savitzky golay", lambda size=size, order=order: (SavitzkyGolayFilter(size, order), torch.rand(1, 1, 20)))
for matrix in (torch.eye(3)[:2], torch.eye(3), torch.eye(3)[:2].repeat(2, 1, 1)):
    J(
        "affine",
        lambda matrix=matrix: (AffineTransform(spatial_size=(4, 4)), torch.rand(2, 1, 6, 6), matrix.clone()),
        True,
    )
for align, centered in itertools.product((False, True), (False, True)):
    J(
        "normalize_transform",
        lambda align=align, centered=centered: (
            lambda shape: net_utils.normalize_transform(shape, align_corners=align, zero_centered=centered),
            torch.tensor([4.0, 1.0]),
        ),
    )
J("predict_segmentation", lambda: (net_utils.predict_segmentation, logits(1), True))
J("copy_model_state", lambda: (net_utils.copy_model_state, torch.nn.Linear(2, 3), torch.nn.Linear(2, 4)))
for labels in ([1, 23], [1, 2], None):
    J(
        "point labels",
        lambda labels=labels: (
            lambda x: nets.VISTA3D.convert_point_label(None, x, labels),
            torch.tensor([[-1.0, 0, 1], [-1, 0, 1]]),
        ),
        True,
    )
for split in (1, 2):
    J(
        "maisi convolution",
        lambda split=split: (
            maisi.MaisiConvolution(3, 2, 2, num_splits=split, dim_split=0, print_info=True, save_mem=False),
            torch.rand(1, 2, 8, 4, 4),
        ),
        True,
    )
J(
    "maisi norm",
    lambda: (maisi.MaisiGroupNorm3D(2, 4, print_info=True, save_mem=False), torch.rand(1, 4, 4, 4, 4)),
    True,
)
J(
    "maisi norm in half precision",
    lambda: (
        maisi.MaisiGroupNorm3D(2, 4, norm_float16=True, print_info=True, save_mem=False),
        torch.rand(1, 4, 4, 4, 4),
    ),
)


def autoencoder():
    return nets.AutoencoderKL(
        2, channels=(4, 4), num_res_blocks=1, attention_levels=(False, True), norm_num_groups=2, latent_channels=2
    )


def old_states(missing, verbose):
    model = autoencoder()
    state = dict(model.state_dict())
    if missing:
        state["other"] = state.pop(next(iter(state)))
    model.load_old_state_dict(copy.copy(state), verbose)


for missing, verbose in itertools.product((False, True), (False, True)):
    J("old states", lambda missing=missing, verbose=verbose: (old_states, missing, verbose))
J(
    "swin size",
    lambda: (
        lambda: nets.SwinUNETR(1, 2, feature_size=12, spatial_dims=2, depths=(1, 1, 1, 1))._check_input_size((32, 33)),
    ),
)


# Inferers
def mean(x, **named):
    return x.mean(1, keepdim=True)


def around(x, points, labels, previous=None):
    return vista_inferer.point_based_window_inferer(
        x, (4, 4, 4), lambda inputs, **named: inputs, points, labels, prev_mask=previous
    )


for given in (None, torch.rand(1, 1, 8, 8, 8)):
    J(
        "point inferer",
        lambda given=given: (
            around,
            torch.rand(1, 1, 8, 8, 8),
            torch.tensor([[[2.0, 2, 2]]]),
            torch.ones(1, 1),
            None if given is None else given.clone(),
        ),
    )
for overlap in (0.25, -0.5, 1.0):
    J(
        "sliding window",
        lambda overlap=overlap: (
            inferer_utils.sliding_window_inference,
            torch.rand(1, 1, 8, 8),
            (4, 4),
            2,
            mean,
            K(overlap=overlap, mode="gaussian"),
        ),
    )
for offset, overlap in ((0, 0), (-9, 0), (9, 0), (0, 9)):
    J(
        "splitter",
        lambda offset=offset, overlap=overlap: (
            lambda x: [one for one, _ in inferers.SlidingWindowSplitter(4, overlap, offset)(x)],
            torch.rand(1, 1, 8, 8),
        ),
    )
for mode in ("constant", "gaussian"):
    J(f"importance {mode}", lambda mode=mode: (lambda: data_utils.compute_importance_map((4, 4), mode),))
J("importance of a wide window", lambda: (lambda s: data_utils.compute_importance_map((64, 64), "gaussian", s), 0.01))
for drop in (0.0, 1.0):
    J(
        "prompts",
        lambda drop=drop: (
            lambda x: vista_sampler.sample_prompt_pairs(
                x, [1, 2], drop_label_prob=drop, drop_point_prob=0.5, max_point=3
            ),
            torch.randint(0, 3, (1, 1, 4, 4, 4)),
        ),
    )
    J(
        "prompts with background",
        lambda drop=drop: (
            lambda x: vista_sampler.sample_prompt_pairs(
                x, [0, 1, 7], include_background=True, drop_label_prob=drop, drop_point_prob=1.0
            ),
            torch.randint(0, 2, (1, 1, 4, 4, 4)),
        ),
    )


def augmented(x):
    found = TestTimeAugmentation(
        T.Compose([T.RandFlipd(["image"], prob=0.5)]),
        batch_size=2,
        inferrer_fn=lambda one: one + 1,
        device="cpu",
        image_key="image",
        nearest_interp=False,
        num_workers=0,
    )
    return found({"image": MetaTensor(x)}, num_examples=4)


J("test time augmentation", lambda: (augmented, torch.rand(1, 4, 4)))
J(
    "weight difference",
    lambda: (lambda x, y: monai_algo.compute_weight_diff({"w": x}, {"w": y}), torch.rand(3), torch.rand(3)),
)


# Transforms
J("instance border", lambda: (GenerateInstanceBorder(3), torch.ones(1, 8, 8), torch.rand(2, 8, 8)))
J("instance border of a flat map", lambda: (GenerateInstanceBorder(3), torch.ones(1, 8, 8), torch.ones(2, 8, 8)))
J(
    "instance border of a slope",
    lambda: (GenerateInstanceBorder(3), torch.ones(1, 8, 8), torch.arange(8.0).repeat(2, 8, 1)),
)
for normalized in (False, True):
    for given in (torch.rand(1, 6, 6), torch.ones(1, 6, 6)):
        J(
            "sobel",
            lambda normalized=normalized, given=given: (
                SobelGradients(3, normalize_gradients=normalized),
                given.clone(),
            ),
            True,
        )
J(
    "keep components",
    lambda: (
        transform_utils.keep_components_with_positive_points,
        torch.randn(1, 1, 6, 6, 6),
        torch.tensor([[[2.0, 2, 2]]]),
        torch.ones(1, 1),
    ),
)
J(
    "keep components of nan",
    lambda: (
        transform_utils.keep_components_with_positive_points,
        torch.randn(1, 1, 6, 6, 6).masked_fill(torch.rand(6, 6, 6) > 0.8, torch.nan),
        torch.tensor([[[2.0, 2, 2]]]),
        torch.full((1, 1), 3.0),
    ),
)


def cropped(make, **data):
    return [sorted(one) for one in make()(data)], data


J(
    "RandSpatialCropSamplesd",
    lambda: (
        lambda x, y: cropped(lambda: T.RandSpatialCropSamplesd(["a"], (2, 2), 2, random_size=False), a=x, b=y),
        torch.rand(1, 6, 6),
        torch.rand(3),
    ),
)
J(
    "RandWeightedCropd",
    lambda: (
        lambda x, w, y: cropped(lambda: T.RandWeightedCropd(["a"], "w", (2, 2), 2), a=x, w=w, b=y),
        torch.rand(1, 6, 6),
        torch.rand(1, 6, 6),
        torch.rand(3),
    ),
)
J(
    "RandWeightedCrop of another size",
    lambda: (lambda x, w: T.RandWeightedCrop((2, 2), 2)(x, w), torch.rand(1, 6, 6), torch.rand(1, 4, 4)),
)
for kind in ("RandCropByPosNegLabeld", "RandCropByLabelClassesd"):
    more = {"num_classes": 2} if "Classes" in kind else {}
    J(
        kind,
        lambda kind=kind, more=more: (
            lambda x, label, y: cropped(
                lambda: getattr(T, kind)(["a"], "label", (2, 2), num_samples=2, **more), a=x, label=label, b=y
            ),
            torch.rand(1, 6, 6),
            (torch.rand(1, 6, 6) > 0.5).float(),
            torch.rand(3),
        ),
    )
    J(
        f"{kind} of one class",
        lambda kind=kind, more=more: (
            lambda x, label, y: cropped(
                lambda: getattr(T, kind)(["a"], "label", (2, 2), num_samples=2, **more), a=x, label=label, b=y
            ),
            torch.rand(1, 6, 6),
            torch.zeros(1, 6, 6),
            torch.rand(3),
        ),
    )
for listed in (False, True):
    J(
        "SplitDimd",
        lambda listed=listed: (
            lambda x, y: T.SplitDimd(["a"], output_postfixes=None, list_output=listed)({"a": x, "b": y}),
            torch.rand(2, 3),
            torch.rand(3),
        ),
    )


def pending(x):
    image = MetaTensor(x)
    image.push_pending_operation(
        {"affine": torch.eye(4), "lazy_affine": torch.eye(4), "lazy_shape": tuple(x.shape[1:])}
    )
    return image


def logged(x, transform, key=None):
    data = x if key is None else {key: x}
    with mock.patch.object(lazy, "get_logger", logging.getLogger):
        lazy._log_pending_info(transform, data, "Apply", lazy=True, key=key, logger_name=True)
        lazy._log_applied_info(MetaTensor(torch.as_tensor(x)), key, True)


J("lazy log", lambda: (logged, torch.rand(1, 4, 4), T.Flip(0)))
J("lazy log of a key", lambda: (logged, torch.rand(1, 4, 4), T.Flipd(["a"], 0), "a"))
J("pending operations", lambda: (lambda x: transform_utils.check_non_lazy_pending_ops(pending(x)), torch.rand(1, 4, 4)))
for name, make in {
    "Affine": lambda: T.Affine(),
    "GridDistortion": lambda: T.GridDistortion(3, [(0.0,) * 3] * 2),
    "GridSplit": lambda: T.GridSplit(),
    "RandGridDistortion": lambda: T.RandGridDistortion(prob=1.0),
    "GridPatch": lambda: T.GridPatch((2, 2)),
    "RandGridPatch": lambda: T.RandGridPatch((2, 2)),
    "RandSimulateLowResolution": lambda: T.RandSimulateLowResolution(prob=1.0),
}.items():
    J(f"{name}", lambda make=make: (lambda x: make()(x), torch.rand(1, 4, 4)))
    J(f"{name} of pending operations", lambda make=make: (lambda x: make()(pending(x)), torch.rand(1, 4, 4)))
J("Spacing", lambda: (lambda x: T.Spacing((1.0, 1.0))(x), torch.rand(1, 4, 4)))
J(
    "Spacing of an extent",
    lambda: (lambda x: T.Spacing((1.0, 1.0), scale_extent=True, align_corners=True)(x), torch.rand(1, 4, 4)),
)
J(
    "Spacing of bounds",
    lambda: (lambda x: T.Spacing((1.0, 1.0), min_pixdim=(2.0, 2.0), max_pixdim=(1.0, 1.0))(x), torch.rand(1, 4, 4)),
)
J("Orientation", lambda: (lambda x: T.Orientation("RA", labels=None)(x), torch.rand(1, 4, 4)))
J(
    "Orientation of canonical axes",
    lambda: (lambda x: T.Orientation("RA", as_closest_canonical=True, labels=None)(x), torch.rand(1, 4, 4)),
)
J("SqueezeDim", lambda: (lambda x: T.SqueezeDim(None, update_meta=True)(MetaTensor(x)), torch.rand(1, 4, 4)))
J("SqueezeDim of an affine", lambda: (lambda x: T.SqueezeDim(1)(MetaTensor(x)), torch.rand(1, 1, 4, 4)))
J("EnsureChannelFirst", lambda: (lambda x: T.EnsureChannelFirst(strict_check=False)(x), torch.rand(4, 4)))
J(
    "EnsureChannelFirst of metadata",
    lambda: (lambda x: T.EnsureChannelFirst(strict_check=False)(MetaTensor(x)), torch.rand(4, 4)),
)
J("DataStats", lambda: (lambda x: T.DataStats()(x), torch.rand(1, 4, 4)))
J("ScaleIntensityRange", lambda: (lambda x: T.ScaleIntensityRange(1.0, 1.0, 0.0, 1.0)(x), torch.rand(1, 4, 4)))
J("LabelToContour", lambda: (lambda x: T.LabelToContour()(x), classes(2)[0].float()))
J("MeanEnsemble", lambda: (lambda x: T.MeanEnsemble()(x), torch.rand(2, 3, 4, 4)))
J("VoteEnsemble", lambda: (lambda x: T.VoteEnsemble(num_classes=3)(x), [one_hot()[0], one_hot()[1]]))
J("ProbNMS", lambda: (lambda x: T.ProbNMS(spatial_dims=2, box_size=3)(x), torch.rand(6, 6)))
J("ProbNMS of no box", lambda: (lambda x: T.ProbNMS(spatial_dims=2, box_size=0)(x), torch.rand(6, 6)))
for margin in (1, -1):
    J(
        "bounding box",
        lambda margin=margin: (
            lambda x: transform_utils.generate_spatial_bounding_box(x, margin=margin),
            torch.rand(1, 6, 6),
        ),
    )
J("volume", lambda: (lambda x: transform_utils.compute_divisible_spatial_size((4, 4), 3), torch.rand(1)))
for given in ({}, {"pixdim": [1.0, 1.0]}, {"pixdim": [0.0, 0.0]}):
    J(
        "sphericity",
        lambda given=given: (
            lambda x: (
                transform_utils.get_largest_connected_component_mask(x)
                if not given
                else T.RemoveSmallObjects(2, by_measure=True, **given)(x)
            ),
            (torch.rand(1, 6, 6) > 0.5).int(),
        ),
    )
    J(
        "small objects",
        lambda given=given: (
            lambda x: T.RemoveSmallObjects(2, by_measure=True, **given)(x),
            (torch.rand(1, 6, 6) > 0.5).int(),
        ),
    )
    J(
        "small objects by number",
        lambda given=given: (
            lambda x: T.RemoveSmallObjects(2, **given)(MetaTensor(x)),
            (torch.rand(1, 6, 6) > 0.5).int(),
        ),
    )
for size in (3, 4):
    J(
        "erode",
        lambda size=size: (lambda x: T.utils_morphological_ops.erode(x, size), (torch.rand(1, 1, 6, 6) > 0.5).float()),
    )
for rank in (50.0, -1.0):
    J("percentile", lambda rank=rank: (T.utils_pytorch_numpy_unification.percentile, torch.rand(6), rank))
J("histogram of one value", lambda: (lambda x: T.RandHistogramShift(prob=1.0)(x), torch.ones(1, 4, 4)))
J("Orientation of more axes", lambda: (lambda x: T.Orientation("RAS", labels=None)(x), torch.rand(1, 4, 4)))
J(
    "Spacing of an extent, unaligned",
    lambda: (lambda x: T.Spacing((1.0, 1.0), scale_extent=True, align_corners=False)(x), torch.rand(1, 4, 4)),
)
for size in (None, (4, -1)):
    J(
        "RandAffine",
        lambda size=size: (
            lambda x: T.RandAffine(prob=1.0, spatial_size=size, cache_grid=True)(x),
            torch.rand(1, 4, 4),
        ),
    )
for name in ("RandAffined", "RandGridDistortiond"):
    J(name, lambda name=name: (lambda x: getattr(T, name)(["a"], prob=1.0)({"a": pending(x)}), torch.rand(1, 4, 4)))
J(
    "Rand2DElasticd",
    lambda: (lambda x: T.Rand2DElasticd(["a"], (2, 2), (0.0, 1.0), prob=1.0)({"a": pending(x)}), torch.rand(1, 4, 4)),
)
J(
    "Rand3DElasticd",
    lambda: (
        lambda x: T.Rand3DElasticd(["a"], (1, 2), (0.0, 1.0), prob=1.0)({"a": pending(x)}),
        torch.rand(1, 4, 4, 4),
    ),
)
J("Resize", lambda: (lambda x: T.Resize((2, 2), anti_aliasing=True, lazy=True)(MetaTensor(x)), torch.rand(1, 4, 4)))
J("roi weights", lambda: (lambda: inferers.SlidingWindowInferer((-1, 4), cache_roi_weight_map=True),))
J(
    "copied shapes",
    lambda: (
        net_utils.copy_model_state,
        torch.nn.Linear(2, 3),
        torch.nn.Linear(2, 4),
        K(mapping={"weight": "weight"}, inplace=False),
    ),
)
J(
    "replaced modules",
    lambda: (lambda: net_utils.replace_modules(torch.nn.Sequential(torch.nn.ReLU()), "0", torch.nn.GELU()),),
)
J(
    "casts around norms",
    lambda: (lambda: net_utils.add_casts_around_norms(torch.nn.Sequential(torch.nn.BatchNorm2d(2))),),
)
J(
    "meta affine",
    lambda: (lambda x: MetaTensor(x, affine=torch.eye(4), meta={"affine": torch.eye(3)}), torch.rand(1, 4, 4)),
)
for mismatched in (
    [torch.rand(2), torch.rand(3)],
    [{"a": torch.rand(2)}, {"a": torch.rand(3)}],
    [np.ones(2), np.ones(3)],
    [object(), 1],
):
    J("collate", lambda mismatched=mismatched: (data_utils.list_data_collate, copy.copy(mismatched)))


def explained(x, layer):
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(32, 2)).to(x)
    return class_activation_maps.GradCAM(model, [layer])(x)


J("GradCAM", lambda: (explained, torch.rand(1, 1, 6, 6), "0"), True)
J("GradCAM of no layer", lambda: (explained, torch.rand(1, 1, 6, 6), "none"), True)


# Analysis
def analyzed(kind, image, label, *options):
    ticks = itertools.count(0.0)
    with mock.patch.object(analyzer.time, "time", lambda: next(ticks)):
        return kind(*options)({"image": MetaTensor(image), "label": MetaTensor(label)})


J("ImageStats", lambda: (analyzed, analyzer.ImageStats, torch.rand(1, 6, 6, 6), torch.zeros(1, 6, 6, 6), "image"))
J(
    "LabelStats",
    lambda: (
        analyzed,
        analyzer.LabelStats,
        torch.rand(1, 6, 6, 6),
        (torch.rand(6, 6, 6) > 0.5).float(),
        "image",
        "label",
    ),
)


def timed(x):
    ticks = itertools.count(0.0)
    with (
        mock.patch.object(torch.cuda, "synchronize", lambda: None),
        mock.patch.object(profiling, "perf_counter", lambda: next(ticks)),
    ):
        return profiling.torch_profiler_time_end_to_end(torch.sin)(x)


def downloaded():
    with mock.patch.object(app_utils, "urlretrieve", lambda *given, **named: None):
        app_utils._download_with_progress("http://localhost/file", Path("file"))


J("download", lambda: (downloaded,))


J("profiler", lambda: (timed, torch.rand(3)))
J("full profiler", lambda: (lambda x: profiling.torch_profiler_full(torch.sin)(x), torch.rand(3)))
