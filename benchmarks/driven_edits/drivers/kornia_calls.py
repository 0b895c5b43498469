"""Calls of kornia that reach what ``fix --unsafe`` edits. Needs kornia-rs."""

# mypy: ignore-errors

import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
from common import J, K
from kornia.augmentation import RandomCutMixV2
from kornia.augmentation import random_generator as generator
from kornia.augmentation.utils import helpers, param_validation
from kornia.contrib import extract_patches
from kornia.core import download, utils
from kornia.feature import LAFDescriptor, adalam, integrated, laf_from_center_scale_ori
from kornia.feature.adalam import utils as adalam_utils
from kornia.feature.sold2.sold2_detector import JunctionRefineCfg, LineDetectorCfg, LineSegmentDetectionModule
from kornia.filters import blur_pool
from kornia.geometry import RANSAC, _degensac, bbox, calibration, pointcloud
from kornia.geometry.subpix import spatial_soft_argmax
from kornia.geometry.transform import crop2d, crop3d, image_registrator
from kornia.image import draw
from kornia.io import sample
from kornia.metrics import mean_average_precision
from kornia.models import base, tiny_vit
from kornia.models.sam import model as sam
from torch import nn


def image(size=8, channels=3):
    return torch.rand(2, channels, size, size)


def cut_mix(x, labels):
    return RandomCutMixV2(p=1.0, data_keys=["input", "class"])(x, labels)


def perspective(scale, dimensions=2):
    kind = generator.PerspectiveGenerator if dimensions == 2 else generator.PerspectiveGenerator3D
    made = kind(scale)
    return made(torch.Size([2, 3] + [8] * dimensions))


def crop_3d(size):
    return generator.CropGenerator3D(size)(torch.Size([2, 1, 4, 6, 6]))


J("cut_mix", lambda: (cut_mix, image(), torch.tensor([0, 1])))
J("cut_mix of one channel", lambda: (cut_mix, image(channels=1), torch.tensor([0, 1])))
for dimensions in (2, 3):
    for scale in (0.5, 1.0, 1.5, -0.5):
        J(
            f"perspective {dimensions}",
            lambda scale=scale, dimensions=dimensions: (perspective, torch.tensor(scale), dimensions),
        )
    J(f"perspective {dimensions} of two", lambda dimensions=dimensions: (perspective, torch.rand(2), dimensions))
for size in (3.0, 9.0):
    J("crop 3d", lambda size=size: (crop_3d, torch.full((2, 3), size)))
J("crop 3d of a tuple", lambda: (lambda x: crop_3d((3, 3, 3)), torch.ones(1)))
for shape in ((2, 3, 8, 8), (2, 1, 8, 8), (8, 8)):
    J("input by shape", lambda shape=shape: (helpers._transform_input_by_shape, torch.rand(8, 8), torch.tensor(shape)))
    J(
        "input by a size",
        lambda shape=shape: (helpers._transform_input_by_shape, torch.rand(2, 3, 8, 8), torch.Size(shape)),
    )
    J(
        "input of a shape",
        lambda shape=shape: (helpers._transform_input_by_shape, torch.rand(2, 3, 8, 8), torch.tensor(shape)),
    )
for shape in ((2, 3, 4, 8, 8), (2, 1, 4, 8, 8)):
    J(
        "input 3d by shape",
        lambda shape=shape: (helpers._transform_input3d_by_shape, torch.rand(2, 3, 4, 8, 8), torch.tensor(shape)),
    )
for value in (0.5, -0.5, 3.0, [0.2, 0.7], [0.7, 0.2], [-0.5, 0.5], [0.5, 3.0]):
    for check in ("joint", "singular"):
        for bounds in ((0, 1.0), (0, float("inf")), (-1, 1)):
            J(
                f"range bound {check}",
                lambda value=value, check=check, bounds=bounds: (
                    param_validation._range_bound,
                    torch.tensor(value),
                    "factor",
                    K(bounds=bounds, check=check),
                ),
            )
for value in (0.5, [0.5], [-0.5], [0.2, 0.7], [0.1, 0.2, 0.3]):
    J("tuple range", lambda value=value: (param_validation._tuple_range_reader, torch.tensor(value), 3))
for value, mode in (([0.2, 0.7], "2d"), ([0.2, 1.7], "2d"), ([0.2, 0.7, 0.3], "3d")):
    J(
        "singular range",
        lambda value=value, mode=mode: (
            param_validation._singular_range_check,
            torch.tensor(value),
            "factor",
            (0, 1),
            False,
            mode,
        ),
    )

J("patches", lambda: (extract_patches.extract_tensor_patches, image(), K(window_size=3, stride=2)))
J("patches that fit", lambda: (extract_patches.extract_tensor_patches, image(), K(window_size=4, stride=4)))
for eps in (None, 1e-6):
    J(
        "combine",
        lambda eps=eps: (
            extract_patches.combine_tensor_patches,
            torch.rand(2, 9, 3, 3, 3),
            K(original_size=(8, 8), window_size=3, stride=2, eps=eps),
        ),
    )
    J(
        "combine that fits",
        lambda eps=eps: (
            extract_patches.combine_tensor_patches,
            torch.rand(2, 4, 3, 4, 4),
            K(original_size=(8, 8), window_size=4, stride=4, eps=eps),
        ),
    )


def prefetch():
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(download, "_download_url_to_file"):
        return download._prefetch_to_cache("http://localhost/model.pth", {"model_dir": folder}, 1.0)


def samples(load):
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(sample, "_download", lambda *given: torch.rand(3, 4, 4)),
    ):
        return sample.get_sample_images(paths=["http://localhost/image.png"], download=load, cache_dir=folder)


J("download warning", lambda: (download._warn, "a message"))
J("warning at the caller", lambda: (utils._warn_at_caller, "a message"))
J("prefetch", lambda: (prefetch,))
for load in (True, False):
    J("samples", lambda load=load: (samples, load))


def frames(count=6):
    centers = torch.rand(1, count, 2) * 20
    return laf_from_center_scale_ori(centers, torch.ones(1, count, 1, 1) * 3, torch.rand(1, count, 1) * 360)


J(
    "adalam",
    lambda: (adalam.match_adalam, torch.rand(6, 4), torch.rand(6, 4), frames(), frames(), K(config={"no_such": 1})),
)
J(
    "orientation_diff",
    lambda: (adalam_utils.orientation_diff, torch.rand(6) * 720 - 360, torch.rand(6) * 720 - 360),
    True,
)
J("orientation_diff of rows", lambda: (adalam_utils.orientation_diff, torch.rand(6) * 720, torch.rand(3, 1) * 720))
for name in ("sift", "disk"):
    J(f"scale and orientation {name}", lambda name=name: (integrated._lightglue_keypoint_scale_ori, frames(), name))


class Mean(nn.Module):
    def forward(self, x):
        return x.flatten(1).mean(1, keepdim=True)


J("descriptor", lambda: (LAFDescriptor(Mean(), 8), torch.rand(1, 1, 24, 24), frames()))
J("descriptor of no frames", lambda: (LAFDescriptor(Mean(), 8), torch.rand(1, 1, 24, 24), frames()[:, :0]))


def refine(junctions, lines, heatmap):
    module = LineSegmentDetectionModule(LineDetectorCfg(junction_refine_cfg=JunctionRefineCfg(num_perturbs=3)))
    return module.refine_junction_perturb(junctions, lines, heatmap, 16, 16, junctions.device)


J(
    "refine",
    lambda: (refine, torch.rand(3, 2) * 15, torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), torch.rand(16, 16)),
)
for ceil in (None, True):
    J("max blur pool", lambda ceil=ceil: (blur_pool.max_blur_pool2d, image(), 3, K(ceil_mode=ceil)))


def homogeneous(x):
    return torch.cat([x, torch.ones_like(x[:, :1])], 1)


def planar(x, threshold):
    """Seven points on a plane in both images, and a fundamental matrix that has them."""
    matrix = torch.tensor([[1.0, 0.1, 2], [0.05, 0.9, 1], [0.001, 0.002, 1]]).to(x)
    other = homogeneous(x) @ matrix.mT
    epipole = torch.tensor([[0.0, -1, 3], [1, 0, -2], [-3, 2, 0]]).to(x)
    return _degensac._h_degenerate_sample(epipole @ matrix, homogeneous(x), other / other[:, 2:], threshold)


for threshold in (1e9, 1.0, 0.0):
    J("degenerate sample", lambda threshold=threshold: (planar, torch.rand(7, 2) * 10, threshold))
    J(
        "degenerate sample of any",
        lambda threshold=threshold: (
            lambda matrix, x, y: _degensac._h_degenerate_sample(matrix, homogeneous(x), homogeneous(y), threshold),
            torch.rand(3, 3),
            torch.rand(7, 2),
            torch.rand(7, 2),
        ),
    )

BOX = [[1.0, 1], [4, 1], [4, 5], [1, 5]]
SKEWED = [[1.0, 1], [4, 1], [5, 5], [1, 6]]
for corners in (BOX, SKEWED):
    J("validate_bbox", lambda corners=corners: (bbox.validate_bbox, torch.tensor([corners, BOX])))
    J("infer_bbox_shape", lambda corners=corners: (bbox.infer_bbox_shape, torch.tensor([corners, BOX])))
    J(
        "crop",
        lambda corners=corners: (crop2d.crop_by_boxes, image(), torch.tensor([BOX, BOX]), torch.tensor([corners, BOX])),
    )
J(
    "crop of other sizes",
    lambda: (
        crop2d.crop_by_boxes,
        image(),
        torch.tensor([BOX, BOX]),
        torch.tensor([[[0.0, 0], [1, 0], [1, 1], [0, 1]], BOX]),
    ),
)


def cuboid(size=2.0):
    plane = torch.tensor([[0.0, 0], [size, 0], [size, size], [0, size]])
    return torch.cat([torch.cat([plane, torch.full((4, 1), z)], 1) for z in (0.0, size)])


for size in (2.0, 1.0):
    J(
        "crop by boxes 3d",
        lambda size=size: (
            crop3d.crop_by_boxes3d,
            torch.rand(2, 1, 4, 4, 4),
            torch.stack([cuboid(), cuboid()]),
            torch.stack([cuboid(size), cuboid()]),
        ),
    )
J("pnp", lambda: (calibration.solve_pnp_dlt, torch.rand(2, 8, 3), torch.rand(2, 8, 2), torch.eye(3).repeat(2, 1, 1)))
J(
    "pnp of a plane",
    lambda: (
        calibration.solve_pnp_dlt,
        torch.rand(2, 8, 3) * torch.tensor([1.0, 1, 0]),
        torch.rand(2, 8, 2),
        torch.eye(3).repeat(2, 1, 1),
    ),
)


def clouds(points):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "points.ply")
        pointcloud.save_pointcloud_ply(path, points)
        return pointcloud.load_pointcloud_ply(path, header_size=8)


J("point cloud", lambda: (clouds, torch.rand(4, 3)))
for kind in ("essential", "fundamental", "homography"):
    J(
        f"ransac {kind}",
        lambda kind=kind: (
            lambda x, y: RANSAC(kind, max_iter=2, seed=0)(x, y),
            torch.rand(20, 2) * 2 - 1,
            torch.rand(20, 2) * 2 - 1,
        ),
    )
J(
    "strict maxima",
    lambda: (spatial_soft_argmax.conv_quad_interp3d, torch.rand(1, 1, 3, 6, 6), K(strict_maxima_bonus=1.0)),
)
for most in (1, 2, 100):
    J(
        "iterated interpolation",
        lambda most=most: (
            spatial_soft_argmax.iterative_quad_interp3d,
            torch.rand(2, 1, 5, 8, 8),
            K(max_candidates=most),
        ),
    )
J(
    "register",
    lambda: (
        lambda x, y: image_registrator.ImageRegistrator("similarity", num_iterations=2, pyramid_levels=2).register(
            x, y, verbose=True
        ),
        torch.rand(1, 1, 32, 32),
        torch.rand(1, 1, 32, 32),
    ),
    True,
)
for scale in (7, 20):
    J(
        "draw points",
        lambda scale=scale: (draw.draw_point2d, torch.zeros(1, 8, 8), torch.rand(3, 2) * scale, torch.ones(1)),
    )
    J(
        "draw line",
        lambda scale=scale: (
            draw.draw_line,
            torch.zeros(1, 8, 8),
            torch.rand(2) * 7,
            torch.rand(2) * scale,
            torch.ones(1),
        ),
    )
    J(
        "draw lines",
        lambda scale=scale: (
            draw.draw_line,
            torch.zeros(1, 8, 8),
            torch.rand(3, 2) * 7,
            torch.rand(3, 2) * scale,
            torch.ones(1),
        ),
    )
BOXES = [[0.0, 0, 5, 5], [6, 6, 9, 9]]
for threshold in (0.5, 0.9):
    J(
        "mean average precision",
        lambda threshold=threshold: (
            mean_average_precision,
            [torch.tensor(BOXES) + 0.4],
            [torch.tensor([1, 2])],
            [torch.tensor([0.7, 0.6])],
            [torch.tensor(BOXES)],
            [torch.tensor([1, 1])],
            3,
            threshold,
        ),
    )


class Saved(base.ModelBaseMixin):
    name = "saved"


def saved(x):
    with tempfile.TemporaryDirectory() as folder:
        Saved().save(x, folder)
        Saved()._save_outputs(list(x), folder)


J("save", lambda: (saved, image()))


def checkpoint():
    config = sam.SamConfig(
        encoder_embed_dim=8,
        encoder_depth=1,
        encoder_num_heads=2,
        encoder_global_attn_indexes=0,
        checkpoint="no file",
        pretrained=True,
    )
    stub = SimpleNamespace(load_checkpoint=lambda path: None, eval=lambda: None)
    with mock.patch.object(sam, "_build_sam", lambda **options: stub):
        sam.Sam.from_config(config)


def pretrained(weight):
    model = nn.ModuleDict({"head": nn.Linear(2, 3)}).to(weight)
    model.head = model["head"]
    with mock.patch.object(
        tiny_vit, "load_state_dict_from_url", lambda url: {"head.weight": weight, "head.bias": weight[:, 0]}
    ):
        return tiny_vit._load_pretrained(model, "")


J("sam checkpoint", lambda: (checkpoint,))
for rows in (3, 4):
    J("tiny vit", lambda rows=rows: (pretrained, torch.rand(rows, 2)))
