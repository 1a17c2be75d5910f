"""Planners: from what the references taught, and a seed, to the next trials; pure.

`drawing` draws a campaign's schedule, `redraw` replaces kills that were not reached; both use `lineages`, which
chains kills so that each can be reached after the one before, `positions`, which says from which save a killed life
should resume, and what a point's address is in the life after that, and `kinds`, which says what a kind of fault leaves
to be drawn. "Kill" here stands for a fault of any kind: one kind a lineage, each kind drawn by itself.
"""
