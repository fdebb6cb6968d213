"""A small fixed sample of changes that tests notice, with the test that did: they must go on noticing.

`python -m tests.mutations.sample` tries them and prints the survivors.  `--draw N` chooses N per package anew, from the results of the scores.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from tests.mutations import touched
from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.score import RESULTS, description
from tests.mutations.trial import TrialRequest, try_all
from tests.printing import print_line

FILE = Path(__file__).with_name("sample.json")
QUICK_S, LONG = 1, 120  # seconds of a test, letters of a statement


def sampled_requests():
    """The changes that still apply, and the rows whose text has changed since."""
    rows = json.loads(FILE.read_text())
    found = {}
    for file in sorted({row["file"] for row in rows}):
        if (ROOT / file).exists():
            found |= {mutant.key: mutant for mutant in mutants_of(ROOT / file) if mutant.occurrence == 1}
    keys = [(row["file"], row["before"], row["after"]) for row in rows]
    requests = [
        TrialRequest(found[key], [row["test"]], row["at_import"])
        for key, row in zip(keys, rows, strict=True)
        if key in found
    ]
    return requests, [" ".join(key) for key in keys if key not in found]


def run_trials(requests):
    trials = []
    try_all(list(requests), trials.append, {})
    return trials


def draw(count):
    """Choose `count` changes per package, at most one per file, among those that a quick test noticed."""
    known = [
        (json.loads(name), row["test"])
        for name, row in json.loads(RESULTS.read_text()).items()
        if row["verdict"] == "killed"
    ]
    random.Random(count).shuffle(known)
    reached = touched.read()
    chosen = {}  # by file
    for (file, before, after, occurrence), test in known:
        package = file.split("/")[1]
        full = sum(other.split("/")[1] == package for other in chosen) >= count
        if (
            file in chosen
            or full
            or occurrence > 1
            or len(before) > LONG
            or not reached.seconds.get(test, QUICK_S) < QUICK_S
        ):
            continue
        mutants = mutants_of(ROOT / file) if (ROOT / file).exists() else []
        for mutant in mutants:
            if mutant.key == (file, before, after):
                chosen[file] = {"file": file, "before": before, "after": after, "test": test}
                chosen[file]["at_import"] = reached.runs_at_import(mutant)
    FILE.write_text(json.dumps([chosen[file] for file in sorted(chosen)], indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, help="choose so many a package anew")
    options = parser.parse_args()
    if options.draw:
        draw(options.draw)
    trials = run_trials(sampled_requests()[0])
    for trial in trials:
        if not trial.noticed:
            print_line(description(trial))
    noticed = sum(trial.noticed for trial in trials)
    print_line(f"{noticed} of {len(trials)} noticed")
    return 0 if noticed == len(trials) else 1


if __name__ == "__main__":
    sys.exit(main())
