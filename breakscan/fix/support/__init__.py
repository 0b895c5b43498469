"""Shared code of the rewrites: the tree of a file, facts about its code, and functions that build new code."""
