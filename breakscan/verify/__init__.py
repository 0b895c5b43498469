"""Runs a program as it is and with a change side by side, and says whether the change is equal and faster."""
