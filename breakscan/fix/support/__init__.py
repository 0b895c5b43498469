"""What rewrites share: the concrete syntax tree of a file, facts about its code, and functions that build new code."""
