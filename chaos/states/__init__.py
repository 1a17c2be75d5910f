"""Crash states: what is in the output folder after a life, in a form that can be compared between runs."""
