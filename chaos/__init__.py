"""Ninelives kills a training job from outside and proves that it comes back bit for bit.

Here lives the harness: the records at the bottom (`model`, `errors`), the pure core (`address`, `planners`, `checks`,
`verdict`), the edges that touch the world (`intercept`, `lives`, `checkpoints`), the one `campaign` loop, and the
command line on top.
Importing this package must stay cheap: nothing is imported here.
"""

__version__ = "0.1.0"
