"""Thousands of random worlds over all cores: `python -m tests.worlds.nightly --count 10000`.

Sound strategies must leave no violation and end their job, and both engines must agree on it.  Strategies known to be
wrong must be caught in some of their worlds.  A world that fails is told by its seed; its file is kept, and a small one
that shows the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sim.model.schema.text import write
from sim.studies.cells import warm
from sim.studies.local import cores, run_each
from tests.printing import print_line
from tests.worlds.findings import keep, small_once
from tests.worlds.generator import document
from tests.worlds.keys import keys_of
from tests.worlds.tally import Tally
from tests.worlds.trial import Outcome, run_document
from tests.worlds.wrong import WRONG

SOUND = ""
WRONG_EVERY = 10  # one world in so many has a wrong strategy
COMPARED_EVERY = 8  # ... runs on both engines
MOST = 100_000  # worlds of one run: its seeds


class Task(NamedTuple):
    seed: int
    wrong: str = SOUND  # a strategy known to be wrong
    compare: bool = False


class WorldResult(NamedTuple):
    """What one world came to."""

    task: Task
    outcome: Outcome
    keys: frozenset[str] = frozenset()  # of the schema, that it sets
    small: str = ""  # a small world that shows the same

    @property
    def bad(self):
        """A wrong strategy may do anything but break the program; all others must end well."""
        return self.outcome.kind in ("crash", "refused", "differ") or (
            self.outcome.kind != "" and self.task.wrong == SOUND
        )


def first_seed(now):
    """Each minute has its own range of seeds, as long as the longest run."""
    return int((now - datetime(2026, 1, 1, tzinfo=UTC)).total_seconds()) // 60 * MOST


def plan(count, first=0):
    """Sound worlds, and between them each wrong strategy in turn; a seed alone says which."""
    wrong = [*WRONG]
    return [
        Task(seed, SOUND if seed % WRONG_EVERY else wrong[seed // WRONG_EVERY % len(wrong)], seed % COMPARED_EVERY == 1)
        for seed in range(first, first + count)
    ]


def run(task):
    world = document(task.seed, task.wrong)
    outcome = run_document(world, compare=task.compare and not task.wrong)
    result = WorldResult(task, outcome, frozenset(keys_of(world)))
    return result._replace(small=small_once(world, result.outcome, task.seed) or "") if result.bad else result


def run_all(tasks, jobs):
    """As they end."""
    warm()
    for _, result in run_each(_run, tasks, jobs=jobs):
        yield result


def _run(task, _progress):
    return run(task)


def report(results, count, folder):
    """Tell the progress and the sums, also of a run that was stopped; exit code."""
    tally, done, stopped = Tally(), 0, False
    try:
        for done, result in enumerate(results, 1):
            tally.add(result)
            if result.bad:
                tell(result, folder)
            if done % max(1, count // 20) == 0:
                found = sum(map(len, tally.findings.values()))
                print_line(
                    f"{done} of {count} worlds, {time.monotonic() - tally.began:.0f} s, CPU {tally.cpu_s:.0f} s, {found} findings"
                )
    except KeyboardInterrupt:
        stopped = True
        print_line(f"stopped after {done} of {count} worlds")
    for line in tally.lines():
        print_line(line)
    return 130 if stopped else 1 if tally.findings or tally.missed else 0


def tell(result, folder):
    """One line, and the files."""
    seed, wrong, outcome = result.task.seed, result.task.wrong, result.outcome
    path = keep(folder, f"world-{seed}", write(document(seed, wrong), f"{outcome.kind}: {outcome.fact} (seed {seed})"))
    if result.small:
        path = keep(folder, f"small-{seed}", result.small)
    print_line(f"seed {seed}{f' ({wrong})' if wrong else ''}: {outcome.kind}: {outcome.fact}  [{path}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help=f"worlds, at most {MOST} (default: %(default)s)")
    parser.add_argument(
        "--first", type=int, help="first seed, to run the same worlds again (default: seeds no other run has had)"
    )
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one per core)")
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/worlds"), help="where bad worlds are kept (default: %(default)s)"
    )
    chosen = parser.parse_args()
    if not 0 < chosen.count <= MOST:
        parser.error(f"--count must lie between 1 and {MOST}")
    first = first_seed(datetime.now(UTC)) if chosen.first is None else chosen.first
    print_line(f"{chosen.count} worlds from seed {first} (--first {first} runs them again)")
    return report(run_all(plan(chosen.count, first), chosen.jobs), chosen.count, chosen.folder)


if __name__ == "__main__":
    sys.exit(main())
