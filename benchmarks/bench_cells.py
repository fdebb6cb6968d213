"""A large sweep on one driver: what planning, resuming and answering it cost, where nothing is left to run.

    python -m benchmarks.bench_cells [--cells 1100000] [--rounds 1] [--against OTHER_CHECKOUT]
    python -m benchmarks.bench_cells --combinations 20000

The first has a job of two vertices under 10 intervals and 10 rates, many seeds, and a baseline per rate and seed.  Its
rows are filled in, as running them would take days: numbers are drawn by chance.  The second has as many different
settings, and is planned only.  Each measurement is a process of its own.  `--against`: another checkout, in the same
rounds; both answers must be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["filled", "measured", "study"]

ROOT = Path(__file__).resolve().parent.parent
JOB = """\
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB}, parallelism: 1}
  sink: {input: {src: hash}, service: 1 ms, parallelism: 1}
checkpoint: {interval: 10 s}
run: {duration: 60 s}
"""
SWEEP = """\
# Which interval gives the least delay at which rate?
scenario: job.yaml
vary:
  checkpoint.interval: INTERVALS
  job.src.source.rate: RATES
  run.seed: SEEDS
most: 100000000
answer: {settings: [checkpoint.interval], least: delay_p99_s, show: [end_to_end_p50_ms, delay_p99_s]}
"""


def study(folder: Path, seeds: int, intervals: int = 10, rates: int = 10) -> Path:
    """A sweep file of `intervals` x `rates` x `seeds` combinations."""
    (folder / "job.yaml").write_text(JOB)
    values = {
        "INTERVALS": [f"{5000 + i} ms" for i in range(intervals)],
        "RATES": [f"{100 + 10 * i}/s" for i in range(rates)],
        "SEEDS": list(range(1, seeds + 1)),
    }
    text = SWEEP
    for name, own in values.items():
        text = text.replace(name, json.dumps(own))
    file = folder / "sweep.yaml"
    file.write_text(text)
    return file


def filled(file: Path, folder: Path) -> int:
    """Put a row into `folder` for every cell that the sweep file plans, and return how many there are."""
    import numpy as np
    import pyarrow as pa

    from sim.studies.plan import cells, distinct, with_baselines
    from sim.studies.sweeps.store import MAX_ROWS_TO_JOIN as LONGEST
    from sim.studies.sweeps.store import OUTCOME_TYPES, PROVENANCE_TYPES, encode_table
    from sim.studies.sweeps.sweep_file import define

    plan = distinct(with_baselines(cells(define(file).scenarios)))
    chance = np.random.default_rng(1)
    (folder / "cells").mkdir(parents=True)
    texts = {
        "status": "ok",
        "job_status": "RUNNING",
        "host": "here",
        "unfinished": "ended_s",
        "nothing": "downtime_ms caught_up_ms",
    }
    for begin in range(0, len(plan), LONGEST):
        ids = plan.ids[begin : begin + LONGEST]
        columns: dict[str, pa.Array] = {}
        for name, kind in (OUTCOME_TYPES | PROVENANCE_TYPES).items():
            if name == "cell":
                columns[name] = pa.array(ids, pa.binary()).cast(pa.string())
            elif kind == pa.string():
                columns[name] = pa.array([texts.get(name, "")] * len(ids), kind)
            elif name in ("violations", "restarts", "attempt"):
                columns[name] = pa.array(np.zeros(len(ids)), pa.float64()).cast(kind)
            else:
                columns[name] = pa.array(np.floor(chance.random(len(ids)) * 1e6), pa.float64()).cast(kind)
        name, content = encode_table(pa.table(columns))
        (folder / "cells" / name).write_bytes(content)
    return len(plan)


def measured(file: Path, folder: Path | None) -> dict[str, object]:
    """CPU seconds and peaks of planning, and of answering from `folder`; None: nothing is answered."""
    from sim.app.verbs.sweep import sweep
    from sim.studies.plan import cells, with_baselines
    from sim.studies.sweeps.sweep_file import define

    begun_mb, begun_s = peak_mb(), time.process_time()
    definition = define(file)
    count = len(with_baselines(cells(definition.scenarios)))
    found: dict[str, object] = {
        "cells": count,
        "imports MB": begun_mb,
        "planned CPU s": time.process_time() - begun_s,
        "planned MB": peak_mb(),
    }
    if folder is None:
        return found | {"answer": ""}
    result = sweep(file, folder=folder)
    return found | {"all CPU s": time.process_time() - begun_s, "all MB": peak_mb(), "answer": repr(result)}


def peak_mb() -> float:
    """The peak of this program alone; the usual maximum counts the process that started it, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def _runs(checkout: Path, file: Path, folder: Path | None) -> dict[str, object]:
    """A measurement by the code of `checkout`.  Another version has other names for its cells, and so rows of its own."""
    rows = [] if folder is None else [str(folder / checkout.name)]
    if folder is not None and not (folder / checkout.name).exists():
        _output_of(checkout, "--fill", str(file), *rows)
    return _output_of(checkout, "--one", str(file), *rows)


def _output_of(checkout: Path, *arguments: str) -> dict[str, object]:
    command = [sys.executable, __file__, *arguments]
    environment = os.environ | {"PYTHONPATH": f"{checkout}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measures: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return measures


def _numbers(measures: dict[str, object]) -> Iterator[tuple[str, float]]:
    yield from ((name, float(value)) for name, value in measures.items() if isinstance(value, float | int))


def main() -> None:
    """One row per checkout: medians of all rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cells", type=int, default=1_100_000, help="of all settings, rates and seeds, with their baselines"
    )
    parser.add_argument("--combinations", type=int, help="plan so many different settings instead")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument(
        "--one", nargs="+", type=Path, help="measure a sweep file with the folder of its rows, here: prints JSON"
    )
    parser.add_argument(
        "--fill", nargs=2, type=Path, help="fill in the rows of a sweep file in a folder, in this process"
    )
    options = parser.parse_args()
    if options.fill:
        print(json.dumps({"cells": filled(*options.fill)}))
        return
    if options.one:
        print(json.dumps(measured(options.one[0], options.one[1] if len(options.one) > 1 else None)))
        return
    from benchmarks.measure import print_table, record

    checkouts = {"": ROOT} | ({} if options.against is None else {", before": options.against.resolve()})
    runs: dict[str, list[dict[str, object]]] = {whose: [] for whose in checkouts}
    with tempfile.TemporaryDirectory(prefix="ckptsim-cells-") as place:
        if options.combinations:
            file, folder, case = (
                study(Path(place), 1, options.combinations // 10),
                None,
                f"{options.combinations:,} combinations",
            )
        else:
            file, folder = study(Path(place), options.cells // 110), Path(place) / "rows"
            case = f"{options.cells // 110 * 110:,} cells"
        for _ in range(options.rounds):
            for whose, measures in runs.items():
                measures.append(_runs(checkouts[whose], file, folder))
    rows, history = [], []
    for whose, measures in runs.items():
        median = {
            name: statistics.median(dict(_numbers(run))[name] for run in measures) for name, _ in _numbers(measures[0])
        }
        rows.append((f"{case}{whose}", *median.values()))
        quantities = [(name, value) for name, value in median.items() if name != "cells"]
        history += [(f"{case}{whose}", name, value, "CPU s" if "CPU" in name else "MB") for name, value in quantities]
    print_table(["a sweep", *median], rows)
    print(
        "the answers are equal"
        if len({run["answer"] for own in runs.values() for run in own}) == 1
        else "THE ANSWERS DIFFER"
    )
    record("cells", history)


if __name__ == "__main__":
    main()
