"""Planners: from what the references taught, and a seed, to the next trials; pure.

`drawing` draws a campaign's schedule, `redraw` replaces kills that were not reached; both use `lineages`, which
chains kills so that each can be reached after the one before, and `positions`, which says from which save a killed
life should resume, and what a point's address is in the life after that.
"""
