"""Where an operation happens, said so that it means the same place in every run: saves, phases, addresses.

A `Locator` reads the operations of one life in the order of the clock and keeps the little state that an address
needs. Its rules:

- An operation is located in the context that holds *before* it, and then moves the state on. So the operation that
  completes the first step of a life still belongs to startup (or recovery), and an acknowledgement is the last
  operation of its save. The one that begins a save belongs to that save.
- A save begins with the first change of a checkpoint, or of a temporary that becomes one. It ends with its printed
  acknowledgement; where the target prints none, with the next step, with the operation that began it happening again
  (the next save), or with the exit.
- Before the first step of a life there are no saves, if the target shows steps at all: what changes files there is
  startup or recovery.
- Within a save, the watched file operations, the acknowledgement, and the output of threads that have written in this
  save have addresses of the save. All else is counted per completed step: output of a thread that goes on training
  while another one saves is not part of that save.
- A rename or a link is the operation of whichever of its two names has the stronger role, the new one if they are
  equal.
- Files beside the checkpoints (in the output folder, not ignored, of no role: a pointer to the newest checkpoint, the
  state of a generator) belong to a save as far as threads that have written in it change them. They begin no save, and
  outside of saves they have no addresses: logs and samples are written whenever their threads like.
- The phase follows from the address: what is addressed within a save is `save`, and nothing else is.
- Standard error has no addresses, since progress bars depend on time; step lines and acknowledgements are read from
  it all the same.
"""

from __future__ import annotations

from collections import Counter

from chaos.lines import LineReader
from chaos.model import Address, FileRole, Operation, OperationKind, Phase, Record, Target, TargetProfile
from chaos.roles import FileNames, NamedFile

DATA_WRITES = frozenset({"write", "writev", "pwrite", "pwrite64", "pwritev", "pwritev2"})
PUTS = frozenset({"rename", "renameat", "renameat2", "link", "linkat"})
EXIT = "exit"
TICK = "tick"
STDOUT = "stdout"

_FOLDER_MAKERS = frozenset({"mkdir", "mkdirat"})
_METADATA = ("sync", "chmod", "chown", "xattr", "utime")
_STRENGTH = (FileRole.OTHER, FileRole.TEMPORARY, FileRole.FINAL, FileRole.CHECKPOINT)


class Acknowledges(Record, kw_only=True):
    """That an operation shows a save to be done: `save` is the ordinal in the life, 0 where no save was under way.

    `step` is the number printed (None: none was); not `is_printed` means that the thread which saved went on to
    something else.
    """

    save: int
    step: int | None
    is_printed: bool


class Located(Record, kw_only=True):
    """Where an operation is: `address` is None for what is logged but never counted, `role` for what touches no file.

    `key` is the file key, or the stream's name for output.
    """

    address: Address | None
    phase: Phase
    key: str = ""
    role: FileRole | None = None
    acknowledges: Acknowledges | None = None


class _Context:
    """Counts the operations within one save, or since one step: what makes an address there unique."""

    def __init__(self) -> None:
        """Begin with nothing counted."""
        self._incarnations: Counter[str] = Counter()
        self._occurrences: Counter[tuple[str, int, str]] = Counter()

    def place(self, key: str, call: str, *, creates: bool = False) -> tuple[int, int]:
        """Count one operation, and return its incarnation and occurrence."""
        self._incarnations[key] += creates
        incarnation = self._incarnations[key]
        self._occurrences[key, incarnation, call] += 1
        return incarnation, self._occurrences[key, incarnation, call]


class _Save:
    """The save that is under way: what began it, who has written in it."""

    def __init__(self, begun_by: tuple[str, str, bool]) -> None:
        """Begin a save with the operation `begun_by`: file key, call, whether it creates."""
        self.begun_by = begun_by
        self.context = _Context()
        self.writers: set[int] = set()
        self.last_writer = -1
        self.has_content = False


class Locator:
    """Locates the operations of one life, one by one, in clock order, each before it is carried out.

    Time and memory per operation are constant but for the number of files within one save or step. Never raises on
    odd operations.
    """

    def __init__(self, target: Target, profile: TargetProfile, *, is_first_life: bool) -> None:
        """Start before the first operation of a life; `is_first_life` tells startup from recovery."""
        self._profile = profile
        self._is_first_life = is_first_life
        self._names = FileNames(target, profile)
        self._lines = LineReader(target)
        self._steps = 0
        self._saves = 0
        self._save: _Save | None = None
        self._since_step = _Context()

    @property
    def steps(self) -> int:
        """Return the number of steps that the life has completed."""
        return self._steps

    @property
    def first_step(self) -> int | None:
        """Return the number in the life's first step line."""
        return self._lines.first_step

    @property
    def last_step(self) -> int | None:
        """Return the largest number in the life's step lines."""
        return self._lines.last_step

    @property
    def saves(self) -> int:
        """Return the number of saves that the life has begun."""
        return self._saves

    @property
    def is_in_save(self) -> bool:
        """Tell whether a save is under way."""
        return self._save is not None

    def locate(self, operation: Operation) -> Located:
        """Return where `operation` is, and advance as if it then happens."""
        if operation.kind is OperationKind.FILE:
            return self._locate_file(operation)
        if operation.kind is OperationKind.OUTPUT:
            return self._locate_output(operation)
        if operation.kind is OperationKind.TICK:
            return self._locate_tick(operation)
        return self._locate_mark(operation)

    # --- the four kinds -------------------------------------------------------------------------

    def _locate_file(self, operation: Operation) -> Located:
        """Locate a file operation; it may begin a save, and by that end the one before."""
        named, is_new_name = self._named(operation)
        if named.role is FileRole.OTHER and not self._is_part_of_save(operation):
            return Located(address=None, phase=self._phase(in_save=self.is_in_save), key=named.key, role=named.role)
        # What a killed life left behind must not change an address: a rename makes a new file also where one had the
        # name, and making a folder counts also where it is there.
        creates = operation.creates or operation.call in _FOLDER_MAKERS
        if operation.new_path:
            creates = is_new_name
        acknowledges = None
        if self._begins_save(operation.call, named, creates=creates):
            acknowledges = self._end_save(operation.thread)
            self._saves += 1
            self._save = _Save((named.key, operation.call, creates))
        if self._save:
            self._save.writers.add(operation.thread)
            self._save.last_writer = operation.thread
            self._save.has_content |= operation.call in DATA_WRITES or operation.call in PUTS
        return Located(
            address=self._address(named.key, operation.call, in_save=self.is_in_save, creates=creates),
            phase=self._phase(in_save=self.is_in_save),
            key=named.key,
            role=named.role,
            acknowledges=acknowledges,
        )

    def _locate_output(self, operation: Operation) -> Located:
        """Locate a write to standard output or error; it may complete steps and acknowledge a save."""
        phase_before = self._phase(in_save=False)
        reading = self._lines.read(operation.stream, operation.text, thread=operation.thread)
        completed = 0 if self._profile.uses_ticks else reading.steps
        acknowledges = self._end_save_at_step(operation.thread) if completed else None
        if reading.acknowledged:
            save, number = (self._saves if self._save else 0), reading.acknowledged[0]
            acknowledges = Acknowledges(save=save, step=number, is_printed=True)
        in_save = self._save is not None and (bool(reading.acknowledged) or operation.thread in self._save.writers)
        is_counted = operation.stream == STDOUT
        located = Located(
            address=self._address(STDOUT, operation.call, in_save=in_save) if is_counted else None,
            phase=Phase.SAVE if in_save else phase_before,
            key=operation.stream,
            acknowledges=acknowledges,
        )
        if reading.acknowledged:
            self._save = None
        self._complete_steps(completed)
        return located

    def _locate_tick(self, operation: Operation) -> Located:
        """Locate an optimizer step, which is complete only after it."""
        is_clock = self._profile.uses_ticks
        acknowledges = self._end_save_at_step(operation.thread) if is_clock else None
        address = self._address("", operation.call, in_save=False)
        located = Located(address=address, phase=self._phase(in_save=False), acknowledges=acknowledges)
        self._complete_steps(int(is_clock))
        return located

    def _locate_mark(self, operation: Operation) -> Located:
        """Locate a mark; the exit shows that the save before it is over."""
        is_exit = operation.call == EXIT
        acknowledges = self._end_save_at_step(operation.thread) if is_exit else None
        phase = Phase.FINISH if is_exit and not self._is_known_unfinished() else self._phase(in_save=False)
        address = self._address("", operation.call, in_save=False)
        return Located(address=address, phase=phase, acknowledges=acknowledges)

    # --- names and counts -----------------------------------------------------------------------

    def _named(self, operation: Operation) -> tuple[NamedFile, bool]:
        """Return the file that an operation is about, and whether that is the new name of a rename or link."""
        old = self._names.name(operation.path)
        if not operation.new_path:
            return old, False
        new = self._names.name(operation.new_path)
        is_new_name = self._strength(operation.new_path, new) >= self._strength(operation.path, old)
        return (new if is_new_name else old), is_new_name

    def _strength(self, path: str, named: NamedFile) -> tuple[int, bool]:
        """Return how much a name says: its role, and among those without one whether it lies beside the checkpoints."""
        return _STRENGTH.index(named.role), named.role is not FileRole.OTHER or self._names.is_beside(path)

    def _is_part_of_save(self, operation: Operation) -> bool:
        """Tell whether an operation on files without a role is done by the save: one beside, by a thread that saves."""
        if self._save is None or operation.thread not in self._save.writers:
            return False
        return any(self._names.is_beside(path) for path in (operation.path, operation.new_path))

    def _address(self, key: str, call: str, *, in_save: bool, creates: bool = False) -> Address:
        """Count an operation in its context, and return its address."""
        save = self._save if in_save else None
        incarnation, occurrence = (save.context if save else self._since_step).place(key, call, creates=creates)
        return Address(
            save=self._saves if save else 0,
            tick=0 if save else self._steps,
            file=key,
            incarnation=incarnation,
            call=call,
            occurrence=occurrence,
        )

    # --- saves and steps ------------------------------------------------------------------------

    def _begins_save(self, call: str, named: NamedFile, *, creates: bool) -> bool:
        """Tell whether this is the first operation of a save."""
        if self._save:
            # `mkstemp` makes an empty file, and the writer then opens it anew: that is one save still.
            has_content = self._save.has_content
            is_again = has_content and named.opens_save and self._save.begun_by == (named.key, call, creates)
            return is_again and not self._profile.prints_acknowledgements
        is_change = named.opens_save and not any(word in call for word in _METADATA)
        return is_change and (self._steps > 0 or not self._profile.has_steps)

    def _end_save(self, thread: int) -> Acknowledges | None:
        """End the save under way, if any; that is an acknowledgement where the thread that wrote last has gone on."""
        save, self._save = self._save, None
        if save is None or save.last_writer != thread:
            return None
        return Acknowledges(save=self._saves, step=None, is_printed=False)

    def _end_save_at_step(self, thread: int) -> Acknowledges | None:
        """End the save under way because training goes on, unless the target says itself when a save is done."""
        return None if self._profile.prints_acknowledgements else self._end_save(thread)

    def _complete_steps(self, number: int) -> None:
        """Count completed steps, and begin to count operations anew."""
        if number:
            self._steps += number
            self._since_step = _Context()

    # --- phases -----------------------------------------------------------------------------------

    def _phase(self, *, in_save: bool) -> Phase:
        """Return the phase of an operation that is, or is not, addressed within a save."""
        if in_save:
            return Phase.SAVE
        has_begun = self._steps > 0 if self._profile.has_steps else self._saves > 0
        if not has_begun:
            return Phase.STARTUP if self._is_first_life else Phase.RECOVERY
        return Phase.FINISH if self._is_finished() else Phase.STEP

    def _is_finished(self) -> bool:
        """Tell whether the last step is known to be done."""
        profile = self._profile
        if profile.last_step is not None and (self.last_step is None or self.last_step < profile.last_step):
            return False
        if not self._is_first_life:
            return profile.last_step is not None
        return self._steps >= profile.total_steps if profile.has_steps else self._saves >= len(profile.saves)

    def _is_known_unfinished(self) -> bool:
        """Tell whether steps are known to be missing, so that an exit is not the end of the training."""
        if self._is_first_life:
            return self._profile.has_steps and self._steps < self._profile.total_steps
        last_step = self._profile.last_step
        return last_step is not None and self.last_step is not None and self.last_step < last_step
