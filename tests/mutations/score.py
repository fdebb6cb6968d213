"""Draws changes of a package, tries them and says how many are noticed by the tests of the package, or by others.

python -m tests.mutations.score --package protocol --sample 200 --seed 1
"""

from __future__ import annotations

import argparse
import random
import sys
import tomllib
from functools import cache, partial
from itertools import accumulate
from pathlib import Path

from tests.mutations import touched
from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.runner import PASSED, run, run_each
from tests.printing import print_line

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
PACKAGES = sorted(path.parent.name for path in (ROOT / "sim").glob("*/__init__.py"))
SLOWER, AT_LEAST_S = 10, 60  # tests may take this much longer than they did, and this long
NOTICED, SURVIVED, NOT_REACHED, NO_CONTROL = "noticed", "survived", "no test reaches it", "its tests fail without it"


def equivalents():
    """Changes that nobody can notice, by file and text before and after, with the reason."""
    rows = tomllib.loads(EQUIVALENT.read_text())["equivalent"]
    return {(row["file"], row["before"], row["after"]): row["reason"] for row in rows}


def verdict_of(mutant, tests, limit_s):
    """What becomes of tests with a change; a failure counts only if they pass without it."""
    if not tests:
        return NOT_REACHED
    if run(*tests, rule=mutant, limit_s=limit_s) == PASSED:
        return SURVIVED
    return NOTICED if _passes_unchanged(tests) else NO_CONTROL


@cache
def _passes_unchanged(tests):
    return run(*tests) == PASSED


def judge(reached, budget_s, mutant):
    """Ask the quickest tests that reach a change, as many as take so long together."""
    tests = reached.tests_of(mutant)
    total_s = list(accumulate(reached.seconds[test] for test in tests))
    count = max(1, sum(seconds <= budget_s for seconds in total_s))
    asked = tuple(tests[:count])
    return verdict_of(mutant, asked, AT_LEAST_S + SLOWER * sum(reached.seconds[test] for test in asked))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", action="append", help="such as protocol or jobs/infer; all without it")
    parser.add_argument("--sample", type=int, default=100, help="this many changes of a package (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="+", help="folders or files that are asked (default: those of the package)")
    parser.add_argument("--budget", type=float, default=15.0, help="seconds of tests per change (default: %(default)s)")
    options = parser.parse_args()
    known = equivalents()
    for package in options.package or PACKAGES:
        possible = [mutant for path in sorted((ROOT / "sim" / package).rglob("*.py")) for mutant in mutants_of(path)]
        drawn = random.Random(f"{package} {options.seed}").sample(possible, min(options.sample, len(possible)))
        tried = [mutant for mutant in drawn if mutant.key not in known]
        reached = touched.read(options.tests or [f"tests/{package}"])
        verdicts = run_each(partial(judge, reached, options.budget), tried)
        for mutant, verdict in zip(tried, verdicts, strict=True):
            if verdict != NOTICED:
                print_line(f"{mutant.path}:{mutant.line} ({verdict})\n    - {mutant.before}\n    + {mutant.after}")
        noticed, equivalent = verdicts.count(NOTICED), len(drawn) - len(tried)
        drawn_text = f"seed {options.seed}, {len(drawn)} of {len(possible)} changes, {equivalent} equivalent"
        share = noticed / max(1, len(tried))
        print_line(f"{package}: {drawn_text}, {noticed} of {len(tried)} noticed, {share:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
