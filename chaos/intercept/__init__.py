"""The only place that knows the kernel: which calls are held, how they are read, carried out and answered.

`syscalls` holds the numbers of both machines, `filter` the seccomp program, `notify` the listener's three requests,
`memory` reads the target, `decode` turns a held call into what it is about to do, `places` says which file that is,
`pending` is the call while it is held, `execute` makes the call on the target's behalf, `perform` does so and answers,
`recorder` says what it is told that keeps the data, `ledger` proves that nothing was written unseen, `session` is the
one clock that ties them together; `spelling` makes text of file names. Nothing here knows of checkpoints, saves or
trials.
"""
