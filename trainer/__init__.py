"""The bundled trainer: a small language model on real text that resumes bit for bit after any kill.

`options` is what can be asked for, `model` the network, `data` the text and its two orders, `state` all that must be
saved to go on exactly, `checkpoint` how a file is published and read, `loop` the training; `half` measures what half
precision costs. It knows nothing of `chaos`: to the harness it is one more script. `--save` and `--forget` make it do
what exactness or safety forbids, for teaching.
"""
