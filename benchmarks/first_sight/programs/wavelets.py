"""Wavelet transforms."""

from collections.abc import Callable
from typing import Any

import ptwt
import torch

DISTRIBUTION = FOLDER = "ptwt"

LINE = torch.rand(2, 32)
PLANE = torch.rand(2, 16, 16)
SPACE = torch.rand(2, 8, 8, 8)


def there(function, data, *arguments, **options):
    return lambda: (lambda x: function(x, *arguments, **options), (data,))


def back(forward, inverse, data, *arguments, **options):
    return lambda: (lambda c: inverse(c, *arguments), (forward(data, *arguments, **options),))


CALLS: dict[str, Callable[..., Any]] = {}
for wavelet in ("haar", "db3"):
    for mode in ("zero", "reflect", "periodic", "constant", "symmetric"):
        CALLS[f"wavedec {wavelet} {mode}"] = there(ptwt.wavedec, LINE, wavelet, mode=mode, level=2)
        CALLS[f"wavedec2 {wavelet} {mode}"] = there(ptwt.wavedec2, PLANE, wavelet, mode=mode, level=2)
    CALLS[f"wavedec3 {wavelet}"] = there(ptwt.wavedec3, SPACE, wavelet, level=1)
    CALLS[f"waverec {wavelet}"] = back(ptwt.wavedec, ptwt.waverec, LINE, wavelet, level=2)
    CALLS[f"waverec2 {wavelet}"] = back(ptwt.wavedec2, ptwt.waverec2, PLANE, wavelet, level=2)
    CALLS[f"waverec3 {wavelet}"] = back(ptwt.wavedec3, ptwt.waverec3, SPACE, wavelet, level=1)
    CALLS[f"fswavedec2 {wavelet}"] = there(ptwt.fswavedec2, PLANE, wavelet, level=2)
    CALLS[f"fswavedec3 {wavelet}"] = there(ptwt.fswavedec3, SPACE, wavelet, level=1)
    CALLS[f"fswaverec2 {wavelet}"] = back(ptwt.fswavedec2, ptwt.fswaverec2, PLANE, wavelet, level=2)
    CALLS[f"fswaverec3 {wavelet}"] = back(ptwt.fswavedec3, ptwt.fswaverec3, SPACE, wavelet, level=1)
    CALLS[f"swt {wavelet}"] = there(ptwt.swt, LINE, wavelet, 2)
    CALLS[f"iswt {wavelet}"] = lambda wavelet=wavelet: (lambda c: ptwt.iswt(c, wavelet), (ptwt.swt(LINE, wavelet, 2),))
    for ways in ("qr", "gramschmidt"):
        CALLS[f"matrix {wavelet} {ways}"] = lambda wavelet=wavelet, ways=ways: (
            ptwt.MatrixWavedec(wavelet, 2, orthogonalization=ways),
            (LINE,),
        )
        CALLS[f"matrix back {wavelet} {ways}"] = lambda wavelet=wavelet, ways=ways: (
            ptwt.MatrixWaverec(wavelet, orthogonalization=ways),
            (ptwt.MatrixWavedec(wavelet, 2)(LINE),),
        )
        for separable in (True, False):
            CALLS[f"matrix2 {wavelet} {ways} {separable}"] = lambda wavelet=wavelet, ways=ways, separable=separable: (
                ptwt.MatrixWavedec2(wavelet, 2, orthogonalization=ways, separable=separable),
                (PLANE,),
            )
            CALLS[f"matrix2 back {wavelet} {ways} {separable}"] = (
                lambda wavelet=wavelet, ways=ways, separable=separable: (
                    ptwt.MatrixWaverec2(wavelet, orthogonalization=ways, separable=separable),
                    (ptwt.MatrixWavedec2(wavelet, 2, separable=separable)(PLANE),),
                )
            )
    CALLS[f"matrix3 {wavelet}"] = lambda wavelet=wavelet: (ptwt.MatrixWavedec3(wavelet, 1), (SPACE,))
    CALLS[f"matrix3 back {wavelet}"] = lambda wavelet=wavelet: (
        ptwt.MatrixWaverec3(wavelet),
        (ptwt.MatrixWavedec3(wavelet, 1)(SPACE),),
    )
for wavelet in ("mexh", "morl", "gaus2", "cmor1.5-1.0", "cgau2", "shan1.5-1.0", "fbsp2-1.5-1.0"):
    CALLS[f"cwt {wavelet}"] = there(ptwt.cwt, LINE, torch.arange(1, 5).numpy(), wavelet)
    CALLS[f"cwt tensor {wavelet}"] = there(ptwt.cwt, LINE, torch.arange(1, 5), wavelet)
for mode in ("zero", "reflect", "boundary"):

    def packets(x, mode=mode):
        packet = ptwt.WaveletPacket(x, "haar", mode, maxlevel=2)
        return [packet[node] for node in packet.get_level(2)]

    def packets2(x, mode=mode):
        packet = ptwt.WaveletPacket2D(x, "haar", mode, maxlevel=2)
        return [packet["".join(node)] for node in packet.get_natural_order(1)]

    def rebuilt(x, mode=mode):
        packet = ptwt.WaveletPacket(x, "haar", mode, maxlevel=2)
        packet.reconstruct()
        return packet[""]

    CALLS[f"packet {mode}"] = lambda packets=packets: (packets, (LINE,))
    CALLS[f"packet2 {mode}"] = lambda packets2=packets2: (packets2, (PLANE,))
    CALLS[f"packet rebuilt {mode}"] = lambda rebuilt=rebuilt: (rebuilt, (LINE,))


def gradient(x):
    x = x.clone().requires_grad_()
    loss = sum(part.pow(2).sum() for part in ptwt.wavedec(x, "db2", level=2))
    loss.backward()
    return loss


CALLS["gradient"] = lambda: (gradient, (LINE,))
