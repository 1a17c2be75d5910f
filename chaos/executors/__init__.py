"""From a trial to its outcome: `lineage` runs one, `bench` several one after the other, `pool` many side by side.

The unit of work is a file in (the specification) and a file out (the outcome), so that another engine can run it
elsewhere.
"""
