"""Turns a recording into an explanation, which is what reports show."""
