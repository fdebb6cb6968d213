"""What the checkers notice of bugs: `python -m tests.injections`, in the least world of each and in random worlds.

A bug that changes nothing in a run says nothing, so its rate is told of those random worlds where it acts.
"""

import argparse
import sys

from sim.studies.cells import warm
from sim.studies.local import cores, run_each
from tests.injections.catalogue import INJECTIONS
from tests.injections.random_worlds import Rate, Trial, noticed_in, sums, table
from tests.printing import print_line


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.injections", description=__doc__)
    parser.add_argument(
        "only", nargs="*", default=[""], help="bugs whose part or name holds one of these texts (default: all)"
    )
    parser.add_argument("--worlds", type=int, default=0, help="random worlds to draw (default: none)")
    parser.add_argument("--per-world", type=int, default=8, help="bugs tried in each of them (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="seed of the first one (default: %(default)s)")
    parser.add_argument(
        "--markdown", action="store_true", help="print the table of random worlds only, as the README has it"
    )
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one per core)")
    chosen = parser.parse_args()
    bugs = [bug for bug in INJECTIONS.values() if any(text in f"{bug.part}: {bug.name}" for text in chosen.only)]
    for text in chosen.only:
        if not any(text in f"{bug.part}: {bug.name}" for bug in bugs):
            parser.error(f"no part or name holds {text!r}")
    warm()
    names = tuple(bug.name for bug in bugs)
    trials = [Trial(seed, chosen.per_world, names) for seed in range(chosen.first, chosen.first + chosen.worlds)]
    rates = sums(found for _, found in run_each(_noticed_in, trials, jobs=chosen.jobs)) if trials else {}
    if chosen.markdown:
        for line in table(bugs, rates):
            print_line(line)
        return 0
    return report(((bug, bug.verdict(bug.world)) for bug in bugs), rates if trials else None)


def _noticed_in(trial, _progress):
    return noticed_in(trial)


def report(rows, rates=None):
    """Print the table.  Returns 1 if a bug is not noticed."""
    missed, total = [], 0
    for bug, verdict in rows:
        total += 1
        rate = "" if rates is None else f" {rates.get(bug.name, Rate())!s:>9} "
        print_line(f"{bug.part:14} {bug.name:52}{rate} {verdict.kind or '-':9} {verdict.message[:150]}".rstrip())
        missed += [] if verdict.noticed else [bug.name]
    print_line(f"{total - len(missed)} of {total} bugs are noticed in their least worlds")
    if rates:
        print_line(
            f"random worlds: {sum(rate.noticed for rate in rates.values())} of {sum(rate.tried for rate in rates.values())} runs"
        )
    if missed:
        print_line(f"NOT NOTICED: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
