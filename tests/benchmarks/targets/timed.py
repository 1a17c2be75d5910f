"""Run a command without its output; print how long it took, and the most memory that any of its processes had.

python timed.py COMMAND…
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

started = time.perf_counter()
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
elapsed_s = time.perf_counter() - started
peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
sys.stdout.write(json.dumps({"status": status, "elapsed_s": elapsed_s, "peak_bytes": peak_bytes}))
