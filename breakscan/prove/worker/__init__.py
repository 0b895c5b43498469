"""Runs a user's program in processes of its own up to its compiled calls, and runs, compares and times these."""
