"""Thousands of random worlds over all cores: `python -m tests.worlds.nightly --count 10000`.

Sound strategies must leave no violation and end their job; strategies known to be wrong must be caught in some of their worlds.
A world that fails is told by its seed, and its scenario file is kept so that `ckptsim run` shows the story.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sim.runtime.result import Result
from sim.runtime.simulate import simulate
from sim.scenario import loads
from sim.sweep.cell import warm
from sim.sweep.local import cores, each
from tests.worlds.generator import WRONG, text

__all__ = ["Outcome", "Task", "plan", "run", "run_all"]

SOUND = ""
STOPPED = "FAILED: stopped with a savepoint, then failed"  # to be restarted from the savepoint by hand
PATIENCE = 5  # times its duration, for a world that is only slow
WRONG_EVERY = 10  # one world in so many has a wrong strategy


class Task(NamedTuple):
    seed: int
    wrong: str = SOUND  # a strategy known to be wrong


class Outcome(NamedTuple):
    task: Task
    violations: int
    fact: str  # the first violation, or what else went wrong
    restarts: int
    completed: int  # checkpoints
    commits: int
    simulated_ns: int

    @property
    def failed(self) -> bool:
        """A wrong strategy fails by being wrong; a sound one by anything."""
        return bool(self.fact) and (self.task.wrong == SOUND or not self.violations)


def plan(count: int, first_seed: int = 0) -> list[Task]:
    """Sound worlds, and between them each wrong strategy in turn."""
    wrong = sorted(WRONG)
    return [
        Task(seed, SOUND if i % WRONG_EVERY else wrong[i // WRONG_EVERY % len(wrong)])
        for i, seed in enumerate(range(first_seed, first_seed + count))
    ]


def run(task: Task, engine: str = "compiled") -> Outcome:
    scenario = loads(text(task.seed, task.wrong)).scenarios[0]
    try:
        result = simulate(scenario, engine=engine)  # type: ignore[arg-type]
        if result.job_status == "RUNNING" and not result.violations and not _starves(result):
            longer = replace(scenario.run, duration_ns=PATIENCE * scenario.run.duration_ns)
            result = simulate(replace(scenario, run=longer), engine=engine)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - it is told with its seed
        return Outcome(task, 0, f"{type(error).__name__}: {error}".splitlines()[0][:200], 0, 0, 0, 0)
    fact = str(result.violations[0]).splitlines()[0] if result.violations else ""
    if not fact and not (result.job_status == "FINISHED" or result.job_status.startswith(STOPPED) or _starves(result)):
        fact = f"the job ends as {result.job_status}"
    completed = int((result.checkpoints["status"] == "COMPLETED").sum())
    end_ns = result.journal[-1].time_ns if result.journal else 0
    return Outcome(task, len(result.violations), fact, len(result.recoveries), completed, len(result.commits), end_ns)


def _starves(result: Result) -> bool:
    """No checkpoint is quick enough, so the job waits for its last one for ever: hard luck, and nothing is lost."""
    failures = result.checkpoints["failure_message"].tail(8)
    return int((failures == "CHECKPOINT_EXPIRED").sum()) >= 4


def run_all(tasks: list[Task], jobs: int) -> Iterator[Outcome]:
    """As they end."""
    warm()
    for _, outcome in each(_run, tasks, jobs=jobs):
        yield outcome


def _run(task: Task, _progress: object) -> Outcome:
    return run(task)


def report(outcomes: Iterable[Outcome], count: int, folder: Path) -> int:
    """Tell the progress and the sum; exit code."""
    began, totals, bad = time.monotonic(), Counter[str](), list[Outcome]()
    worlds, violated = Counter[str](), Counter[str]()
    for done, one in enumerate(outcomes, 1):
        worlds[one.task.wrong] += 1
        violated[one.task.wrong] += one.violations > 0
        totals.update(restarts=one.restarts, completed=one.completed, commits=one.commits, simulated_s=one.simulated_ns // 10**9)
        if one.failed:
            bad.append(one)
            keep(one, folder)
        if done % max(1, count // 20) == 0:
            say(f"{done} of {count} worlds, {time.monotonic() - began:.0f} s, {len(bad)} failed")
    say(f"{worlds[SOUND]} worlds of sound strategies: {violated[SOUND]} with violations, {len(bad)} failed in any way")
    for name in sorted(WRONG):
        say(f"{name}: violations in {violated[name]} of {worlds[name]} worlds")
    say(", ".join(f"{name.replace('_', ' ')} {number}" for name, number in totals.items()))
    say(f"{sum(worlds.values())} worlds in {time.monotonic() - began:.0f} s")
    missed = [name for name in WRONG if worlds[name] >= 20 and not violated[name]]
    for name in missed:
        say(f"never caught: {name}")
    return 1 if bad or missed else 0


def keep(one: Outcome, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"world-{one.task.seed}.yaml"
    path.write_text(text(*one.task))
    say(f"world {one.task.seed}{f' ({one.task.wrong})' if one.task.wrong else ''}: {one.fact}  [{path}]")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="worlds (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one per core)")
    parser.add_argument("--folder", type=Path, default=Path("runs/worlds"), help="where failing worlds are kept (default: %(default)s)")
    chosen = parser.parse_args()
    tasks = plan(chosen.count, chosen.first)
    return report(run_all(tasks, chosen.jobs), len(tasks), chosen.folder)


if __name__ == "__main__":
    sys.exit(main())
