"""Saves as it should, and never looks at what it has saved; `--silent` lets it print nothing."""

import sys
from pathlib import Path

from training import Training, publish, say, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
speak = (lambda _: None) if "--silent" in sys.argv else say
train(out, Training(), lambda training: publish(checkpoint, training.state()), say=speak)
