"""Real file systems in image files, on loop devices: what a disk holds when the power goes, looked at for real.

`kinds` are the file systems and their mount options, `isolation` the mount namespace in which alone anything is
mounted, `programs` runs mount(8) and its like, `mounting` mounts image files, `templates` makes them, `copying` copies
one as it is at one moment, `cuts` takes the power away, `nudges` brings some of what is unsynced to the disk first,
`usable` says which kinds can be used here, and why others cannot. Needs root.

Nothing here has to be cleaned up: the mounts are those of a namespace that ends with its last process, whatever kills
it, and the loop devices detach themselves when nothing is mounted from them any more.
"""

from chaos.images.copying import copy_image
from chaos.images.cuts import shut_down
from chaos.images.isolation import isolate
from chaos.images.kinds import DEFAULT_KINDS, ImageKind, parse_kind
from chaos.images.mounting import is_mounted, mount_image, mount_memory, mounted, unmount
from chaos.images.nudges import Nudge, nudge
from chaos.images.templates import Template
from chaos.images.usable import Usable, find_usable

__all__ = [
    "DEFAULT_KINDS",
    "ImageKind",
    "Nudge",
    "Template",
    "Usable",
    "copy_image",
    "find_usable",
    "is_mounted",
    "isolate",
    "mount_image",
    "mount_memory",
    "mounted",
    "nudge",
    "parse_kind",
    "shut_down",
    "unmount",
]
