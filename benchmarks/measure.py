"""Measuring and writing down: CPU medians of interleaved runs, plain tables, a history with date, version and machine."""

from __future__ import annotations

import csv
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["cpu_seconds", "interleaved", "machine", "measured_in", "print_table", "python_of", "record"]

HISTORY = Path(__file__).parent / "history.csv"
COLUMNS = ("date", "version", "machine", "benchmark", "case", "quantity", "value", "unit")


def cpu_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process for one call, and what it returned; the garbage of earlier runs is not its business."""
    gc.collect()
    begin = time.process_time()
    result = run()
    return time.process_time() - begin, result


def python_of(checkout: Path) -> str:
    """The Python that runs the code of `checkout`: of its own environment, since older versions need other libraries, or else this one."""
    own = checkout / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def measured_in(checkout: Path, benchmark: str, *arguments: str) -> dict[str, float]:
    """What a script prints as JSON, run by another process with the checkout's code.

    `benchmark`: the name of the checkout's own script, or a whole path, for one that older checkouts do not have.
    """
    command = [python_of(checkout), str(checkout / "benchmarks" / benchmark), *arguments]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    done = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measures: dict[str, float] = json.loads(done.stdout)
    return measures


def interleaved(
    runs: dict[str, Callable[[], Callable[[], Any]]], rounds: int, repeats: dict[str, int] | None = None
) -> dict[str, tuple[float, Any]]:
    """Each round prepares and runs every engine once (or `repeats` times); median CPU seconds of the run and its last result.

    Preparation (building the model) is not timed.  Interleaving spreads what else the machine does over all of them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, prepare in runs.items():
            for _ in range((repeats or {}).get(name, 1)):
                spent, results[name] = cpu_seconds(prepare())
                seconds[name].append(spent)
    return {name: (statistics.median(seconds[name]), results[name]) for name in runs}


def machine() -> str:
    """Cores and CPU model, nothing else."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{os.cpu_count()} x {model}"


def code_version() -> str:
    """Package version and, in a checkout, the commit."""
    try:
        name = version("ckptsim")
    except PackageNotFoundError:
        name = "0"
    here = Path(__file__).parent
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=False
    )
    return f"{name}+{done.stdout.strip()}" if done.returncode == 0 else name


def record(benchmark: str, rows: Sequence[tuple[str, str, float, str]]) -> None:
    """Append (case, quantity, value, unit) rows to the history."""
    new = not HISTORY.exists()
    stamp = (datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), code_version(), machine(), benchmark)
    with HISTORY.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerows((*stamp, case, quantity, f"{value:.4g}", unit) for case, quantity, value, unit in rows)


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as they need to be; numbers to three digits, to the right."""
    text = [
        [
            f"{cell:,.3g}"
            if isinstance(cell, float) and abs(cell) < 1000
            else f"{cell:,.0f}"
            if isinstance(cell, float)
            else str(cell)
            for cell in row
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *text, strict=True)]
    for line in [list(head), ["-" * width for width in widths], *text]:
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        print("  ".join(cells).rstrip())
