"""Which defaults decide: each option that a file leaves out is given another plausible value, one at a time.

    python -m benchmarks.defaults [FILE ...]  # writes sim/model/schema/defaults.csv

An option is kept if another value of it changes the median duration of checkpoints, or the data in flight that they
store, by more than a quarter in some file.  Notes of `ckptsim run` name these options (`sim.model.schema.option_values`).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from sim.model.options import Option
from sim.model.schema.flink_block import apply_flink
from sim.model.schema.flink_keys import document_options
from sim.model.schema.study import INFLUENTIAL_OPTIONS_FILE as FILE
from sim.model.schema.study import load
from sim.model.schema.text import Mapping, Reading, ScenarioError, compose, read_text, value_at
from sim.model.units import SECOND
from sim.runtime.result import Result, identity
from sim.studies.cells import simulated
from sim.studies.plan import Cell

CHANGES = 0.25
"""A change by a larger share decides."""
LEAST = {"p50": 20.0, "in flight": 1e6}
"""Changes between smaller values [ms, bytes] are of no interest."""
LONGEST_S, MOST_CPU_S = 30, 1.0
"""Runs are cut to so many simulated seconds; a file whose run takes more processor time is left out."""
ROOT = Path(__file__).parents[1]
FILES = (
    *sorted((ROOT / "scenarios").glob("*.yaml")),
    *sorted((ROOT / "tests/data/reports").glob("*/scenario.yaml")),
    *sorted((ROOT / "sim/app/examples").glob("*/*.yaml")),
    *sorted((ROOT / "tests/data/users-jobs").glob("*.yaml")),
)
PLAUSIBLE: dict[str, str] = {
    "cluster.slots": "4",
    "cluster.cores": "2",
    "storage.nic": "1.25 GB/s",
    "storage.bandwidth": "80 MB/s",
    "storage.read-bandwidth": "80 MB/s",
    "storage.file-latency": "40 ms",
    "storage.metadata-latency": "40 ms",
    "storage.latency": "40 ms",
    "job.VERTEX.service": "200 us",
    "job.VERTEX.record": "4 kB",
    "checkpoint.min-pause": "5 s",
    "checkpoint.max-concurrent": "2",
    "cluster.network.debloat": "on",
    "job.VERTEX.parallelism": "4",
    "job.VERTEX.state.update": "10 %",
    "job.VERTEX.state.changelog": "on",
    "checkpoint.local-recovery": "true",
    "storage.file-merging": "on",
    "cluster.placement": "isolated",
    "checkpoint.barriers": "unaligned",
    "cluster.profile": "1.20",
}
"""Other values of options without a default that could be scaled."""
NO_JOB = ("run", "instances", "directories")
"""Sections about the run, and not about the job."""
SCALED = 4
"""Other numbers are so many times as large."""


class Measured(NamedTuple):
    """What is compared."""

    p50: float  # ms
    in_flight: float  # bytes


def left_out(plain: Any, paths: Iterable[str]) -> dict[str, list[str]]:
    """Path of an option -> the places where a document could say it and does not.  `plain`: with Flink's keys in their places."""
    found: dict[str, list[str]] = {}
    for path in paths:
        steps = path.split(".")
        vertices = list(plain["job"]) if "VERTEX" in steps else [""]
        for place in ([vertex if step == "VERTEX" else step for step in steps] for vertex in vertices):
            has_section = len(place) == 2 or isinstance(value_at(plain, tuple(place[:-1])), Mapping)
            if has_section and value_at(plain, tuple(place)) is None:
                found.setdefault(path, []).append(".".join(place))
    return found


def other_value(path: str, record: Option) -> str | None:
    """Another plausible value, as an override has it; None: there is none."""
    if path in PLAUSIBLE:
        return PLAUSIBLE[path]
    default: Any = record.default
    if record.leaf is None:
        return None
    if isinstance(default, bool):
        return str(record.leaf.write(not default))
    if words := tuple(record.choices()):
        return next((word for word in words if word != default), None)
    if not isinstance(default, int) or default <= 0 or record.leaf.flink == "percent" or "parallelism" in record.key:
        return None
    return str(record.leaf.write(default * SCALED))


def measured(file: Path, overrides: Sequence[str]) -> Measured | None:
    """The first combination of a file; None: the option cannot be said there, or no checkpoint completes."""
    try:
        scenario = load(file, list(overrides)).scenarios[0]
        if scenario.run.duration_ns > LONGEST_S * SECOND:
            scenario = load(file, [*overrides, f"run.duration={LONGEST_S} s", "run.warmup=0 s"]).scenarios[0]
    except ScenarioError:
        return None
    result = simulated("compiled", False, Cell(scenario, identity(scenario)), lambda _: None)
    if not isinstance(result, Result):
        return None
    rows = result.tables["checkpoints"]
    rows = rows[rows["status"] == "COMPLETED"]
    return (
        Measured(float(rows["end_to_end_duration"].median()), float(rows["persisted_data"].mean()))
        if len(rows)
        else None
    )


def changes(before: Measured, after: Measured) -> Iterator[tuple[str, float]]:
    """(quantity, factor) of what changes by more than a quarter."""
    for name, old, new in zip(LEAST, before, after, strict=True):
        if max(old, new) >= LEAST[name] and min(old, new) > 0 and abs(new - old) > CHANGES * old:
            yield name, new / old


def decide(files: Sequence[Path]) -> list[dict[str, object]]:
    """A row per option that decides in some file."""
    options = {
        key.dotted: key.record for key in document_options() if key.record is not None and key.path[0] not in NO_JOB
    }
    found: dict[str, dict[str, object]] = {}
    counts: dict[str, list[int]] = {}
    measured(files[0], [])  # the plane is compiled
    for file in files:
        began = process_time()
        before = measured(file, [])
        if before is None or process_time() - began > MOST_CPU_S:
            print(f"{file.name}: left out, {process_time() - began:.1f} s", file=sys.stderr)
            continue
        plain = compose(read_text(file), reading := Reading(str(file)))
        apply_flink(plain, reading, file.parent)
        places = left_out(plain, options)
        for path, keys in places.items():
            if (value := other_value(path, options[path])) is None:
                continue
            after = measured(file, [f"{key}={value}" for key in keys])
            if after is None:
                continue
            counted = counts.setdefault(path, [0, 0])
            counted[1] += 1
            decided = dict(changes(before, after))
            counted[0] += bool(decided)
            for quantity, factor in decided.items():
                row = found.setdefault(path, {"option": path, "instead": value, "quantity": quantity, "factor": factor})
                if abs(np.log(factor)) > abs(np.log(float(str(row["factor"])))):
                    row |= {"quantity": quantity, "factor": factor}
        print(f"{file.name}: {len(places)} options, {process_time() - began:.0f} s", file=sys.stderr)
    rows = [
        row | {"factor": f"{float(str(row['factor'])):.2g}", "decides": counts[path][0], "files": counts[path][1]}
        for path, row in found.items()
    ]
    return sorted(rows, key=lambda row: (-int(str(row["decides"])), str(row["option"])))


def main() -> None:
    rows = decide([Path(name) for name in sys.argv[1:]] or FILES)
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, ("option", "instead", "quantity", "factor", "decides", "files"), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
