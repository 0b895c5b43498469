"""Measures the ways to run a program's compiled calls: eager, and with backends, modes and flags."""
