"""What the hosts of one job instance share: which instance it is, what it began from, and the edges at its tasks."""

from dataclasses import replace

import pytest

from sim.model.randomness import Residuals
from sim.results.journal import Entry, Happening, Journal
from sim.runtime.context import Origin
from sim.runtime.result import Outcome
from tests.runtime.fakes import clock
from tests.runtime.monitors.watched import MAP, SINK, stateful


@pytest.fixture
def context():
    return replace(stateful().context, journal=Journal())


def test_the_first_instance_begins_with_nothing(context):
    assert (context.instance, context.begun_from) == (0, 0)


def test_a_later_one_begins_from_a_checkpoint(context):
    later = replace(context, origin=Origin(3, 5, 7, None))
    assert (later.instance, later.begun_from) == (3, 7)


def test_what_happens_is_entered_now(context):
    context.note(Happening.FAULT, 4, MAP, 9, "slow")
    context.note(Happening.JOB_FINISHED)
    now = context.env.now

    assert [Entry(now, Happening.FAULT, 4, MAP, 9, "slow"), Entry(now, Happening.JOB_FINISHED)] == list(context.journal)


def test_edges_of_gates_and_outputs(context):
    """src -> map -> sink."""
    assert [context.gate_edge(task, 0) for task in (MAP, SINK)] == [0, 1]
    assert [context.outputs(task) for task in (0, MAP, SINK)] == [[(0, False)], [(1, False)], []]
    assert replace(context, forced=frozenset({1})).outputs(MAP) == [(1, True)]


def test_a_job_without_an_interval_takes_no_checkpoints(context):
    assert context.periodic
    options = replace(context.scenario.checkpoint, interval_ns=None)
    assert not replace(context, scenario=replace(context.scenario, checkpoint=options)).periodic


def test_without_residuals_nothing_takes_longer_than_the_model(context):
    assert Residuals() == context.scenario.residuals
    assert context.residual_ns("sync", MAP, 4) == 0


class TestOutcomes:
    @pytest.fixture
    def outcome(self):
        return Outcome(clock())

    def test_a_job_runs(self, outcome):
        assert outcome.status == "RUNNING"
        assert not any(
            event.triggered for event in (outcome.failed, outcome.finished, outcome.caught_up, outcome.rescaled)
        )

    def test_it_fails_and_says_why(self, outcome):
        """The last reason counts; it fails once."""
        outcome.fail("first")
        outcome.fail("second")
        assert (outcome.status, outcome.failed.triggered) == ("FAILED: second", True)

    def test_it_finishes(self, outcome):
        for _ in range(2):
            outcome.finish()
        assert (outcome.status, outcome.finished.triggered) == ("FINISHED", True)

    def test_it_catches_up_and_runs_on(self, outcome):
        for _ in range(2):
            outcome.catch_up()
        assert (outcome.status, outcome.caught_up.triggered) == ("RUNNING", True)

    def test_it_is_rescaled_without_some_task_managers(self, outcome):
        outcome.rescale(frozenset({2}))
        outcome.rescale(frozenset({3}))
        assert (True, frozenset({2})) == (outcome.rescaled.triggered, outcome.missing)
