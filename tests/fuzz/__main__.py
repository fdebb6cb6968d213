"""Damaged inputs by the thousand, each in a process of its own: `python -m tests.fuzz --count 20000`.

Whatever an input says, the program ends with one of its exit codes and a message: no traceback, in time, within its
memory. A case that breaks this is told by its kind and seed, and kept.
"""

import argparse
import math
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from tests.fuzz.child import preload, run
from tests.fuzz.inputs import KINDS, make

CODES = {0, 1, 2, 3, 4, 5, 130}
MOST_CPU_S, MOST_MB = 30, 1024
CONTROL = [chr(n) for n in range(32) if chr(n) not in "\t\n\r"] + ["\x7f", "\u202e"]


def finding(ended):
    """What is wrong with how a command ended; nothing: the empty string."""
    if "Traceback (most recent call last)" in ended.output:
        return "a traceback: " + ended.output.strip().rpartition("\n")[2][:120]
    if ended.code not in CODES:
        return f"exit code {ended.code}"
    if ended.code in (2, 3) and not ended.output.strip():
        return f"exit code {ended.code} without a message"
    if ended.cpu_s > MOST_CPU_S:
        return f"{ended.cpu_s:.0f} s of processor time"
    if ended.peak_mb > MOST_MB:
        return f"{ended.peak_mb:.0f} MB of memory"
    if any(sign in ended.output for sign in CONTROL):
        return "control characters in what is printed"
    return ""


def try_case(kind, seed, keep=None):
    """Run one case; a case with a finding is copied below `keep`."""
    with tempfile.TemporaryDirectory(prefix="ckptsim-fuzz-") as name:
        folder = Path(name)
        arguments = make(kind, seed, folder)
        ended = run(arguments, folder)
        found = finding(ended)
        if found and keep is not None:
            place = keep / f"{kind.strip('-').replace(' ', '-')}-{seed}"
            shutil.copytree(folder, place, dirs_exist_ok=True)
            (place / "command.txt").write_text(f"{found}\nckptsim {' '.join(arguments)}\n", errors="replace")
    return ended, found


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="cases (default: %(default)s)")
    parser.add_argument(
        "--first", type=int, default=int(time.time()) // 86_400 * 1_000_000, help="first seed (default: by date)"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="no more cases after these")
    parser.add_argument("--kind", choices=sorted(KINDS), action="append", help="only these")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("runs/fuzz"),
        help="where cases with a finding are kept (default: %(default)s)",
    )
    chosen = parser.parse_args()
    preload()
    kinds = chosen.kind or list(KINDS)
    cases, bad = [], []
    began = time.monotonic()
    print(f"{chosen.count} cases, seeds from {chosen.first}")
    for i in range(chosen.count):
        if time.monotonic() - began > chosen.minutes * 60:
            break
        kind, seed = kinds[i % len(kinds)], chosen.first + i
        ended, found = try_case(kind, seed, chosen.folder)
        cases.append((kind, ended.code, ended.cpu_s, ended.peak_mb))
        if found:
            bad.append(f"{kind} {seed}: {found}")
            print(bad[-1], flush=True)
        if (i + 1) % max(1, chosen.count // 20) == 0:
            print(f"{i + 1} of {chosen.count} cases, {time.monotonic() - began:.0f} s, {len(bad)} findings", flush=True)
    table = pd.DataFrame(cases, columns=["kind", "exit code", "cpu [s]", "memory [MB]"])
    most = table.groupby("kind", sort=False).agg({"exit code": "size", "cpu [s]": "max", "memory [MB]": "max"})
    print(most.rename(columns={"exit code": "cases"}).round(1).to_string())
    print(table["exit code"].value_counts().to_string())
    print(f"{len(bad)} findings in {len(cases)} cases")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
