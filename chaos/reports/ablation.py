"""What `chaos ablate` found, as records: rows with their steps, sizes, claims. Beside it: table, claims, plot."""

from __future__ import annotations

from chaos.model import SCHEMA, Diagnosis, Record, TensorDifference


class StepMeasure(Record, kw_only=True):
    """One step of a row beside the same update of the reference; the state that is resumed from has no loss.

    `step` counts updates as the reference does. `weight_distance` is the L2 norm of the difference over all weights,
    `elements_differing` counts weights with other bits, `update_length` is the L2 norm of what the update changed.
    """

    step: int
    loss: float | None
    reference_loss: float | None
    weight_distance: float
    elements_differing: int
    update_length: float = 0.0
    reference_update_length: float = 0.0

    @property
    def loss_gap(self) -> float:
        """Return how much higher the loss is than the reference's, in nats."""
        return 0.0 if self.loss is None or self.reference_loss is None else self.loss - self.reference_loss


class AblationRow(Record, kw_only=True):
    """One row: a run that was killed at the seam and resumed with something left out.

    `difference` is between the weights after the reference's last step and those after as many updates. `loss_jump` is
    the loss of the first step after the seam less the reference's of that step, `loss_change` less that of the step
    before; `mean_gap` and `largest_gap` are over all steps after the seam, in nats. `update_ratio` is how many times as
    long as the reference's the first update after the seam is. `first_different_step` is the first update that left
    other weights (None: none did). `updates` counts those of both lives together. `steps` begin with the state that is
    resumed from, with the seam's number.
    """

    name: str
    left_out: str
    order: str
    is_intact: bool
    difference: TensorDifference
    distance: float
    loss_before: float
    loss_after: float
    loss_jump: float
    loss_change: float
    mean_gap: float
    largest_gap: float
    update_ratio: float
    first_different_step: int | None
    updates: int
    diagnosed_life: int | None = None
    diagnosis: Diagnosis | None = None
    diagnosis_in_words: tuple[str, ...] = ()
    steps: tuple[StepMeasure, ...]

    @property
    def is_same_bits(self) -> bool:
        """Tell whether no weight has other bits than the reference's."""
        return self.difference.elements_differing == 0 and self.difference.tensors_differing == 0


class AblationReference(Record, kw_only=True):
    """The uninterrupted run of one order of batches: its loss at each step, and how long each update was.

    `update_lengths` begin with the second update: what the first one began from is in no file.
    """

    order: str
    losses: tuple[float, ...]
    update_lengths: tuple[float, ...]


class AblationSizes(Record, kw_only=True):
    """What the files hold, in bytes, and what half precision does to the logits.

    `weights_bytes` are those of the fp32 weights alone, `optimizer_bytes` those of the optimizer's tensors in the
    resume file. `logits` are compared on fixed held-out batches; `loss` and `half_loss` are the losses there, in nats.
    """

    weights_bytes: int
    optimizer_bytes: int
    resume_file_bytes: int
    half_file_bytes: int
    logits: int
    largest_logit_difference: float
    mean_logit_difference: float
    loss: float
    half_loss: float

    @property
    def optimizer_share(self) -> float:
        """Return the optimizer's share of the resume file."""
        return self.optimizer_bytes / self.resume_file_bytes

    @property
    def half_share(self) -> float:
        """Return the size of the half-precision file, as a share of the fp32 weights."""
        return self.half_file_bytes / self.weights_bytes


class Claim(Record, kw_only=True):
    """One thing that the lesson says, and the figures for or against it.

    `is_judged`: the exit status depends on it. The others are tendencies, which need not show at every seed.
    """

    text: str
    figures: str
    holds: bool
    is_judged: bool = True


class Ablation(Record, kw_only=True):
    """The whole experiment; `came_out_as_told`: every claim that is judged holds. `plot` is empty where none was drawn.

    `optimizer_share` and `half_share` are those of `sizes`.
    """

    schema: int = SCHEMA
    steps: int
    seam: int
    seed: int
    rows: tuple[AblationRow, ...]
    references: tuple[AblationReference, ...]
    sizes: AblationSizes
    optimizer_share: float
    half_share: float
    claims: tuple[Claim, ...]
    came_out_as_told: bool
    elapsed_s: float
    plot: str = ""
    run_dir: str
