"""Reads what torch writes as text: breaks, guards, graphs, generated code, tracebacks, names."""
