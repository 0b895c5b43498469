"""Runs breakscan over many programs and models, keeps what was found, and compares such runs."""
