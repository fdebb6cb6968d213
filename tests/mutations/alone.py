"""What dear tests notice that no cheaper test does: changes are drawn in the lines that a test runs, and cheaper tests are asked first.

python -m tests.mutations.alone --from 1.5 --draws 8

A test pays for itself by changes of which it is the cheapest that notices.  Lines that few tests run are drawn first:
there a test is most likely to be alone.  A test that earns nothing may still be wanted: it holds a page or a picture,
which no change of code is drawn in.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from typing import NamedTuple

from tests.mutations import touched
from tests.mutations.changes import ROOT, Mutant, mutants_of
from tests.mutations.score import print_line
from tests.mutations.touched import Touched
from tests.mutations.trial import Trial, TrialRequest, try_all

__all__ = ["Price", "cheapest_first", "drawn_for", "main", "prices"]


class Price(NamedTuple):
    """What a test costs, and what it alone notices."""

    test: str
    seconds: float
    drawn: int  # changes in its lines
    noticed: int  # by any test
    earned: int  # by this test, and by no cheaper one

    @property
    def per_second(self) -> float:
        return self.earned / self.seconds


def runners(reached: Touched) -> dict[str, list[tuple[str, str, int]]]:
    """Test -> (file, function, line from its first) of what it runs, the lines that fewest tests run first."""
    places: dict[str, list[tuple[int, tuple[str, str, int]]]] = {}
    for (file, function), ran in reached.functions.items():
        for line, tests in ran.lines.items():
            if line > 0 and touched.AT_IMPORT not in tests:
                for test in tests:
                    places.setdefault(test, []).append((len(tests), (file, function, line)))
    return {test: [place for _, place in sorted(of_test)] for test, of_test in places.items()}


def drawn_for(
    places: list[tuple[str, str, int]], count: int, chance: random.Random, mutants: dict[str, list[Mutant]]
) -> list[Mutant]:
    """Changes in the `8 * count` lines that fewest tests run."""
    found: list[Mutant] = []
    for file, function, line in places:
        if file not in mutants:
            mutants[file] = [mutant for mutant in mutants_of(ROOT / file) if mutant.inside]
        first = touched.functions_of(ROOT / file).get(function)
        if first is not None:
            found += [
                mutant for mutant in mutants[file] if mutant.where == function and mutant.line == first.first + line
            ]
        if len(found) >= 8 * count:
            break
    found = list(dict.fromkeys(found))
    return chance.sample(found, min(count, len(found)))


def cheapest_first(mutant: Mutant, reached: Touched, dear: str) -> TrialRequest:
    """Tests that run the statement and cost no more than the dear one, which comes last."""
    seconds = reached.seconds
    tests = {dear, *(test for test in reached.tests_of(mutant) if seconds[test] < seconds[dear])}
    return TrialRequest(mutant, sorted(tests, key=seconds.__getitem__), reached.runs_at_import(mutant))


def prices(names: list[str], reached: Touched, draws: int, seed: int) -> list[Price]:
    """In the order of the names."""
    chance = random.Random(seed)
    places, mutants = runners(reached), dict[str, list[Mutant]]()
    drawings = [(name, mutant) for name in names for mutant in drawn_for(places.get(name, []), draws, chance, mutants)]
    trials: list[Trial] = []

    def report(trial: Trial) -> None:
        name = drawings[len(trials)][0]
        trials.append(trial)
        sys.stderr.write("!" if trial.test == name else "." if trial.noticed else "S")
        sys.stderr.flush()

    try_all([cheapest_first(mutant, reached, name) for name, mutant in drawings], report, reached.seconds)
    drawn, noticed, earned = Counter[str](), Counter[str](), Counter[str]()
    for (name, _), trial in zip(drawings, trials, strict=True):
        drawn[name] += 1
        noticed[name] += trial.noticed
        earned[name] += trial.noticed and trial.test == name
    return [Price(name, reached.seconds[name], drawn[name], noticed[name], earned[name]) for name in names]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--from", type=float, default=1.5, dest="least_s", help="CPU seconds of a test under coverage, at least"
    )
    parser.add_argument("--draws", type=int, default=8, help="changes per test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", help="only tests whose name contains this")
    options = parser.parse_args()
    reached = touched.read()
    dear = [
        name for name, seconds in reached.seconds.items() if seconds >= options.least_s and (options.test or "") in name
    ]
    names = sorted(dear, key=reached.seconds.__getitem__, reverse=True)
    rows = prices(names, reached, options.draws, options.seed)
    print_line(f"\n{'CPU s':>6} {'drawn':>5} {'noticed':>7} {'alone':>5} {'per CPU s':>9}  test")
    for row in sorted(rows, key=lambda row: (row.per_second, -row.seconds)):
        print_line(f"{row.seconds:6.1f} {row.drawn:5} {row.noticed:7} {row.earned:5} {row.per_second:9.2f}  {row.test}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
