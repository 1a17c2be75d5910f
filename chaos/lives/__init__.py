"""One process tree of the target, from its start to its end or kill.

`guardian` is the small process between the supervisor and the target: it installs the filter, starts the target, and
sees to it that no descendant survives. `process` is the supervisor's handle on it, `environment` what a life finds
around itself. `intercepted` runs a life under the filter, `polled` one without; both take a `LifeRequest` and give a
`LifeRecord`. Nothing here judges.
"""
