"""Image quality: similarity of images, distances of feature distributions."""

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import torch

with contextlib.suppress(Exception):  # operators of torchvision that its import needs, where its library does not load
    OPERATORS = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        OPERATORS.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

piq = importlib.import_module("piq")
functional = importlib.import_module("piq.functional")

DISTRIBUTION = FOLDER = "piq"

X, Y = torch.rand(2, 3, 192, 192), torch.rand(2, 3, 192, 192)
SMALL = torch.rand(2, 3, 32, 32)
FEATURES = torch.rand(40, 8), torch.rand(40, 8)


def measure(name, *given, **options):
    return lambda: (lambda *images: getattr(piq, name)(*images, **options), given or (X, Y))


def loss(name, *given, **options):
    return lambda: (getattr(piq, name)(**options), given or (X, Y))


def train(name, *given, **options):
    def build():
        criterion = getattr(piq, name)(**options)

        def step(prediction, *rest):
            value = criterion(prediction, *rest)
            value.backward()
            return value

        x, *rest = given or (X, Y)
        return step, (x.clone().requires_grad_(), *rest)

    return build


def extractor():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 3))


CALLS: dict[str, Callable[..., Any]] = {}
for measured in "dss fsim gmsd haarpsi information_weighted_ssim mdsi multi_scale_gmsd multi_scale_ssim psnr".split():
    CALLS[measured] = measure(measured)
for measured in "srsim ssim vif_p vsi".split():
    CALLS[measured] = measure(measured)
    CALLS[f"{measured} none"] = measure(measured, reduction="none")
    CALLS[f"{measured} of bytes"] = measure(measured, X * 255, Y * 255, data_range=255)
for criterion_name in (
    "DSSLoss FSIMLoss GMSDLoss HaarPSILoss InformationWeightedSSIMLoss MDSILoss MultiScaleGMSDLoss MultiScaleSSIMLoss "
    "SRSIMLoss SSIMLoss VIFLoss VSILoss"
).split():
    CALLS[criterion_name] = loss(criterion_name)
    CALLS[f"{criterion_name} train"] = train(criterion_name)
for norm in ("l1", "l2", "l2_squared"):
    CALLS[f"total variation {norm}"] = measure("total_variation", X, norm_type=norm)
    CALLS[f"TVLoss {norm}"] = train("TVLoss", X, norm_type=norm)
CALLS |= {
    "psnr grey": measure("psnr", convert_to_greyscale=True),
    "fsim grey": measure("fsim", X[:, :1], Y[:, :1], chromatic=False),
    "vsi grey": measure("vsi", X[:, :1], Y[:, :1]),
    "ssim full": measure("ssim", full=True),
    "ssim plain": measure("ssim", downsample=False),
    "ssim video": measure("ssim", torch.rand(2, 1, 32, 32, 2), torch.rand(2, 1, 32, 32, 2)),
    "msssim weights": measure("multi_scale_ssim", scale_weights=torch.tensor([0.5, 0.5])),
    "msgmsd chromatic": measure("multi_scale_gmsd", chromatic=True),
    "iwssim weights": measure("information_weighted_ssim", scale_weights=torch.tensor([0.5, 0.5])),
    "mdsi mult": measure("mdsi", combination="mult"),
    "srsim chromatic": measure("srsim", chromatic=True),
    "haarpsi full": measure("haarpsi", subsample=False),
    "inception score": lambda: (piq.inception_score, (torch.rand(40, 8), 4)),
    "IS": loss("IS", *FEATURES, num_splits=4),
    "IS l2": loss("IS", *FEATURES, num_splits=4, distance="l2"),
    "FID": loss("FID", *FEATURES),
    "KID": loss("KID", *FEATURES),
    "KID average": loss("KID", *FEATURES, average=True, n_subsets=3, subset_size=20),
    "KID variance": loss("KID", *FEATURES, average=True, n_subsets=3, subset_size=20, ret_var=True),
    "PR": loss("PR", *FEATURES),
    "MSID": loss("MSID", *FEATURES, niters=4),
    "MSID signs": loss("MSID", *FEATURES, niters=4, rademacher=True, normalize="complete", msid_mode="l2"),
    "content": lambda: (piq.ContentLoss(extractor(), layers=("0", "2"), weights=[1.0, 0.5]), (SMALL, SMALL * 0.5)),
    "content mae": lambda: (
        piq.ContentLoss(extractor(), layers=("0",), distance="mae", normalize_features=True),
        (SMALL, SMALL * 0.5),
    ),
    "style": lambda: (piq.StyleLoss(extractor(), layers=("0", "2"), weights=[1.0, 0.5]), (SMALL, SMALL * 0.5)),
    "rgb2yiq": lambda: (functional.rgb2yiq, (SMALL,)),
    "rgb2lab": lambda: (functional.rgb2lab, (SMALL,)),
    "rgb2lmn": lambda: (functional.rgb2lmn, (SMALL,)),
    "rgb2lhm": lambda: (functional.rgb2lhm, (SMALL,)),
    "gradient map": lambda: (functional.gradient_map, (SMALL[:, :1], torch.rand(2, 1, 3, 3))),
    "similarity map": lambda: (lambda x, y: functional.similarity_map(x, y, 0.1), (SMALL, SMALL * 0.5)),
    "resize": lambda: (lambda x: functional.imresize(x, scale=0.5), (SMALL,)),
    "resize sizes": lambda: (lambda x: functional.imresize(x, sizes=(40, 20)), (SMALL,)),
    "gaussian filter": lambda: (lambda x: functional.gaussian_filter(5, 1.0) * x, (torch.rand(5, 5),)),
    "haar filter": lambda: (lambda x: functional.haar_filter(4) * x, (torch.rand(4, 4),)),
    "pow for complex": lambda: (lambda x: functional.pow_for_complex(base=x, exp=2), (torch.rand(4, 2),)),
    "crop patches": lambda: (lambda x: functional.crop_patches(x, size=8, stride=8), (SMALL,)),
}
