"""Image models: layers, models, losses, optimizers."""

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import torch

with contextlib.suppress(Exception):  # operators of torchvision that its import needs, where its library does not load
    OPERATORS = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        OPERATORS.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

timm = importlib.import_module("timm")
layers = importlib.import_module("timm.layers")
losses = importlib.import_module("timm.loss")
optim = importlib.import_module("timm.optim")
utils = importlib.import_module("timm.utils")

DISTRIBUTION = FOLDER = "timm"

IMAGE = torch.rand(2, 8, 8, 8)
TOKENS = torch.rand(2, 16, 8)


def layer(name, *arguments, given=(IMAGE,), **options):
    return lambda: (getattr(layers, name)(*arguments, **options), given)


def model(name, size=32, **options):
    return lambda: (timm.create_model(name, num_classes=3, **options), (torch.rand(2, 3, size, size),))


def step(name, **options):
    def build():
        network = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        optimizer = optim.create_optimizer_v2(network, opt=name, lr=0.01, weight_decay=0.1, **options)

        def train(x):
            optimizer.zero_grad()
            loss = network(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return train, (torch.rand(5, 8),)

    return build


CALLS: dict[str, Callable[..., Any]] = {
    f"test_{name}": model(f"test_{name}", 160)
    for name in "byobnet coatnet convnext efficientnet mambaout maxvit nfnet resnet vit vit_relpos".split()
}
for name, size in {
    "tinynet_e": 64,
    "convit_tiny": 224,
    "lcnet_035": 64,
}.items():
    CALLS[name] = model(name, size)
CALLS["features"] = model("test_resnet", 64, features_only=True)
CALLS["vit features"] = model("test_vit", 160, features_only=True)
CALLS["eva"] = lambda: (
    timm.create_model("eva02_tiny_patch14_224", depth=1, img_size=56, num_classes=3),
    (torch.rand(1, 3, 56, 56),),
)
CALLS["naflex"] = lambda: (
    timm.create_model("naflexvit_base_patch16_gap", depth=1, num_classes=3),
    (torch.rand(1, 3, 64, 64),),
)
CALLS |= {
    f"layer {name}": layer(name, *arguments)
    for name, arguments in {
        "AdaptiveAvgMaxPool2d": (),
        "Attention2d": (8,),
        "AttentionPool2d": (8, 8, 8, 8, 2),
        "RotAttentionPool2d": (8, 8, 8, 8, 2),
        "BlurPool2d": (8,),
        "AvgPool2dSame": (3,),
        "BatNonLocalAttn": (8,),
        "NonLocalAttn": (8,),
        "BatchNormAct2d": (8,),
        "CecaModule": (8,),
        "ClNormMlpClassifierHead": (8, 3),
        "ClassifierHead": (8, 3),
        "CondConv2d": (8, 8, 3),
        "Conv2dSame": (8, 8, 3),
        "ConvMlp": (8,),
        "ConvNormAct": (8, 8),
        "ConvNormActAa": (8, 8),
        "DepthToSpace": (2,),
        "SpaceToDepth": (2,),
        "DropBlock2d": (0.1, 3),
        "DropPath": (0.1,),
        "EcaModule": (8,),
        "EffectiveSEModule": (8,),
        "EvoNorm2dB0": (8,),
        "EvoNorm2dS0": (8,),
        "EvoNorm2dS2": (8,),
        "FilterResponseNormAct2d": (8,),
        "FilterResponseNormTlu2d": (8,),
        "GatherExcite": (8,),
        "GlobalContext": (8,),
        "GroupNormAct": (8, 4),
        "LayerNorm2d": (8,),
        "LayerNormAct2d": (8,),
        "MixedConv2d": (8, 8),
        "MultiQueryAttentionV2": (8,),
        "MultiQueryAttention2d": (8,),
        "NormMlpClassifierHead": (8, 3),
        "RmsNorm2d": (8,),
        "SEModule": (8,),
        "ScaledStdConv2dSame": (8, 8, 3),
        "StdConv2dSame": (8, 8, 3),
        "SelectAdaptivePool2d": (1, "avgmax"),
        "SelectiveKernel": (8,),
        "SeparableConvNormAct": (8, 8),
        "SimPool2d": (8,),
        "SimpleNorm2d": (8,),
        "SplitAttn": (8,),
        "SplitBatchNorm2d": (8,),
        "LsePlus2d": (),
        "SqueezeExcite": (8,),
    }.items()
}
CALLS |= {
    f"layer {name}": layer(name, *arguments, given=(TOKENS,))
    for name, arguments in {
        "Attention": (8,),
        "AttentionRope": (8,),
        "AttentionPoolLatent": (8,),
        "DiffAttention": (8,),
        "GatedMlp": (8,),
        "GluMlp": (8,),
        "SwiGLU": (8,),
        "LayerNormFp32": (8,),
        "PatchDropout": (0.5,),
        "PatchDropoutWithIndices": (0.5,),
        "RmsNormAct": (8,),
        "SimPool1d": (8,),
        "LsePlus1d": (),
        "AttentionPoolPrr": (8,),
    }.items()
}
CALLS |= {
    "patch embed": layer("PatchEmbed", 8, 4, 8, 8),
    "fourier": layer("FourierEmbed", given=(IMAGE,)),
    "rope": lambda: (layers.RotaryEmbeddingCat(8).get_embed, ([4, 4],)),
    "rope dino": lambda: (layers.RotaryEmbeddingDinoV3(8).get_embed, ([4, 4],)),
    "rope mixed": lambda: (layers.RotaryEmbeddingMixed(8, 2, 2).get_embed, ([4, 4],)),
    "resample pos": lambda: (layers.resample_abs_pos_embed, (torch.rand(1, 17, 8), [6, 6])),
    "resample patch": lambda: (layers.resample_patch_embed, (torch.rand(4, 3, 4, 4), [6, 6])),
    "resize rel pos": lambda: (layers.resize_rel_pos_bias_table, (torch.rand(49, 2), (5, 5), (81, 2))),
    "position index": lambda: (layers.gen_relative_position_index, ((4, 4),)),
    "sincos": lambda: (layers.build_sincos2d_pos_embed, ([4, 4], 8)),
    "rotary": lambda: (layers.build_rotary_pos_embed, ([4, 4], 8)),
    "rel bias": layer("RelPosBias", (4, 4), 2, given=(torch.rand(1, 2, 16, 16),)),
    "rel mlp": layer("RelPosMlp", (4, 4), 16, 2, given=(torch.rand(1, 2, 16, 16),)),
    "drop block": lambda: (layers.drop_block_2d, (IMAGE, 0.1, 3)),
    "trunc normal": lambda: (layers.trunc_normal_, (torch.empty(4, 4),)),
    "lecun": lambda: (layers.lecun_normal_, (torch.empty(4, 4),)),
    "clip agc": lambda: (clip("agc"), (torch.rand(5, 8),)),
    "clip norm": lambda: (clip("norm"), (torch.rand(5, 8),)),
    "accuracy": lambda: (lambda x, y: utils.accuracy(x, y, (1, 2)), (torch.rand(4, 3), torch.tensor([0, 1, 2, 0]))),
    "ema v2": lambda: ema("ModelEmaV2"),
    "ema v3": lambda: ema("ModelEmaV3"),
    "ema": lambda: ema("ModelEma"),
    "bce": lambda: (losses.BinaryCrossEntropy(), (torch.rand(4, 3), torch.tensor([0, 1, 2, 0]))),
    "smoothing": lambda: (losses.LabelSmoothingCrossEntropy(), (torch.rand(4, 3), torch.tensor([0, 1, 2, 0]))),
    "jsd": lambda: (losses.JsdCrossEntropy(), (torch.rand(6, 3), torch.tensor([0, 1]))),
    "soft": lambda: (losses.SoftTargetCrossEntropy(), (torch.rand(4, 3), torch.rand(4, 3))),
    "asymmetric": lambda: (losses.AsymmetricLossMultiLabel(), (torch.rand(4, 3), torch.rand(4, 3).round())),
    "asymmetric single": lambda: (losses.AsymmetricLossSingleLabel(), (torch.rand(4, 3), torch.tensor([0, 1, 2, 0]))),
    "poly": lambda: (losses.PolyCrossEntropy(), (torch.rand(4, 3), torch.tensor([0, 1, 2, 0]))),
    "poly bce": lambda: (losses.PolyBinaryCrossEntropy(), (torch.rand(4, 3), torch.rand(4, 3).round())),
    "two way": lambda: (losses.TwoWayLoss(), (torch.rand(4, 3), torch.rand(4, 3).round())),
    "zlpr": lambda: (losses.ZlprLoss(), (torch.rand(4, 3), torch.rand(4, 3).round())),
    "balanced": lambda: (
        losses.DistributionBalancedLoss(torch.tensor([3, 4, 5]), 9),
        (torch.rand(4, 3), torch.rand(4, 3).round()),
    ),
}


def clip(mode):
    network = torch.nn.Linear(8, 4)

    def train(x):
        network(x).sum().backward()
        utils.dispatch_clip_grad(network.parameters(), 0.1, mode=mode)
        return network.weight.grad

    return train


def ema(name):
    network = torch.nn.Linear(8, 4)
    average = getattr(utils, name)(network)

    def update(x):
        average.update(network)
        return network(x)

    return update, (torch.rand(5, 8),)


for optimizer_name in (
    "adabelief adafactor adafactorbv adahessian adamp adamw adan adopt cadamw clamb kron lamb laprop lars larc lion "
    "madgrad mars muon nadam novograd radam rmsproptf sgdp sgdw"
).split():
    CALLS[f"optimizer {optimizer_name}"] = step(optimizer_name)
CALLS["lookahead"] = step("lookahead_adamw")
