"""The durability model: what a loss of power at a point of a recorded life may leave of the output folder.

`rules` says what each file system and each call promises, with the sources. `history` follows a recording and keeps
what is not durable yet: the names (`names`) and the bytes of files (`contents`). `enumerating` gives the states that
are allowed, the adversarial ones first; `admitting` says whether a real folder is one of them; `surviving` makes a
state a model of the folder; `blaming` tells what a lost checkpoint lacked. Nothing here touches the disk, but
`admitting`, which reads a folder.
"""

from chaos.states.durability.admitting import admits
from chaos.states.durability.enumerating import enumerate_losses, size_of_set
from chaos.states.durability.surviving import tree_after

__all__ = ["admits", "enumerate_losses", "size_of_set", "tree_after"]
