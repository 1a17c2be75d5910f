"""A worker: runs trials one after the other, `python -m chaos.executors.worker`, told through its standard input.

It ends when its standard input closes, whatever it is doing: the campaign is gone then, and the guardians of what runs
here see this process go.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from pathlib import Path
from typing import Final

import msgspec

from chaos.errors import ChaosError, HarnessError
from chaos.executors.bench import Bench
from chaos.executors.specification import SPECIFICATION, read_specification, write_outcome
from chaos.executors.task import Reply, Task
from chaos.lives.temporary import remove_all_temporaries

_TRACEBACK: Final = "error.txt"


def main() -> None:
    """Take tasks and answer each with a reply."""
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    answers = os.dup(1)
    os.dup2(2, 1)  # nothing that is printed here may be taken for a reply
    threading.Thread(target=_read_tasks, args=(tasks,), daemon=True).start()
    with Bench() as bench:
        while True:
            reply = _do(bench, msgspec.json.decode(tasks.get(), type=Task))
            os.write(answers, msgspec.json.encode(reply) + b"\n")


def _read_tasks(tasks: queue.SimpleQueue[bytes]) -> None:
    """Queue what comes in; end this process when nothing comes any more."""
    for line in sys.stdin.buffer:
        tasks.put(line)
    remove_all_temporaries()
    os._exit(3)


def _do(bench: Bench, task: Task) -> Reply:
    """Run one trial; whatever goes wrong becomes the reply."""
    folder = Path(task.folder)
    try:
        write_outcome(folder, bench.run(read_specification(folder / SPECIFICATION), folder))
    except ChaosError as error:
        return Reply(status=error.exit_status, message=error.message, hint=error.hint)
    except OSError as error:
        message = f"a trial could not be run: {error.strerror}: {error.filename or folder}"
        return Reply(status=HarnessError.exit_status, message=message, hint=_keep_traceback(folder, error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the campaign must hear of it
        message = f"chaos itself failed: {type(error).__name__}: {error}"
        return Reply(status=HarnessError.exit_status, message=message, hint=_keep_traceback(folder, error))
    return Reply()


def _keep_traceback(folder: Path, error: BaseException) -> str:
    """Write an error's traceback into the trial's folder, and return the sentence that says where."""
    path = folder / _TRACEBACK
    try:
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return "free some space, or choose another place with --runs DIR"
    return f"the traceback is in {path}: please report it, unless the disk is full"


if __name__ == "__main__":
    main()
