"""Which state a life had lost when it resumed: from the probe's records alone, pure.

`streams` puts records in order; `alignment` finds the step of the reference that a life went on from; `seam` walks to
the first record that differs. One file a part of the state says how it differs there (`weights`, `averages`,
`optimizer`, `schedule`, `generators`, `batches`, `buffers`); `causes` keeps what no other difference explains, and
`wording` puts it into sentences. Nothing here touches the world.
"""

from chaos.diagnosis.diagnosing import diagnose
from chaos.diagnosis.wording import in_words

__all__ = ["diagnose", "in_words"]
