"""How much of a run is control plane?  CPU time inside and outside ``advance`` at one checkpoint per 10 simulated s.

    python -m benchmarks.bench_seam [--rounds N]

Outside are the protocol machines, SimPy, storage, sampling and the calls of verbs; building and tabulating are not in it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import cpu_seconds, print_table, record
from benchmarks.scenarios import everything_text, scenario_text
from sim.model.scenario import Scenario
from sim.plane import warm
from sim.plane.seam.interface import Notice
from sim.runtime.observe.sampling import Sampler
from sim.runtime.run.world import World
from sim.scenario import loads

# stages, parallelism, bytes of a record, simulated seconds
CASES = ((3, 1, 1000, 60), (3, 4, 1000, 40), (3, 4, 32768, 200), (4, 16, 1000, 20), (4, 16, 32768, 100))
PROTOCOLS = ("aligned", "unaligned", "aligned-timeout")


def cases() -> Iterator[tuple[str, Scenario]]:
    """Each chain under each protocol, and two of them with every feature in use."""
    texts = {
        f"{stages}x{parallelism} {record_bytes} B": scenario_text(stages, parallelism, record_bytes=record_bytes, duration_s=seconds)
        for stages, parallelism, record_bytes, seconds in CASES
    }
    texts |= {f"3x{parallelism} 1000 B everything": everything_text(parallelism, duration_s=40) for parallelism in (4, 16)}
    for name, text in texts.items():
        for scenario, barriers in zip(loads(text).scenarios, PROTOCOLS, strict=True):
            yield f"{name} {barriers}", scenario


def timed(advance: Callable[[int], Notice], spent: list[float]) -> Callable[[int], Notice]:
    """``advance`` that adds its CPU seconds to the last entry of `spent`."""

    def run(until: int) -> Notice:
        begin = time.process_time()
        notice = advance(until)
        spent[-1] += time.process_time() - begin
        return notice

    return run


def measured(scenario: Scenario) -> tuple[float, float, int]:
    """CPU seconds of a run, those of them inside ``advance``, completed checkpoints."""
    world = World(scenario, "compiled")
    Sampler(world.context, world.counters, None)
    plane: Any = world.plane
    spent = [0.0]
    plane.advance = timed(plane.advance, spent)
    world.start()
    total, _ = cpu_seconds(lambda: world.env.run(until=scenario.run.duration_ns))
    return total, spent[0], len(world.stats)


def main() -> None:
    """One row per chain and protocol."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    warm()
    rows, history = [], []
    for name, scenario in cases():
        measured(scenario)
        runs = [measured(scenario) for _ in range(rounds)]
        share = statistics.median((total - inside) / total for total, inside, _ in runs)
        total, _, checkpoints = runs[0]
        outside_s = statistics.median(total - inside for total, inside, _ in runs) / max(1, checkpoints)
        rows.append((name, checkpoints, total, 100 * share, outside_s * 1e3))
        history += [(name, "share outside advance", 100 * share, "%"), (name, "CPU outside per checkpoint", outside_s * 1e3, "ms")]
    print_table(["run", "checkpoints", "CPU s", "outside advance %", "ms outside per checkpoint"], rows)
    record("seam", history)


if __name__ == "__main__":
    main()
