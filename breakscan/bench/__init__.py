"""Measures in which ways a program's compiled calls can be run: eager, by backends, modes and flags."""
