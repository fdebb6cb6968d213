"""``python -m benchmarks.advice_levers RECORDING ...``: what `advise` proposes at a half and at a tenth of today's p99.

Each recording is imported once, and its longest checkpoint is today's p99 where it has fewer than a hundred.  A row
says which setting, which levers beside barriers and interval, and what they cost.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sim.model.schema.study import load
from sim.results.formats import bytes_text, change_text, ms_text

SHARES = (0.5, 0.1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advice_levers", description=__doc__)
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--budget", default="15 s", help="processor time of each advice")
    parser.add_argument("--within", default="40 s", help="time of each advice")
    chosen = parser.parse_args()
    print("| recording | today's p99 | limit | advice | levers | throughput | written per hour | dominates today |")
    print("|---|---:|---:|---|---|---:|---:|---|", flush=True)
    for recording in chosen.recordings:
        with tempfile.TemporaryDirectory() as folder:
            for row in _rows(recording, Path(folder), chosen.budget, chosen.within):
                print(f"| {' | '.join(row)} |", flush=True)
    return 0


def _rows(recording: Path, folder: Path, budget: str, within: str) -> list[list[str]]:
    job = folder / "job.yaml"
    imported = _ckptsim("import", str(recording), "-o", str(job))
    if imported.returncode:
        return [[recording.stem, "-", "-", imported.stderr.strip().splitlines()[-1], "", "", "", ""]]
    backtest = load(job).backtest
    if backtest is None or not backtest.checkpoints:
        return [[recording.stem, "-", "-", "no history", "", "", "", ""]]
    return [_row(recording, job, folder / str(share), backtest.p99_ms, share, budget, within) for share in SHARES]


def _row(recording: Path, job: Path, out: Path, p99_ms: float, share: float, budget: str, within: str) -> list[str]:
    limit = f"{p99_ms * share:.0f} ms"
    options = (
        "--p99",
        limit,
        "--recovery",
        "2 min",
        "--budget",
        budget,
        "--within",
        within,
        "--jobs",
        "1",
        "--json",
    )
    done = _ckptsim("advise", str(job), *options, "--out", str(out))
    head = [recording.stem, ms_text(p99_ms), ms_text(p99_ms * share)]
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        return [*head, f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1][:120]}", "", "", "", ""]
    advised = answer["advised"]
    if advised is None:
        return [*head, "nothing fits", "; ".join(answer["enough"]) or "-", "", "", answer["dominates"] or "-"]
    tried = "" if answer["grade"] == "use" else " (to try)"
    levers = "; ".join(lever["name"] for lever in answer["levers"]) or "-"
    cost = [change_text(-advised["loss"]), bytes_text(advised["written_per_hour"])]
    return [
        *head,
        f"{advised['protocol']}, every {advised['interval']}{tried}",
        levers,
        *cost,
        answer["dominates"] or "-",
    ]


def _ckptsim(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "sim", *arguments], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
