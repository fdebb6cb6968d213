"""Is the baseline fast enough to be fair?  It races another idiomatic SimPy model on that model's own workload.

    python -m benchmarks.bench_baseline [PATH] [--rounds N]

PATH names a Python file with ``run(w)`` that returns ``hops`` (services ended by all tasks), beside a module ``w`` with
``W(stages, parallelism, load, t_end=, interval=)``.  W describes chains of all-to-all stages where a record is a buffer.
Services are exponential: 1 ms at the sink, 0.6 ms between, 1 ms / load at the sources.  Channels have 2 exclusive and
8 floating credits, no latency, aligned barriers.  Without PATH only the two baselines of this folder race.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measure import interleaved, print_table, record
from benchmarks.simpy_idiomatic import IdiomaticModel
from benchmarks.simpy_lean import LeanModel
from benchmarks.workloads import SEGMENT, SINK_NS, Workload, chain, service
from sim.plane.spec import SourceSpec

Engine = Callable[..., Callable[[], Any]]
SECONDS = {(3, 1): 41.0, (3, 4): 21.0, (4, 16): 5.0}


def same_workload(stages: int, parallelism: int, load: float, seconds: float, interval: float) -> Workload:
    """That workload in the plane's words: a record fills a buffer, sources serve without pause."""
    spec = chain(stages, parallelism, record_bytes=SEGMENT, load=None, buffer_timeout_ns=-1)
    source = replace(spec.vertices[0], service=(service(SINK_NS / load),), source=SourceSpec())
    spec = replace(spec, vertices=(source, *spec.vertices[1:]))
    return Workload(f"{stages}x{parallelism} load {load}", spec, round(seconds * 1e9), round(interval * 1e9))


def other_model(path: Path) -> Engine:
    """The model in a file, and the workload in the module `w` beside it."""
    sys.path.insert(0, str(path.parent))
    loaded = importlib.util.spec_from_file_location(path.stem, path)
    assert loaded is not None
    assert loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)

    def prepare(stages: int, parallelism: int, load: float, seconds: float, interval: float) -> Callable[[], Any]:
        work = importlib.import_module("w").W(stages, parallelism, load, t_end=seconds, interval=interval)
        tapes = work.tapes()
        return lambda: module.run(work, tapes=tapes)["hops"]

    return prepare


def race(case: tuple[int, int, float, float, float], other: Engine | None, rounds: int) -> tuple[str, dict[str, float]]:
    """Name of the workload; records served per CPU second by engine."""
    work = same_workload(*case)
    runs: dict[str, Callable[[], Callable[[], Any]]] = {
        "idiomatic": lambda: IdiomaticModel(work).run,
        "lean": lambda: LeanModel(work).run,
    }
    if other is not None:
        runs["other"] = lambda: other(*case)
    done = interleaved(runs, rounds)
    return work.name, {
        name: (result if name == "other" else result.records) / cpu for name, (cpu, result) in done.items()
    }


def main() -> None:
    """One row per size and load: records served per CPU second, and the ratio to the other model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", help="Python file of the other model")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    other = other_model(options.path) if options.path else None
    names = ["idiomatic", "lean", *(["other"] if other else [])]
    rows, history = [], []
    for (stages, parallelism), seconds in SECONDS.items():
        for load in (0.7, 1.3):
            name, speed = race((stages, parallelism, load, seconds, seconds / 4.1), other, options.rounds)
            ratio = {engine: value / speed[names[-1] if other else names[0]] for engine, value in speed.items()}
            rows.append((name, *(value for engine in names for value in (speed[engine], ratio[engine]))))
            history += [(name, f"{engine} records", speed[engine], "1/s") for engine in names]
            history += [(name, f"{engine} / {names[-1] if other else names[0]}", ratio[engine], "") for engine in names]
    print_table(["workload", *(label for name in names for label in (f"{name} records/s", "ratio"))], rows)
    record("baseline", history)


if __name__ == "__main__":
    main()
