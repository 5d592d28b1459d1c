"""`python alone.py REPORT COMMAND…` runs a command and writes to REPORT what it and all that it started used.

It imports nothing of Augury: what a process has held before it starts another counts as held by that one, too.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from time import perf_counter

_ADOPT = 36  # PR_SET_CHILD_SUBREAPER: what a process leaves behind becomes a child of this one


def main(report: str, command: list[str]) -> int:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    began = perf_counter()
    code = subprocess.call(command)
    wall = perf_counter() - began
    with suppress(ChildProcessError):
        while True:  # Java outlives the Python process that started it by a moment
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 if sys.platform == "darwin" else 1024
    with open(report, "w", encoding="utf-8") as file:
        json.dump({"cpu": used.ru_utime + used.ru_stime, "wall": wall, "bytes": used.ru_maxrss * unit}, file)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
