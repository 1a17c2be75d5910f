"""What each finding means and what usually causes it, for a reader who has never seen this tool."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.model import CheckName, FaultKind, Record


class Explanation(Record, kw_only=True):
    """The words for one check: the rule, what it means that it is broken, what usually causes that and what to do."""

    rule: str
    meaning: str
    cause: str


FAULT_WORDS: Mapping[FaultKind, str] = MappingProxyType(
    {
        FaultKind.KILL: "process kill",
        FaultKind.TORN_WRITE: "kill inside a write, at any byte",
        FaultKind.POWER_LOSS: "power loss",
        FaultKind.DISK_FULL: "full disk",
        FaultKind.IO_ERROR: "I/O error",
        FaultKind.SHORT_WRITE: "short write",
        FaultKind.BIT_FLIP: "damage at rest",
    }
)

EXPLANATIONS: Mapping[CheckName, Explanation] = MappingProxyType(
    {
        CheckName.NO_VALID_CHECKPOINT: Explanation(
            rule="after each fault a whole checkpoint is left, once a save was acknowledged",
            meaning="This fault at this point destroys every checkpoint: the training done so far is gone.",
            cause=(
                "The file is usually overwritten in place. Write to a temporary name in the same folder, "
                "fsync it, then os.replace it onto the checkpoint, and delete the previous one only "
                "afterwards."
            ),
        ),
        CheckName.ACKNOWLEDGED_LOST: Explanation(
            rule="what survives a fault is as new as the last acknowledged save",
            meaning="The target said that a save was done, and after the fault only an older one was there.",
            cause=(
                "The save is usually announced before its last write or rename is done (a background writer "
                "that is not waited for), or the newest file is overwritten in place while an older copy "
                "survives. After a loss of power: an fsync is missing, of the file before it is renamed, or of "
                "its folder afterwards."
            ),
        ),
        CheckName.FAILED_SAVE_IGNORED: Explanation(
            rule="a life that met an error does not act as if its save were there",
            meaning=(
                "The disk said that it could not write, and the job said that all was well: whoever relies on its "
                "output or its exit status is misled, and finds an old checkpoint, or none."
            ),
            cause=(
                "Usually an exception around the save is caught and only logged, the error of fsync or close is not "
                "looked at, a saver in another thread or process fails alone, or the count that write returns is "
                "taken for granted."
            ),
        ),
        CheckName.RESUME_CRASHED: Explanation(
            rule="a life that is started again does not fail",
            meaning=(
                "After the fault the job does not come back by itself: somebody has to repair the folder by hand."
            ),
            cause=(
                "The newest file or folder is usually half written and is loaded without a look at whether it "
                "is whole, or a leftover is in the way. Publish by rename, check at load, and fall back to "
                "the previous checkpoint."
            ),
        ),
        CheckName.RESUME_HUNG: Explanation(
            rule="a life that is started again, or that met an error, does not hang",
            meaning=(
                "After the fault the job starts again or goes on, but never ends: it holds the machine for nothing."
            ),
            cause=(
                "Usually a lock file left by the dead process, a wait for a process or thread that is gone, or a write "
                "that is tried again for ever. If the target is merely slow, raise `deadline_s`."
            ),
        ),
        CheckName.LOST_WORK: Explanation(
            rule="a life that is started again resumes from the newest whole checkpoint",
            meaning=(
                "Steps that were already in a whole checkpoint were trained again, from an older one or from the start."
            ),
            cause=(
                "Usually the step is not restored, an error at load is swallowed and the training starts from "
                "0, or the newest file is chosen by a rule that a kill upsets. If a pointer file names the "
                "current checkpoint, add it to `checkpoints`: then a save counts only once its pointer is "
                "written."
            ),
        ),
        CheckName.CORRUPTION_ACCEPTED: Explanation(
            rule="a damaged checkpoint is not resumed from as if it were whole",
            meaning=(
                "A bit that rots, or a file that is cut short, goes into the training without a word, and into every "
                "checkpoint after it."
            ),
            cause=(
                "Neither torch.load nor safetensors looks at a checksum. Keep one of the content beside or in the "
                "checkpoint, compare it at load, and fall back, loudly, to the checkpoint before."
            ),
        ),
        CheckName.DID_NOT_FINISH: Explanation(
            rule="exit status 0 means that the last step is done and the final files are there",
            meaning=(
                "The job reports success although its work is not done: whoever relies on the exit status is misled."
            ),
            cause=(
                "Usually the number of steps left is worked out wrongly after a resume, or the final file is "
                "only written when a life did at least one step."
            ),
        ),
        CheckName.SILENT_DIVERGENCE: Explanation(
            rule="an interrupted lineage ends with the same bits as the uninterrupted run",
            meaning=("The job came back and ended well, but trained something else; nothing in its output says so."),
            cause=(
                "Usually something is missing in the resume file: optimizer state, a random generator's "
                "state, the position in the data, the scheduler's step; or the weights are kept in half "
                "precision."
            ),
        ),
        CheckName.DATA_REPEATED: Explanation(
            rule="an interrupted lineage sees no sample more often than the uninterrupted run",
            meaning="Samples that the training had already used were used again after the restart, in place of others.",
            cause=(
                "Usually the position in the data is not restored, so that the epoch (or all) begins anew, it is saved "
                "before the batch that it counts was used, or the sampler shuffles in another order than before: save "
                "the position together with the weights, and make the shuffle a function of seed and epoch."
            ),
        ),
        CheckName.DATA_SKIPPED: Explanation(
            rule="an interrupted lineage leaves out no sample that the uninterrupted run had seen by then",
            meaning="Samples that were still to come were never used after the restart: the model has not seen them.",
            cause=(
                "Usually batches that the loader had fetched ahead count as used, a half-filled accumulation is thrown "
                "away, or the number of batches to skip is not set back to 0 when the next epoch begins."
            ),
        ),
        CheckName.SAVING_CHANGES_TRAINING: Explanation(
            rule="a run that saves ends with the same bits as one that does not",
            meaning="To save, by itself and without any kill, changes what is trained.",
            cause=(
                "Usually the save draws from a random generator (an evaluation, a sample), or casts or moves "
                "the live weights instead of a copy."
            ),
        ),
        CheckName.ORPHAN_PROCESSES: Explanation(
            rule="no process goes on when a life has ended",
            meaning=(
                "A process of the job outlived it: it keeps memory and devices, and may write into the next "
                "life's files."
            ),
            cause=(
                "Usually a data-loader worker or a background saver in a session of its own that is not "
                "joined at the end."
            ),
        ),
        CheckName.LEAKED_FILES: Explanation(
            rule="the files left over do not grow with the number of kills",
            meaning=("Each kill leaves something behind that nobody removes; after enough restarts the disk is full."),
            cause=(
                "Usually temporary files with a pid, a time or a random part in their names. Give them fixed "
                "names, or remove stale ones at start. If these files are logs, name them in `ignore`."
            ),
        ),
        CheckName.UNSAFE_CHECKPOINT: Explanation(
            rule="checkpoints can be read with torch.load(weights_only=True)",
            meaning=("To load this checkpoint is to run whatever code is in it: one from a stranger can do anything."),
            cause=(
                "Usually a pickled object of a class of one's own, or numpy's generator state. Save tensors, "
                "numbers, strings, lists and dicts only."
            ),
        ),
    }
)
