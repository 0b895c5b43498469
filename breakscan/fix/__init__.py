"""Turns findings into edits, edits into texts, and texts into files."""
