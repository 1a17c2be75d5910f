"""Checkpoints from outside: files and folders of any usual format, read into named leaves and compared by bits.

Nothing in here runs a line of the file under examination and nothing imports torch (but `weights_only`, a program of
its own). The readers work on windows of files in small chunks; `process` keeps them in a child process with limits,
which is the way in for all other parts.

There is one comparison, `pairs`: one pass over both sides, by bits. `compare` sums up for trials what it yields, and
`diff` gathers it by component and reads it.
"""
