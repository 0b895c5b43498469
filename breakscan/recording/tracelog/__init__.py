"""Reads the logs that TORCH_TRACE writes: what a run left that breakscan did not start."""
