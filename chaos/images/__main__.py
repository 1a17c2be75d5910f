"""`python -m chaos.images ext4 xfs …`: tries kinds of images, for `chaos.images.usable`."""

from __future__ import annotations

import sys

from chaos.images.usable import main

if __name__ == "__main__":
    main(sys.argv[1:])
