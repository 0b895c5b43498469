"""The concrete syntax tree of a file, as rewrites see it, and what they build new code with."""
