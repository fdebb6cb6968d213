"""A task manager that was ended on purpose becomes a fault with its own replacement; what a scenario cannot say is named."""

import pytest

from benchmarks.lab import Recording
from sim.jobs.reading import to_document
from tests.benchmarks.lab.recorded import document
from tests.scenarios import read_scenario


def imported(*actions, placement="isolated"):
    recorded = document()
    recorded["config"] |= {"actions": actions, "placement": placement}
    return to_document(Recording.model_validate(recorded))


def kill(at_s, index=3):
    return {"do": "killtm", "at_s": at_s, "index": index}


def start(at_s):
    return {"do": "starttm", "at_s": at_s}


def test_a_loss_is_noticed_at_once_and_replaced_later():
    """The restart strategy is the recorder's; what is told in the scenario reaches the model."""
    written = imported(kill(20), start(23))
    scenario = read_scenario(written.text, "x")

    assert written.not_modelled == ()
    assert written.document["restart"] == {"connection-reset": "0 s", "fresh-start": "0 s", "replacement": "3 s"}
    assert (
        scenario.restart.connection_reset_ns,
        scenario.restart.replacement.mean,
        scenario.restart.delay_ns,
    ) == (0, 3_000_000_000, 1_000_000_000)
    assert scenario.faults[0].what.host == 3
    assert 18 < scenario.faults[0].when.at_ns[0] / 10**9 < 20  # the run begins when all tasks run


@pytest.mark.parametrize(
    ("actions", "wait"),
    [
        ((start(5), kill(20), start(23)), None),
        ((kill(20),), "48 s"),
    ],
    ids=["a spare one", "none"],
)
def test_a_spare_one_stands_in_and_without_one_the_job_waits(actions, wait):
    assert wait == imported(*actions).document["restart"].get("replacement")


def test_task_managers_are_those_of_the_placement():
    """One for all, or one per subtask index."""
    assert imported(kill(20), placement="single").document["faults"][0]["task-manager"] == 0
    assert imported(kill(20), placement="spread").document["faults"][0]["task-manager"] == 3
    assert imported(kill(20, index=5), placement="spread").document["faults"][0]["task-manager"] == 1


def test_what_cannot_be_said_is_named():
    assert imported(kill(9), kill(20)).not_modelled == (
        "task managers lost one after the other: each is replaced as the first one was",
    )
    assert imported({"do": "killtm", "at_s": 9}).not_modelled == ("request during the run: killtm at 9 s",)
    assert "restart" not in imported().document
