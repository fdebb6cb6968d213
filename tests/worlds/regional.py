"""Random worlds with regional checkpoints (FLIP-600): `python -m tests.worlds.regional --count 500`.

The proposal is simulated as written, so that worlds violate some invariants.  Each violation must be one of the known
findings; everything else, a crash or engines that differ, is a fault of the simulator.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from sim.model.schema.text import ScenarioError, write
from sim.results.journal import EventType
from sim.results.tables import TIMED_OUT
from sim.runtime.invariants import regional as laws
from sim.runtime.simulate import simulate
from sim.studies.local import cores, run_each
from tests.oracle import oracle
from tests.printing import print_line
from tests.scenarios import read_scenario
from tests.worlds.draw import Draw
from tests.worlds.generator import FOLDER, document
from tests.worlds.trial import differences, limited_cpu

FINDINGS = {
    laws.AGE: "F1 or F2",
    laws.DISCARDED: "F3",
    laws.ONE_CUT: "F4",
    laws.ONE_OWNER: "F7 or F8",
    laws.OWN: "F5",
    laws.SAME_SUBTASK: "F6",
}
"""Law -> the finding that a violation is."""
COMPARED_EVERY = 8  # one world in so many runs on both engines
MOST_CPU_S = 30


def regional(seed, *, enabled=True):
    """A world whose edges are pointwise where they can be, with regional checkpoints, and a task that is too slow for some of them."""
    world, draw = document(seed), Draw(f"regional {seed}")
    job, options = world["job"], world["checkpoint"]
    parallelism = draw.pick(2, 3, 4, 5)
    if draw.chance(0.7):
        world.pop("rescale", None)
    kept = _rescaled(world)
    for name, vertex in job.items():
        if name not in kept:
            _widen(vertex, parallelism)
    for vertex in job.values():
        for upstream in [name for name in vertex.get("input", {}) if name in job]:
            same = vertex.get("parallelism", 1) == job[upstream].get("parallelism", 1)
            vertex["input"][upstream] = "forward" if same and draw.chance(0.97) else "rescale"
        if isinstance(vertex.get("commit"), dict) and draw.chance(0.9):  # a global committer joins all regions
            vertex["commit"].pop("committer", None)
            vertex["commit"].pop("exchange", None)
    options["region"] = {"enabled": enabled, "max-failure-ratio": draw.pick(0.3, 0.5, 0.5, 0.8, 1)} | draw.section(
        0.5,
        max_consecutive_failures=lambda: draw.pick(1, 2, 3),
        split_interval=lambda: draw.pick("30 ms", "200 ms"),
    )
    options |= {"timeout": draw.pick("150 ms", "250 ms", "500 ms", "1 s"), "tolerable-failed": 10**6}
    options["subtasks-per-channel-state-file"] = 1
    for fault in world.get("faults", []):
        if "slow" in fault:
            fault["slow"] = fault["slow"].partition("[")[0]
    slow = draw.pick(*job)
    subtask = draw.randrange(job[slow].get("parallelism", 1))
    if draw.chance(0.8):
        lasts = draw.ms(100, 1500)
        fault = {
            "slow": f"{slow}[{subtask}]",
            "factor": draw.pick(10, 100, 1000),
            "at": draw.ms(100, 800),
            "lasts": lasts,
        }
        world.setdefault("faults", []).append(fault)
    return world


def _widen(vertex, parallelism):
    """Give a vertex another parallelism, without what is said of single subtasks."""
    vertex["parallelism"] = parallelism
    for key in ("max-parallelism", "service-factor"):
        vertex.pop(key, None)
    source = vertex.get("source", {})
    for key in ("silent", "backlog"):
        source.pop(key, None)
    if "records" in source:
        source["records-per-subtask"] = 1 + source.pop("records") // parallelism


def _rescaled(world):
    rows = world.get("rescale", [])
    return {name for row in (rows if isinstance(rows, list) else [rows]) for name in row.get("parallelism", {})}


def run(seed):
    """(findings, faults of the simulator, parts replaced, restarts from a checkpoint with replaced parts) of a world; None: refused."""
    try:
        with limited_cpu(MOST_CPU_S):
            scenario = read_scenario(write(regional(seed), "A world."), folder=FOLDER)
            result = simulate(scenario)
            if seed % COMPARED_EVERY == 1 and (names := differences(result, simulate(scenario, engine=oracle))):
                return [], [f"differ: {', '.join(names[:3])}"], 0, 0
    except ScenarioError:
        return None
    except Exception as error:  # noqa: BLE001 - it is a finding, told with its world
        return [], [f"{type(error).__name__}: {str(error)[:300]}"], 0, 0
    found = [FINDINGS[row.invariant] for row in result.violations if row.invariant in FINDINGS]
    # a torn region is told by other laws as well; a transaction of a failed region stays open for longer
    unknown = [row for row in result.violations if row.invariant not in FINDINGS and TIMED_OUT not in row.fact]
    others = [] if "F4" in found else [str(row).splitlines()[0] for row in unknown]
    others += [str(row).splitlines()[0] for row in result.repetitions] if "F4" not in found else []
    if others and simulate(read_scenario(write(regional(seed, enabled=False), "A world."), folder=FOLDER)).violations:
        found, others = [*found, "also without regions"], []
    replaced = [row.checkpoint for row in result.journal.only({EventType.PART_REPLACED})]
    restored = [row.checkpoint for row in result.journal.only({EventType.JOB_RESTORED})]
    return sorted({*found}), others, len(replaced), sum(number in {*replaced} for number in restored)


def _run(seed, _progress):
    return run(seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=cores())
    chosen = parser.parse_args()
    tally, faults, began = Counter(), 0, time.monotonic()
    seeds = range(chosen.first, chosen.first + chosen.count)
    try:
        for done, (number, answer) in enumerate(run_each(_run, seeds, jobs=chosen.jobs), 1):
            if answer is None:
                tally["refused"] += 1
                continue
            findings, others, replaced, restored = answer
            tally.update(["run", *findings])
            tally.update({"with replaced parts": replaced > 0, "restored from replaced parts": restored > 0})
            if others:
                faults += 1
                print_line(f"seed {seeds[number]}: {others[0]}")
            if done % 250 == 0:
                print_line(f"{done} of {chosen.count} worlds, {faults} not explained, {time.monotonic() - began:.0f} s")
    except KeyboardInterrupt:
        print_line("stopped")
    print_line(f"{dict(tally)}, {faults} not explained, {time.monotonic() - began:.0f} s")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
