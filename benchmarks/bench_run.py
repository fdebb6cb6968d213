"""What the user waits for: ``ckptsim run`` of a small scenario against the imports it cannot do without.

    python -m benchmarks.bench_run [--rounds N] [--against OTHER_CHECKOUT]

CPU time of whole processes with their workers, alternating: two scenarios with everything compiled and cached, and
``import llvmlite.binding, pandas, pyarrow``.  Then the plane alone, started cold (nothing cached, everything compiled) and cached.
`--against`: the same scenarios by another checkout whose kernel is warm, in the same rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

from benchmarks.measure import print_table, python_of, record
from benchmarks.scenarios import scenario_text

ROOT = Path(__file__).resolve().parent.parent
IMPORTS = "import llvmlite.binding, pandas, pyarrow"
OTHER = ", before"
START = "from sim.plane import warm; warm()"


def spent(command: list[str], checkout: Path = ROOT, environment: dict[str, str] | None = None) -> float:
    """CPU seconds of a process and those that it started; its output is of no interest unless it fails."""
    # users keep what Python compiles
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [python_of(checkout), *command],
        cwd=checkout,
        env=inherited | {"PYTHONPATH": str(checkout)} | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stderr}")
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def alternating(commands: dict[str, tuple[list[str], Path]], rounds: int) -> dict[str, float]:
    """Median CPU seconds by name; every round runs each command once, after one that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for i in range(rounds + 1):
        for name, (command, checkout) in commands.items():
            cpu_s = spent(command, checkout)
            if i:
                seconds[name].append(cpu_s)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    """The command, the imports, a cold and a cached start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path, help="A checkout of another version, whose kernel is warm.")
    options = parser.parse_args()
    checkouts = {"": ROOT} | ({} if options.against is None else {OTHER: options.against.resolve()})
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder) / "chain.yaml"
        chain.write_text(scenario_text(3, 4, record_bytes=10_000))
        files = {"run of 3 x 60 s": chain, "run of p4-severe": ROOT / "scenarios" / "p4-severe.yaml"}
        commands = {
            f"{name}{whose}": (
                ["-m", "sim", "run", str(file), "--out", str(Path(folder) / f"{file.stem}{number}")],
                checkout,
            )
            for name, file in files.items()
            for number, (whose, checkout) in enumerate(checkouts.items())
        }
        done = alternating(
            commands | {"imports": (["-c", IMPORTS], ROOT), "cached start": (["-c", START], ROOT)}, options.rounds
        )
        done["cold start"] = spent(["-c", START], environment={"CKPTSIM_CACHE_DIR": str(Path(folder) / "cache")})
    print_table(
        ["what", "CPU s", "x imports"], [(name, seconds, seconds / done["imports"]) for name, seconds in done.items()]
    )
    record("run", [("3x4 10 kB and p4-severe, 3 strategies", name, seconds, "CPU s") for name, seconds in done.items()])


if __name__ == "__main__":
    main()
