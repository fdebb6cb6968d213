"""Does reading traces need more memory for more of them?  A trace is repeated 10 and 100 times, under other names and at later times.

    python -m benchmarks.trace_scale TRACE.csv.gz                  # local[2]: the driver's JVM does the work
    python -m benchmarks.trace_scale TRACE.csv.gz --standalone     # a master and two workers: executors of their own
    python -m benchmarks.trace_scale TRACE.csv.gz --one-file       # the copies one after the other, in one file
    python -m benchmarks.trace_scale TRACE.csv.gz --rows 1000 --times 40 400        # many small files

Reads and cuts windows, and prints for each size: rows, seconds, rows per second, CPU seconds, and the largest resident
memory [MB].  CPU seconds are those of all processes, on a shared machine those of others too.  Memory is that of the
driver's Python, its JVM, the executors' JVMs and the Python workers, each of the one process that had most.
SPARK_DRIVER_MEMORY bounds the driver's heap (1g if unset); what a JVM takes below its bound says little, for it
collects garbage late.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measure import record
from benchmarks.standalone import Cluster, standalone

TIMES = (1, 10, 100)
EVERY_S = 0.1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ROLES = ("driver Python", "driver JVM", "executor JVM", "Python worker")


def repeat(trace: Path, folder: Path, times: int, *, one_file: bool = False, most_rows: int | None = None) -> int:
    """Copies that follow each other in time; how many rows.  The first column is the time in seconds."""
    header, *rows = gzip.decompress(trace.read_bytes()).decode().splitlines()
    rows = rows[:most_rows]
    cells = [row.split(",", 1) for row in rows]
    length = int(cells[-1][0]) - int(cells[0][0]) + 1
    for i in range(times):
        text = "\n".join(f"{int(at) + i * length},{rest}" for at, rest in cells) + "\n"
        names = "" if one_file and i else header + "\n"
        with (folder / f"copy-{0 if one_file else i:04d}.csv.gz").open("ab") as file:
            file.write(gzip.compress((names + text).encode(), compresslevel=1))
    return times * len(rows)


class Use:
    """The largest resident memory of each role [MB], and CPU seconds of all together, as long as somebody looks."""

    def __init__(self, driver: int, cluster: Cluster | None) -> None:
        self.driver, self.cluster = driver, cluster
        self.most_mb = dict.fromkeys(ROLES, 0.0)
        self._cpu_s: dict[int, float] = {}

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu_s.values())

    def look(self) -> None:
        workers = self.cluster.python_workers() if self.cluster else []
        executors = self.cluster.executors() if self.cluster else []
        for process in [self.driver, *descendants(self.driver), *executors, *workers]:
            command = read(process, "cmdline")
            if process in executors:
                role = "executor JVM"
            elif "java" in command.partition("\0")[0]:
                role = "driver JVM"
            elif process in workers or "pyspark" in command:
                role = "Python worker"
            elif process == self.driver:
                role = "driver Python"
            else:
                continue
            if times := read(process, "stat").rpartition(")")[2].split()[11:13]:
                self._cpu_s[process] = sum(map(int, times)) / TICKS_PER_S
            peak = next(
                (line.split()[1] for line in read(process, "status").splitlines() if line.startswith("VmHWM")), "0"
            )
            self.most_mb[role] = max(self.most_mb[role], int(peak) / 1e3)


def descendants(process: int) -> Iterator[int]:
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
    except OSError:  # it has just ended
        return
    for thread in threads:
        for child in map(int, read_path(thread / "children").split()):
            yield child
            yield from descendants(child)


def read(process: int, name: str) -> str:
    return read_path(Path(f"/proc/{process}/{name}"))


def read_path(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has just ended
        return ""


def measured(arguments: list[str], cluster: Cluster | None) -> tuple[float, Use]:
    """Seconds of a command, and what it used.  RuntimeError: it fails."""
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, "-m", "sim", *arguments], stdout=output, stderr=output)
        use = Use(process.pid, cluster)
        try:
            while process.poll() is None:
                use.look()
                time.sleep(EVERY_S)
        finally:
            process.terminate()
        output.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}: {output.read()[-2000:]}")
    return time.monotonic() - begun, use


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("trace", type=Path)
    options.add_argument("--times", type=int, nargs="+", default=TIMES)
    options.add_argument("--standalone", action="store_true")
    options.add_argument("--one-file", action="store_true")
    options.add_argument("--rows", type=int, help="of the trace, from its begin; default: all")
    given = options.parse_args()
    kept: list[tuple[str, str, float, str]] = []
    print(
        "  ".join(["what       times      rows      s  rows/s   CPU s", *(f"{role:>13}" for role in ROLES)]), flush=True
    )
    for times in given.times:
        with ExitStack() as stack:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="ckptsim-scale-"))
            cluster = stack.enter_context(standalone(Path(place, "cluster"))) if given.standalone else None
            folder = Path(place, "raw")
            folder.mkdir()
            rows = repeat(given.trace, folder, times, one_file=given.one_file, most_rows=given.rows)
            master = cluster.url if cluster else "local[2]"
            steps: dict[str, list[str]] = {
                "read": ["read", str(folder), "--out", f"{place}/tables"],
                "windows": ["windows", f"{place}/tables", "--out", f"{place}/windows.csv", "--cut", "bursts"],
            }
            for name, arguments in steps.items():
                seconds, use = measured(["traces", *arguments, "--master", master], cluster)
                numbers = [f"{name:10} {times:5d} {rows:9d} {seconds:6.0f} {rows / seconds:7.0f} {use.cpu_s:7.0f}"]
                print("  ".join([*numbers, *(f"{use.most_mb[role]:13.0f}" for role in ROLES)]), flush=True)
                case = f"{name}, {rows} rows, {'standalone' if cluster else master}"
                kept.append((case, "CPU", use.cpu_s, "s"))
                kept += [(case, f"memory of {role}", use.most_mb[role], "MB") for role in ROLES if use.most_mb[role]]
    record("traces", kept)


if __name__ == "__main__":
    main()
