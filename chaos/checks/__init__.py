"""The rules, one a file, each a pure function over records: `check(reference, outcomes, target) -> CheckResult`.

`outcomes` are the lineages of the control and of the faulted trials. Nothing here reads a file, starts a process or
looks at a clock: what was seen is in the records. To add a rule, add its file, its name in `chaos.model.CheckName`,
its severity, its explanation in `chaos.reports.explanations`, and a line in `ALL_CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from chaos.checks import (
    acknowledged,
    corruption,
    data_order,
    exactness,
    finishes,
    ignored,
    leaks,
    orphans,
    recovery_point,
    resume_hung,
    resumes,
    saving,
    survival,
    unsafe,
)
from chaos.model import CheckName, CheckResult, Outcome, Reference, Target

Check = Callable[[Reference, tuple[Outcome, ...], Target], CheckResult]

ALL_CHECKS: Mapping[CheckName, Check] = MappingProxyType(
    {
        CheckName.NO_VALID_CHECKPOINT: survival.check,
        CheckName.ACKNOWLEDGED_LOST: acknowledged.check,
        CheckName.FAILED_SAVE_IGNORED: ignored.check,
        CheckName.RESUME_CRASHED: resumes.check,
        CheckName.RESUME_HUNG: resume_hung.check,
        CheckName.LOST_WORK: recovery_point.check,
        CheckName.CORRUPTION_ACCEPTED: corruption.check,
        CheckName.DID_NOT_FINISH: finishes.check,
        CheckName.SILENT_DIVERGENCE: exactness.check,
        CheckName.DATA_REPEATED: data_order.check_repeated,
        CheckName.DATA_SKIPPED: data_order.check_skipped,
        CheckName.SAVING_CHANGES_TRAINING: saving.check,
        CheckName.ORPHAN_PROCESSES: orphans.check,
        CheckName.LEAKED_FILES: leaks.check,
        CheckName.UNSAFE_CHECKPOINT: unsafe.check,
    }
)
