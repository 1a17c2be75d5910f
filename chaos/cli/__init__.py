"""The command line: one file a command, each loaded only when it is typed; no logic lives here.

Each module has its click command under the name `command`; what that returns is the exit status (None: 0).
"""
