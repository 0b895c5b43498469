"""Runs a program with and without a change, side by side, and says whether the results are equal and the change is
faster.
"""
