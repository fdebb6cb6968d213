"""The tool works: what tests noticed they go on noticing, and what nobody can notice survives."""

import pytest

from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.sample import sampled_requests
from tests.mutations.scores import equivalents
from tests.processes import run_python


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
    done = run_python("-m", "tests.mutations.sample", timeout=900)

    assert len(gone) < len(requests)
    assert f"{len(requests)} of {len(requests)} noticed" == done.stdout.strip(), done.stderr
