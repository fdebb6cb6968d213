"""What a channel costs: resident memory, and the price of a hop as the parallelism grows to 4 x 256.

    python -m benchmarks.bench_memory [--seconds 60] [--records 32768]

Each run is a process of its own.  Memory: growth of the resident set from before construction to the end of the run,
over the number of channels.  The source is read at 0.95 of what the sink serves (30 MB/s per task); a hop is a data
buffer consumed.  The simulated time shrinks with the parallelism but for the largest run, which lasts as long as asked.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.driver import drive, outcome
from benchmarks.measure import print_table, record
from benchmarks.workloads import SECOND, Workload, chain
from sim.plane import build, warm

STAGES, LOAD = 4, 0.95
HOPS = 1_000_000  # of the smaller runs


def resident_bytes() -> int:
    """Now, where the system says so; else the most there ever was."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measured(parallelism: int, seconds: float, record_bytes: int) -> dict[str, float]:
    """One run, in this process."""
    warm()
    drive(build(chain(3, 1)), Workload("warm", chain(3, 1), SECOND // 10))
    spec = chain(STAGES, parallelism, record_bytes=record_bytes, load=LOAD)
    work = Workload(f"4x{parallelism}", spec, round(seconds * SECOND), 10 * SECOND)
    before, begin = resident_bytes(), time.process_time()
    plane = build(spec)
    built = time.process_time()
    snapshots = drive(plane, work)
    spent, grown = time.process_time() - built, resident_bytes() - before
    done = outcome(plane, snapshots)
    channels = (STAGES - 1) * parallelism**2
    return {
        "channels": channels,
        "simulated_s": seconds,
        "hops": done.buffers,
        "cpu_s": spent,
        "building_s": built - begin,
        "bytes_per_channel": grown / channels,
    }


def main() -> None:
    """One row per parallelism."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="simulated, of the largest run")
    parser.add_argument("--records", type=int, default=32768, help="bytes of a record")
    parser.add_argument("--parallelism", type=int, nargs="*", default=[1, 4, 16, 64, 256])
    parser.add_argument("--one", type=int, help="run this parallelism only, in this process, and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.seconds, options.records)))
        return
    rows, history = [], []
    for parallelism in options.parallelism:
        seconds = (
            options.seconds if parallelism == max(options.parallelism) else HOPS / (1000 * (STAGES - 1) * parallelism)
        )
        command = [sys.executable, "-m", "benchmarks.bench_memory", "--one", str(parallelism)]
        command += ["--seconds", str(seconds), "--records", str(options.records)]
        done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        per_hop, speed = done["cpu_s"] / done["hops"] * 1e9, seconds / done["cpu_s"]
        name = f"4x{parallelism} {options.records} B"
        rows.append(
            (
                name,
                int(done["channels"]),
                seconds,
                done["building_s"],
                done["cpu_s"],
                speed,
                per_hop,
                done["bytes_per_channel"],
            )
        )
        history += [
            (name, "CPU per hop", per_hop, "ns"),
            (name, "simulated time / CPU time", speed, ""),
            (name, "memory per channel", done["bytes_per_channel"], "B"),
        ]
    print_table(
        [
            "run",
            "channels",
            "simulated s",
            "building s",
            "CPU s",
            "simulated s / CPU s",
            "ns per hop",
            "bytes per channel",
        ],
        rows,
    )
    record("memory", history)


if __name__ == "__main__":
    main()
