"""Judges an explanation: gates, the lock, which break of one run is which of another."""
