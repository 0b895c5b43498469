"""Audio: losses in time and frequency, and perceptual filters."""

import torch
from auraloss import freq, perceptual, time

DISTRIBUTION = "auraloss"
FOLDER = "auraloss"

HEARD = torch.randn(2, 1, 4096)
WANTED = HEARD + 0.1 * torch.randn(2, 1, 4096)
STEREO = torch.randn(2, 2, 4096), torch.randn(2, 2, 4096)
SMALL = {"fft_size": 256, "hop_size": 64, "win_length": 256}
SEVERAL = {"fft_sizes": [256, 512], "hop_sizes": [64, 128], "win_lengths": [256, 512]}


def loss(make, **options):
    return lambda: (make(**options), (HEARD.clone(), WANTED.clone()))


def stereo(make, **options):
    return lambda: (make(**options), tuple(one.clone() for one in STEREO))


CALLS = {
    "esr": loss(time.ESRLoss),
    "dc": loss(time.DCLoss),
    "log cosh": loss(time.LogCoshLoss),
    "snr": loss(time.SNRLoss),
    "snr, each": loss(time.SNRLoss, reduction="none"),
    "si-sdr": loss(time.SISDRLoss),
    "sd-sdr": loss(time.SDSDRLoss, zero_mean=False),
    "stft": loss(freq.STFTLoss, **SMALL),
    "stft, linear and phase": loss(freq.STFTLoss, w_lin_mag=1.0, w_phs=1.0, **SMALL),
    "stft, all parts": loss(freq.STFTLoss, output="full", **SMALL),
    "stft, weighted": loss(freq.STFTLoss, sample_rate=16000, perceptual_weighting=True, **SMALL),
    "multi-resolution stft": loss(freq.MultiResolutionSTFTLoss, **SEVERAL),
    "multi-resolution stft, all parts": loss(freq.MultiResolutionSTFTLoss, output="full", **SEVERAL),
    "random-resolution stft": loss(freq.RandomResolutionSTFTLoss, resolutions=2, max_fft_size=512, randomize_rate=1),
    "sum and difference": stereo(freq.SumAndDifferenceSTFTLoss, **SEVERAL),
    "sum and difference, all parts": stereo(freq.SumAndDifferenceSTFTLoss, output="full", **SEVERAL),
    "filter, high pass": loss(perceptual.FIRFilter),
    "filter, first difference": loss(perceptual.FIRFilter, filter_type="fd"),
    "filter, A-weighted": loss(perceptual.FIRFilter, filter_type="aw"),
    "sums": lambda: (perceptual.SumAndDifference(), (STEREO[0].clone(),)),
}
