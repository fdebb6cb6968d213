"""Draws changes of a package, tries them and says how many are noticed.

python -m tests.mutations.score --package protocol --sample 200 --seed 1
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys

from tests.mutations import scores, touched
from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.trial import NO_CONTROL, NOT_REACHED, Trial, asked_about, try_all
from tests.printing import print_line

RESULTS = touched.KEPT / "results.json"


def mutants_in(package):
    paths = sorted((ROOT / "sim" / package).rglob("*.py"))
    return [mutant for path in paths for mutant in mutants_of(path)]


def sample(package, count, seed):
    """The same ones for the same text and seed; all of them without a count."""
    everything = mutants_in(package)
    return (
        everything
        if count is None or count >= len(everything)
        else random.Random(f"{package} {seed}").sample(everything, count)
    )


class Results:
    """What came out so far, kept between calls: what was noticed stays so until its file changes, what was not until the tests change."""

    def __init__(self):
        self.rows = self.read()
        self.tests = digest(*sorted((ROOT / "tests").rglob("*.py")))
        self.files: dict[str, str] = {}

    @staticmethod
    def read():
        return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def name(self, mutant):
        return json.dumps([*mutant.key, mutant.occurrence])

    def file(self, mutant):
        if mutant.file not in self.files:
            self.files[mutant.file] = digest(ROOT / mutant.file)
        return self.files[mutant.file]

    def known(self, mutant):
        row = self.rows.get(self.name(mutant))
        if row is None or row["file"] != self.file(mutant):
            return None
        trial = Trial(mutant, row["verdict"], row["test"], 0)
        return trial if trial.noticed or row["tests"] == self.tests else None

    def keep(self, trial):
        row = {"file": self.file(trial.mutant), "tests": self.tests, "verdict": trial.verdict, "test": trial.test}
        self.rows = self.read() | {self.name(trial.mutant): row}  # another package may be tried at the same time
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(self.rows, indent=0))


def digest(*paths):
    total = hashlib.blake2b(digest_size=8)
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()


def judge(package, mutants, budget_s):
    """In the order given, from what is known and what is tried now."""
    results = Results()
    trials = {mutant: trial for mutant in mutants if (trial := results.known(mutant)) is not None}

    def report(trial):
        trials[trial.mutant] = trial
        results.keep(trial)
        sys.stderr.write("." if trial.noticed else "S")
        sys.stderr.flush()

    missing = [mutant for mutant in mutants if mutant not in trials]
    if missing:
        reached = touched.read({package})
        try_all([asked_about(mutant, reached, budget_s) for mutant in missing], report, reached.seconds)
    return [trials[mutant] for mutant in mutants if mutant in trials]


def description(trial):
    mutant = trial.mutant
    note = f" ({trial.verdict})" if trial.verdict in {NOT_REACHED, NO_CONTROL} else ""
    return f"{mutant.file}:{mutant.line} {mutant.where}{note}\n    - {mutant.before}\n    + {mutant.after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--package",
        choices=(*touched.PACKAGES, *touched.PARTS),
        action="append",
        help="or a part of one; all without it",
    )
    parser.add_argument("--sample", type=int, help="this many changes of a package; all without it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", help="only changes of files whose name contains this")
    parser.add_argument("--budget", type=float, default=15.0, help="seconds of tests per change")
    options = parser.parse_args()
    known = scores.equivalents()
    for package in options.package or touched.PACKAGES:
        mutants = [
            mutant
            for mutant in sample(package, options.sample, options.seed)
            if not options.file or options.file in mutant.file
        ]
        trials = judge(package, [mutant for mutant in mutants if mutant.key not in known], options.budget)
        survivors = [trial for trial in trials if not trial.noticed]
        for trial in survivors:
            print_line(description(trial))
        score = scores.Score(
            len(mutants_in(package)),
            options.seed,
            len(mutants),
            len(mutants) - len(trials),
            len(trials) - len(survivors),
        )
        print_line(f"{package}: {score}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
