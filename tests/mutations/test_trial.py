"""A failure tells of a change only where the same tests pass without it."""

import gc
from types import SimpleNamespace

import pytest

from sim.protocol.restart_strategy import regions
from tests.mutations.changes import Mutant
from tests.mutations.trial import (
    BY_THE_CLOCK,
    KILLED,
    NO_CONTROL,
    SURVIVED,
    Outcome,
    Server,
    TrialRequest,
    functions_by_place,
    node_id,
    try_all,
    unchanged,
)

MUTANT = Mutant(
    "sim/protocol/restart_strategy.py",
    0,
    "",
    inside=False,
    line=1,
    last_line=1,
    before="x = 1",
    after="x = 2",
    occurrence=1,
)


class Rehearsal(Server):
    """Its children are said beforehand: (changed, tests) -> what becomes of them."""

    def __init__(self, outcomes):
        super().__init__([], [].append, {})
        self.outcomes, self.children = outcomes, []

    def child(self, change, items, *, again):
        key = change is not unchanged, "".join(item.nodeid for item in items)
        self.children.append(key)
        return self.outcomes[key]


def tried(server, tests):
    request = TrialRequest(MUTANT, list(tests), at_import=True)
    trial = server.try_one(request, [SimpleNamespace(nodeid=name) for name in tests], {})
    return trial.verdict, trial.test


@pytest.mark.parametrize("verdict", [KILLED, BY_THE_CLOCK])
def test_a_failure_whose_control_passes_is_a_change_noticed(verdict):
    server = Rehearsal({(True, "abc"): Outcome(verdict, "b"), (False, "abc"): Outcome(SURVIVED, "")})

    assert (verdict, "b") == tried(server, "abc")


def test_a_change_that_lives_needs_no_control():
    server = Rehearsal({(True, "abc"): Outcome(SURVIVED, "")})

    assert tried(server, "abc") == (SURVIVED, "")


def test_tests_that_fail_anyway_are_left_out_and_the_others_asked_again():
    server = Rehearsal(
        {
            (True, "abc"): Outcome(KILLED, "a"),
            (False, "abc"): Outcome(KILLED, "a"),
            (True, "bc"): Outcome(SURVIVED, ""),
        }
    )

    assert tried(server, "abc") == (SURVIVED, "")
    assert tried(server, "abc") == (SURVIVED, "")
    assert server.children == [(True, "abc"), (False, "abc"), (True, "bc"), (True, "bc")]  # the second time it knows


def test_a_change_whose_tests_all_fail_anyway_is_not_noticed():
    server = Rehearsal({(True, "a"): Outcome(KILLED, "a"), (False, "a"): Outcome(BY_THE_CLOCK, "a")})

    assert tried(server, "a") == (NO_CONTROL, "a")
    assert tried(server, "a") == (NO_CONTROL, "")


def test_a_change_is_not_noticed_where_the_tests_cannot_even_be_collected():
    """Such a run ends with a failing exit, whatever was changed."""
    server = Rehearsal({(True, "ab"): Outcome(KILLED, ""), (False, "ab"): Outcome(KILLED, "")})

    assert tried(server, "ab") == (NO_CONTROL, "")


def test_one_control_serves_all_changes_that_ask_the_same_tests():
    server = Rehearsal({(True, "ab"): Outcome(KILLED, "a"), (False, "ab"): Outcome(SURVIVED, "")})
    for _ in range(3):
        tried(server, "ab")

    assert server.children.count((False, "ab")) == 1


def test_changes_that_were_not_tried_are_an_error(tmp_path, monkeypatch):
    """Tests that cannot be collected end pytest before the first trial; such changes are neither noticed nor equivalent."""
    broken = tmp_path / "test_broken.py"
    broken.write_text("import a_module_that_is_not_there\n")
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "ci")

    with pytest.raises(SystemExit, match="0 of 1 changes were tried"):
        try_all([TrialRequest(MUTANT, [f"{broken}::test"], at_import=True)], [].append, {})


def test_parameters_with_slashes_are_found():
    assert node_id("tests/test_a.py::test_b[s3://bucket/./x]").endswith("/tests/test_a.py::test_b[s3://bucket/./x]")


def test_functions_are_found_behind_the_freeze_of_the_suite():
    """Else every change has the package and all tests imported again."""
    gc.freeze()
    code = regions.__code__

    assert functions_by_place()[code.co_filename, code.co_qualname, code.co_firstlineno] == [regions]
    gc.freeze()
