"""Makes a small program of what a run recorded, and runs it to see whether it breaks in the same way."""
