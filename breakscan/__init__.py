"""breakscan: where torch.compile breaks, recompiles or gives up, why, and what to write instead."""

__version__ = "0.1.0"
