"""The tool works: what tests noticed they go on noticing, and what nobody can notice survives."""

import subprocess
import sys

import pytest

from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.sample import sampled_requests
from tests.mutations.score import sample
from tests.mutations.scores import Score, equivalents


def test_a_sample_is_drawn_again_with_its_seed():
    first, again, other = (sample("invariants", 20, seed) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert {"sim/invariants/"} == {mutant.file[:15] for mutant in first}


def test_equivalent_changes_do_not_count():
    assert str(Score(100, 7, 20, 4, 8)) == "seed 7, 20 of 100 changes, 4 equivalent, 8 of 16 noticed, 50.0%"


def test_every_equivalent_change_has_a_reason():
    assert all(len(reason.split()) > 3 for reason in equivalents().values())


@pytest.mark.slow
def test_equivalent_changes_can_still_be_made():
    """Their text stands where the list says; a row whose text has changed is to be judged anew."""
    files = {file for file, _, _ in equivalents()}
    possible = {mutant.key for file in files if (ROOT / file).exists() for mutant in mutants_of(ROOT / file)}

    assert sorted(set(equivalents()) - possible) == []


@pytest.mark.slow
def test_what_was_noticed_is_noticed():
    """A few changes of each package, with the test that noticed; most of them can still be made."""
    requests, gone = sampled_requests()
    command = [sys.executable, "-m", "tests.mutations.sample"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)

    assert len(gone) < len(requests)
    assert f"{len(requests)} of {len(requests)} noticed" == done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_what_nobody_can_notice_survives():
    """Else every test would seem to notice everything: a mark that is no offset, asked of the test that knows it best."""
    file = "sim/invariants/cuts.py"
    program = f"""
from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.sample import run_trials
from tests.mutations.trial import TrialRequest
mutants = [mutant for mutant in mutants_of(ROOT / "{file}") if mutant.after == "UNKNOWN = -2" or "<= 0 else" in mutant.after]
tests = ["tests/invariants/test_cut.py::test_loss_is_told"]
print([trial.verdict for trial in run_trials(TrialRequest(mutant, tests, not mutant.inside) for mutant in mutants)])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.stdout.strip() == "['survived', 'survived']", done.stderr


@pytest.mark.slow
def test_a_test_that_fails_anyway_notices_nothing():
    """Within a function and at import: the failure is that of the test, not of the change."""
    file = "sim/invariants/cuts.py"
    program = f"""
from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.sample import run_trials
from tests.mutations.trial import TrialRequest
mutants = [mutant for mutant in mutants_of(ROOT / "{file}") if mutant.after == "UNKNOWN = -2" or "<= 0 else" in mutant.after]
tests = ["tests/mutations/fails_anyway.py::test_that_fails_anyway", "tests/invariants/test_cut.py::test_loss_is_told"]
print([trial.verdict for trial in run_trials(TrialRequest(mutant, tests, not mutant.inside) for mutant in mutants)])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.stdout.strip() == "['survived', 'survived']", done.stderr
