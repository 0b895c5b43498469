"""A rule as a user writes one."""

OWN_RULE = """+++
id = "BRK001"
name = "our-own-rule"
summary = "a rule of ours"
why = "we say so"
instead = "write something else"
kind = "performance"

[match]
event = "branch"
+++
"""
