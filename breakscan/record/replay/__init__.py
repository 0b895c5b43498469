"""Runs the examples of rules."""
