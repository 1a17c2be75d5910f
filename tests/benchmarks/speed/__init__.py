"""The benchmark's parts: one file a tool that is measured, `arithmetic` for what follows from the figures.

Nothing here is collected as a test, and nothing asserts an absolute time. `comparison` runs all, `tables` prints it.
"""
