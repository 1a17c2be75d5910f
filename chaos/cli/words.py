"""A command line in two halves: our own options, and after `--` the command under test, which is not ours to read."""

from __future__ import annotations

import click

_KEY = "chaos.command_under_test"


class CommandWithTarget(click.Command):
    """A click command that takes everything after `--` aside before it reads its own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut the arguments at the first `--`."""
        if "--" in args:
            position = args.index("--")
            ctx.meta[_KEY] = tuple(args[position + 1 :])
            args = args[:position]
        return super().parse_args(ctx, args)


def command_under_test(ctx: click.Context) -> tuple[str, ...] | None:
    """Return the words after `--`, None where there was none."""
    words: tuple[str, ...] | None = ctx.meta.get(_KEY)
    return words
