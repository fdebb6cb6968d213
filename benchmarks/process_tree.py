"""CPU time of everything a process has started, by what it is: Spark is five kinds of processes, and they do not wait for each other."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Self

__all__ = ["Meter"]

EVERY_S = 0.25
_TICKS_S = 1 / os.sysconf("SC_CLK_TCK")
_ROLES = {
    "CoarseGrainedExecutorBackend": "executors",
    "deploy.worker.Worker": "cluster",
    "deploy.master.Master": "cluster",
    "pyspark.daemon": "Python workers",
    "org.apache.spark.deploy.SparkSubmit": "driver's Java",
}


class Meter:
    """Looks at /proc four times a second; what a process used in its last quarter of a second is missed.  `with Meter() as meter`."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], tuple[str, float]] = {}  # (process, start) -> role, CPU seconds
        self._own_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def seconds(self) -> Counter[str]:
        """CPU seconds so far by role, those of processes that have ended included; subtract an earlier answer."""
        self._look()
        total: Counter[str] = Counter({"driver": -self._own_s})  # looking takes time, too
        for role, seconds in list(self._seen.values()):
            total[role] += seconds
        return total

    def _look_on(self) -> None:
        while not self._over.wait(EVERY_S):
            self._look()
            self._own_s = time.thread_time()

    def _look(self) -> None:
        found: dict[int, list[str]] = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                found[int(path.name)] = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
        for process, fields in found.items():
            if self._is_ours(process, found):
                role = self._seen.get((process, fields[19]), ("", 0.0))[0]
                self._seen[process, fields[19]] = (
                    role or _role(process),
                    (int(fields[11]) + int(fields[12])) * _TICKS_S,
                )

    @staticmethod
    def _is_ours(process: int, found: dict[int, list[str]]) -> bool:
        while process in found:
            if process == os.getpid():
                return True
            process = int(found[process][1])
        return False


def _role(process: int) -> str:
    if process == os.getpid():
        return "driver"
    try:
        command = Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    except OSError:
        return ""
    return next((role for word, role in _ROLES.items() if word in command), "")
