"""Save patterns on real file systems, cut at every operation, and the durability model asked about what is left.

`patterns` are the ways to save and what is known of each, `schedules` say what is nudged to the disk before a cut,
`bench` is where images lie, `cutter` takes cuts while a call is held, `saving` runs one save, `views` says what a
folder holds, `looking` mounts the cuts and asks the model, `promises` holds the model's whole sets against what is
known, `examining` does all of it for one pattern on one kind of image, `tables` prints it. `warmth` gives lives that
have torch.
"""
