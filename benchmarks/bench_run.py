"""What the user waits for: ``ckptsim run`` of 3 strategies x 60 simulated s against the imports it cannot do without.

    python -m benchmarks.bench_run [--rounds N]

Wall time of whole processes, alternating: the command with everything compiled and cached, and
``import numba, pandas, pyarrow``.  Then the plane alone, started cold (nothing cached, everything compiled) and cached.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import print_table, record
from benchmarks.scenarios import scenario_text

IMPORTS = "import numba, pandas, pyarrow"
START = "from sim.plane import warm; warm()"


def wall(command: list[str], environment: dict[str, str] | None = None) -> float:
    """Seconds of a process; its output is of no interest unless it fails."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, *command], env=os.environ | (environment or {}), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stderr}")
    return seconds


def alternating(commands: dict[str, list[str]], rounds: int) -> dict[str, float]:
    """Median wall seconds by name; every round runs each command once, after one that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for i in range(rounds + 1):
        for name, command in commands.items():
            spent = wall(command)
            if i:
                seconds[name].append(spent)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    """The command, the imports, a cold and a cached start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chain.yaml"
        file.write_text(scenario_text(3, 4, record_bytes=10_000))
        run = ["-m", "sim", "run", str(file), "--out", str(Path(folder) / "out")]
        done = alternating({"run of 3 x 60 s": run, "imports": ["-c", IMPORTS], "cached start": ["-c", START]}, rounds)
        done["cold start"] = wall(["-c", START], {"NUMBA_CACHE_DIR": str(Path(folder) / "cache")})
    print_table(["what", "wall s", "x imports"], [(name, seconds, seconds / done["imports"]) for name, seconds in done.items()])
    record("run", [("3x4 10 kB, 3 strategies", f"{name}", seconds, "s") for name, seconds in done.items()])


if __name__ == "__main__":
    main()
