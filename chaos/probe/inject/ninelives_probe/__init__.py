"""What the probe of Ninelives does inside the target once torch is there; started by the `sitecustomize` beside it.

`reporter` appends lines to the life's file of ticks, `arming` wraps the places of torch that show a step, a batch, a
sample, a save; `recorder` makes one record of each optimizer step from what `batches`, `loaders`, `tensors` and
`generators` tell, `budget` decides which steps are digested, `imports` lists what a warm template may import.

It draws from no generator, keeps no tensor of the target's, and whatever goes wrong in it is not the target's trouble:
the step goes without a record. It imports nothing of the project, and torch only where the target has done so.
"""
