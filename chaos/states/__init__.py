"""Crash states: what is in the output folder after a life, or would be at any of its operations.

`snapshot` looks at a folder as a crash state that can be compared between runs. `recorder` keeps what each operation of
a life changes: `changes` are the records, `content` the bytes, `log` the files; `book` holds what is known so far,
`name_changes` and `byte_changes` write calls down, `loose` looks at those that run by themselves. From that
`recording` finds any crash state as a `tree` (a model of the folder: `extents` are a file's bytes, `pages` their
digest), `building` makes it real, `comparing` holds it against a real folder, `reading` is how real folders are read.
"""
