"""Optimizers: one step of each, wrappers around them, gradient tools, losses and schedules."""

from collections.abc import Callable
from typing import Any

import pytorch_optimizer as po
import torch

DISTRIBUTION = "pytorch_optimizer"
FOLDER = "pytorch_optimizer"

OF_MODELS = {"lomo", "adalomo", "adammini"}
SECOND_ORDER = {"adahessian", "sophiah"}
OPTIONS: dict[str, dict[str, Any]] = {"ranger21": {"num_iterations": 10}, "bsam": {"num_data": 10}}
CLOSURES = {"alig", "lbfgs", "bsam", "adatam"}

X = torch.randn(6, 4)
Y = torch.randint(0, 3, (6,))
LOGITS, LABELS = torch.randn(6), torch.randint(0, 2, (6,)).float()
IMAGE, MASK = torch.randn(2, 1, 6, 6), torch.randint(0, 2, (2, 1, 6, 6)).float()


def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))


def images():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 3))


def batch(model):
    return torch.randn(2, 1, 6, 6) if isinstance(model[0], torch.nn.Conv2d) else X


def loss_of(model, x):
    return torch.nn.functional.cross_entropy(model(x), Y[: len(x)])


def stepped(name, options, make=network, rounds=0):
    """One step after ``rounds`` steps, so that the state is there or not."""

    def build():
        model = make()
        x = batch(model)
        kind = po.load_optimizer(name)
        given = model if name in OF_MODELS else list(model.parameters())
        optimizer = kind(given, **OPTIONS.get(name, {}), **options)

        def backward():
            optimizer.zero_grad()
            loss = loss_of(model, x)
            loss.backward(create_graph=name in SECOND_ORDER)
            return loss

        for _ in range(rounds):
            backward()
            optimizer.step(backward) if name in CLOSURES else optimizer.step()
        backward()
        if name in CLOSURES:
            return (lambda: optimizer.step(backward)), ()
        return (lambda: optimizer.step()), ()

    return build


def wrapped(wrap, closure=False, rounds=0):
    def build():
        model = network()
        optimizer = wrap(model)

        def backward():
            optimizer.zero_grad()
            loss = loss_of(model, X)
            loss.backward()
            return loss

        for _ in range(rounds):
            backward()
            optimizer.step(backward) if closure else optimizer.step()
        backward()
        return (lambda: optimizer.step(backward) if closure else optimizer.step()), ()

    return build


def of_gradients(function):
    def build():
        model = network()
        loss_of(model, X).backward()
        return (lambda: function(model)), ()

    return build


def two_tasks():
    model = network()
    optimizer = po.PCGrad(torch.optim.SGD(model.parameters(), lr=0.1))

    def run(x):
        out = model(x)
        optimizer.zero_grad()
        optimizer.pc_backward([torch.nn.functional.cross_entropy(out, Y), out.square().mean()])
        optimizer.step()

    return run, (X,)


def scheduled(make):
    def build():
        optimizer = torch.optim.SGD(network().parameters(), lr=0.1)
        schedule = make(optimizer)

        def run():
            optimizer.step()
            return schedule.step()

        return run, ()

    return build


def losses(kind, output, target, **options):
    return lambda: (getattr(po, kind)(**options), (output, target))


CALLS: dict[str, Callable[..., Any]] = {}
for name in po.get_supported_optimizers():
    CALLS[name] = stepped(name, {})
    CALLS[f"{name} again"] = stepped(name, {"weight_decay": 0.1}, rounds=1)
for name in ("adam", "adamw", "adabelief", "adamp", "radam", "lion", "adan", "lamb", "sgdw", "yogi", "diffgrad"):
    CALLS |= {
        f"{name} ams": stepped(name, {"ams_bound": True}),
        f"{name} rectify": stepped(name, {"rectify": True}),
        f"{name} cautious": stepped(name, {"cautious": True}),
        f"{name} norm": stepped(name, {"adanorm": True}),
        f"{name} centralized": stepped(name, {"use_gc": True}, make=images),
        f"{name} stable": stepped(name, {"stable_adamw": True}),
        f"{name} adam debias": stepped(name, {"adam_debias": True}),
        f"{name} coupled": stepped(name, {"weight_decay": 0.1, "weight_decouple": False}),
    }
for name in ("adamp", "sgdp", "lamb", "lion", "nero", "novograd", "galore", "muon", "shampoo", "adafactor", "came"):
    CALLS[f"{name} images"] = stepped(name, {}, make=images)
for name in ("galore", "fira", "conda", "alice", "racs", "soap", "shampoo", "scalableshampoo", "kron", "muon"):
    CALLS[f"{name} thrice"] = stepped(name, {}, rounds=3)
SGD = torch.optim.SGD
CALLS |= {
    "sam": wrapped(lambda m: po.SAM(m.parameters(), SGD, lr=0.1), closure=True),
    "sam adaptive": wrapped(lambda m: po.SAM(m.parameters(), SGD, lr=0.1, adaptive=True, use_gc=True), closure=True),
    "wsam": wrapped(lambda m: po.WSAM(m, m.parameters(), SGD, lr=0.1), closure=True),
    "look sam": wrapped(lambda m: po.LookSAM(m.parameters(), SGD, lr=0.1, k=2), closure=True),
    "look sam again": wrapped(lambda m: po.LookSAM(m.parameters(), SGD, lr=0.1, k=2), closure=True, rounds=1),
    "friendly sam": wrapped(lambda m: po.FriendlySAM(m.parameters(), SGD, lr=0.1), closure=True),
    "lookahead": wrapped(lambda m: po.Lookahead(SGD(m.parameters(), lr=0.1), k=1)),
    "lookahead momentum": wrapped(
        lambda m: po.Lookahead(SGD(m.parameters(), lr=0.1, momentum=0.9), k=1, pullback_momentum="pullback"), rounds=1
    ),
    "trac": wrapped(lambda m: po.TRAC(SGD(m.parameters(), lr=0.1))),
    "trac again": wrapped(lambda m: po.TRAC(SGD(m.parameters(), lr=0.1)), rounds=1),
    "ortho": wrapped(lambda m: po.OrthoGrad(SGD(m.parameters(), lr=0.1))),
    "schedule free": wrapped(lambda m: po.ScheduleFreeWrapper(SGD(m.parameters(), lr=0.1)).train() or None),
    "tasks": two_tasks,
    "clip": of_gradients(lambda m: po.clip_grad_norm(m.parameters(), 1.0)),
    "global norm": of_gradients(lambda m: po.get_global_gradient_norm([{"params": list(m.parameters())}])),
    "agc": of_gradients(lambda m: [po.agc(p, p.grad) for p in m.parameters()]),
    "centralize": of_gradients(lambda m: [po.centralize_gradient(p.grad) for p in m.parameters()]),
    "normalize": of_gradients(lambda m: [po.normalize_gradient(p.grad) for p in m.parameters()]),
    "unit norm": of_gradients(lambda m: [po.unit_norm(p.grad) for p in m.parameters()]),
    "groups": of_gradients(lambda m: po.get_optimizer_parameters(m, 0.1)),
    "stochastic copy": lambda: (po.copy_stochastic, (torch.zeros(4, dtype=torch.bfloat16), torch.randn(4))),
    "stats off": of_gradients(po.disable_running_stats),
    "cosine": scheduled(lambda o: po.CosineScheduler(o, 10, 1.0, warmup_steps=2)),
    "linear": scheduled(lambda o: po.LinearScheduler(o, 10, 1.0)),
    "poly": scheduled(lambda o: po.PolyScheduler(o, t_max=10, max_lr=1.0)),
    "restarts": scheduled(lambda o: po.CosineAnnealingWarmupRestarts(o, 10)),
    "rex": scheduled(lambda o: po.REXScheduler(o, 10)),
    "dice of": lambda: (po.soft_dice_score, (IMAGE.sigmoid(), MASK)),
    "jaccard of": lambda: (po.soft_jaccard_score, (IMAGE.sigmoid(), MASK)),
    "bce focal": losses("BCEFocalLoss", LOGITS, LABELS, label_smooth=0.1),
    "bce": losses("BCELoss", LOGITS.sigmoid(), LABELS, label_smooth=0.1),
    "focal": losses("FocalLoss", LOGITS, LABELS),
    "focal cosine": losses("FocalCosineLoss", torch.randn(6, 3), Y),
    "focal tversky": losses("FocalTverskyLoss", LOGITS, LABELS),
    "tversky": losses("TverskyLoss", LOGITS, LABELS),
    "soft f1": losses("SoftF1Loss", LOGITS, LABELS),
    "ldam": losses("LDAMLoss", torch.randn(6, 3), Y, num_class_list=[3, 2, 1]),
    "lovasz": losses("LovaszHingeLoss", IMAGE[:, 0], MASK[:, 0]),
    "lovasz all": losses("LovaszHingeLoss", IMAGE[:, 0], MASK[:, 0], per_image=False),
    "tempered": losses("BiTemperedLogisticLoss", torch.randn(6, 3), Y, t1=0.8, t2=1.2),
    "tempered low": losses("BiTemperedLogisticLoss", torch.randn(6, 3), Y, t1=0.8, t2=0.9, label_smooth=0.1),
    "tempered plain": losses("BiTemperedLogisticLoss", torch.randn(6, 3), Y, t1=1.0, t2=1.0),
    "tempered binary": losses("BinaryBiTemperedLogisticLoss", LOGITS[:, None], LABELS[:, None], t1=0.8, t2=1.2),
}
for mode in ("binary", "multilabel"):
    CALLS[f"dice {mode}"] = losses("DiceLoss", IMAGE, MASK, mode=mode)
    CALLS[f"jaccard {mode}"] = losses("JaccardLoss", IMAGE, MASK, mode=mode)
MANY, CLASSES = torch.randn(2, 3, 6, 6), torch.randint(0, 3, (2, 6, 6))
CALLS["dice multiclass"] = losses("DiceLoss", MANY, CLASSES, mode="multiclass", log_loss=True)
CALLS["dice ignored"] = losses("DiceLoss", MANY, CLASSES, mode="multiclass", ignore_index=1)
CALLS["jaccard multiclass"] = losses("JaccardLoss", MANY, CLASSES, mode="multiclass", classes=[0, 1])
