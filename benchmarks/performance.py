"""What runs cost, and which aims are missed: the tables of docs/performance.md, from the newest rows of benchmarks/history.csv.

    python -m benchmarks.performance [--write] [--measure] [--against OTHER_CHECKOUT]

Without options the tables are printed.  `--measure` runs the benchmarks behind them first, one after the other: ten CPU
minutes, and 6 GB.
`--against` names a checkout of an older version, whose kernel is warm, to be measured in the same rounds.
`make performance` measures and writes.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench_whole import CASES, PARTS, channels
from benchmarks.measure import HISTORY

__all__ = ["BEGIN", "END", "History", "block", "main", "read", "replaced"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- performance: written by `make performance` -->", "<!-- /performance -->"
BEHIND = {
    "bench_run": [],
    "bench_plane": ["--rounds", "1", "--scale", "0.5", "--skip", "interpreted"],
    "bench_whole": [],
    "bench_control": ["--rounds", "2"],
}
BEFORE = ", before"
NO_WORSE = 1.03
"""What a version may cost, in that of the one before."""
MANY_CHANNELS = 100_000  # with fewer, memory per channel is the memory of something else
STARTS = "3x4 10 kB and p4-severe, 3 strategies"
TASKS = {"4x4": 16, "4x16": 64, "4x64": 256, "4x256": 1024}
RUN_COLUMNS = (
    "job, simulated time, barriers",
    "channels",
    *PARTS,
    "whole",
    "before",
    "peak MB",
    "before",
    "bytes per channel",
)
VERDICTS = {True: "yes", False: "**no**"}

History = dict[tuple[str, str, str], float]
"""(benchmark, case, quantity) -> its newest value."""


class Aim(NamedTuple):
    """A bound on a cost, what was measured, and whether the bound is kept."""

    what: str
    bar: str
    measured: str
    kept: bool


def read(text: str) -> History:
    """Later rows stand for earlier ones, in the order of the later ones."""
    history: History = {}
    for row in csv.DictReader(text.splitlines()):
        key = row["benchmark"], row["case"], row["quantity"]
        history.pop(key, None)
        history[key] = float(row["value"])
    return history


def block(text: str) -> str:
    """What stands on the page between `BEGIN` and `END`."""
    history = read(text)
    newest = {row["benchmark"]: f"{row['date'][:10]} ({row['version']})" for row in csv.DictReader(text.splitlines())}
    dates = sorted({newest[name] for name in ("run", "plane", "whole", "control") if name in newest})
    parts = [
        f"Measured {', '.join(dates)}.",
        "## Aims, and which are missed",
        *table(
            ("what", "aim", "measured", "kept"),
            ((aim.what, aim.bar, aim.measured, VERDICTS[aim.kept]) for aim in aims(history)),
        ),
        "## A command",
        *table(("what", "CPU s", "times the imports", "CPU s before"), starts(history)),
        "## The data plane",
        *table(("workload", "M hops/s", "M records/s", "C++", "SimPy", "tuned SimPy"), planes(history)),
        "## Whole runs",
        *table(RUN_COLUMNS, wholes(history)),
        "## Control",
        *table(("tasks", "ms per task and checkpoint", "before"), controls(history)),
    ]
    return "\n".join([BEGIN, *_spaced(parts), END])


def _spaced(parts: Sequence[str]) -> Iterator[str]:
    """An empty line after each paragraph, heading and table."""
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        yield part
        if not (part.startswith("|") and following.startswith("|")) and following:
            yield ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]


def starts(history: History) -> Iterator[Sequence[str]]:
    imports = history["run", STARTS, "imports"]
    for name in ("imports", "run of p4-severe", "run of 3 x 60 s", "cached start", "cold start"):
        seconds, before = history["run", STARTS, name], history.get(("run", STARTS, name + BEFORE))
        yield name, _number(seconds), _number(seconds / imports), _number(before)


def planes(history: History) -> Iterator[Sequence[str]]:
    for case in _cells(history):
        speeds = [history["plane", case, name] / 1e6 for name in ("hops", "records")]
        ratios = [history["plane", case, f"compiled / {name}"] for name in ("c++", "idiomatic", "lean")]
        yield case, *map(_number, speeds), *(f"{_number(ratio)} x" for ratio in ratios)


def wholes(history: History) -> Iterator[Sequence[str]]:
    for case in CASES:
        before = [history.get(("whole", case + BEFORE, name)) for name in ("whole", "peak")]
        per_channel = history["whole", case, "memory per channel"] if channels(case) >= MANY_CHANNELS else None
        yield (
            case,
            f"{channels(case):,}",
            *(_number(history["whole", case, name]) for name in (*PARTS, "whole")),
            _number(before[0]),
            _number(history["whole", case, "peak"]),
            _number(before[1]),
            _number(per_channel),
        )


def controls(history: History) -> Iterator[Sequence[str]]:
    for size, tasks in TASKS.items():
        spent = [
            history.get(("control", f"{size} aligned{whose}", "CPU per task and checkpoint")) for whose in ("", BEFORE)
        ]
        yield f"{tasks:,}", *map(_number, spent)


def aims(history: History) -> Iterator[Aim]:
    """Bounds that were set before the measurement."""
    severe, imports = history["run", STARTS, "run of p4-severe"], history["run", STARTS, "imports"]
    yield _most("`ckptsim run scenarios/p4-severe.yaml`, warm, against the bare imports", severe / imports, 2, " x")
    severe_before = history.get(("run", STARTS, f"run of p4-severe{BEFORE}"))
    if severe_before:
        yield _most("the same, against the version before", severe / severe_before, NO_WORSE, " x")
    yield _most(
        "first start of a version, which compiles the data plane", history["run", STARTS, "cold start"], 5, " CPU s"
    )
    for case in CASES:
        before = history.get(("whole", case + BEFORE, "whole"))
        if before:
            yield _most(f"{case}, against the version before", history["whole", case, "whole"] / before, NO_WORSE, " x")
    yield from _wide(history)
    for case in (case for case in CASES if channels(case) >= MANY_CHANNELS):
        yield _most(
            f"memory per channel of a whole run, {case}", history["whole", case, "memory per channel"], 1024, " B"
        )
    curve = [history["control", f"{size} aligned", "CPU per task and checkpoint"] for size in TASKS]
    yield _most("control per task and checkpoint with 1,024 tasks", curve[-1], 0.2, " ms")
    yield _most("dearest against cheapest of 16, 64, 256 and 1,024 tasks", max(curve) / min(curve), 1.5, " x")
    for sizes, least in ((("3x1", "3x4", "4x16"), 60), (("4x64",), 40)):
        ratios = [
            history["plane", case, "compiled / idiomatic"] for case in _cells(history) if case.split()[0] in sizes
        ]
        measured = f"{_number(min(ratios))} to {_number(max(ratios))} x, {sum(ratio < least for ratio in ratios)} of {len(ratios)} below"
        yield Aim(
            f"data plane against SimPy, {', '.join(sizes)}",
            f"at least {least} x in every cell",
            measured,
            min(ratios) >= least,
        )
    slowest = min(history["plane", case, "compiled / c++"] for case in _cells(history))
    yield Aim(
        "data plane against its text in C++ (`-O3 -march=native`)",
        "as fast",
        f"at least {_number(slowest)} x",
        slowest >= 0.95,
    )


def _wide(history: History) -> Iterator[Aim]:
    """Jobs that are too large for most of the tables."""
    for case, (_, _, seconds, _, _) in CASES.items():
        total, building = (history["whole", case, name] for name in ("whole", "building"))
        if case.startswith("8x200"):
            yield _most(
                "8x200, two million records/s, CPU seconds per simulated second", (total - building) / seconds, 3, " s"
            )
        if case.startswith("4x1024, 20 s"):
            yield _most("4x1024 for 20 s, with checks", total, 400, " CPU s")
            yield _most("4x1024 for 20 s, with checks: peak", history["whole", case, "peak"], 6000, " MB")


def _most(what: str, value: float, limit: float, unit: str) -> Aim:
    return Aim(what, f"at most {_number(limit)}{unit}", f"{_number(value)}{unit}", value <= limit)


def _cells(history: History) -> list[str]:
    """Workloads of the data plane, in the order of the standard sizes."""
    return [case for benchmark, case, quantity in history if (benchmark, quantity) == ("plane", "compiled / c++")]


def _number(value: float | None) -> str:
    """Three digits; a dash where nothing was measured."""
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def replaced(page: str, new: str) -> str:
    """The page with its block replaced."""
    before, rest = page.split(BEGIN)
    return before + new + rest.split(END)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run the benchmarks first; rows go into history.csv")
    parser.add_argument("--against", type=Path, help="A checkout of another version, whose kernel is warm.")
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    options = parser.parse_args()
    for name, given in BEHIND.items() if options.measure else ():
        against = ["--against", str(options.against)] if options.against and name != "bench_plane" else []
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *given, *against], cwd=ROOT, check=True)
    new = block(HISTORY.read_text(encoding="utf-8"))
    print(new)
    if options.write:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), new), encoding="utf-8")


if __name__ == "__main__":
    main()
