"""What checkpoints of a history took beyond what is usual: read per subtask and part, and nothing that the protocol explains."""

import copy
import re

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from tests.places import USERS


@pytest.fixture
def residuals():
    """``residuals(edit, name, **config)``: what is inferred after `edit(number, vertex, subtask)` of every subtask of every checkpoint."""

    def infer(edit, name="J2-count-aligned", **config):
        snapshot = read_saved(USERS / f"{name}.zip")
        answers = copy.deepcopy(dict(snapshot.answers))
        names = {
            vertex["id"]: vertex["name"].split(":")[0].lower()
            for vertex in answers[f"/jobs/{snapshot.job}"]["vertices"]
        }
        answers[f"/jobs/{snapshot.job}/checkpoints/config"] |= config
        for path, answer in answers.items():
            if found := re.search(r"/details/(\d+)/subtasks/(\w+)", path):
                for subtask in answer["subtasks"]:
                    edit(int(found[1]), names[found[2]].split(" ")[0], subtask)
        return infer_scenario(RestSnapshot("test", snapshot.job, answers, snapshot.samples)).document.get("residuals")

    return infer


def usual(subtask, *, start=3, align=10, sync=5, async_=40, late=0, written=10**6):
    """All checkpoints alike, but for what is given [ms, bytes]."""
    subtask |= {
        "start_delay": start,
        "end_to_end_duration": start + align + sync + async_ + 3 + late,
        "unaligned_checkpoint": False,
    }
    subtask["checkpoint"] = {"sync": sync, "async": async_}
    subtask["alignment"] = subtask["alignment"] | {"duration": align, "persisted": 0}
    subtask |= {"checkpointed_size": written, "state_size": written}


def test_large_files_are_no_chance(residuals):
    """Twice the bytes in twice the time, in every fourth checkpoint."""

    def edit(number, _, subtask):
        share = 1 + 9 * (number % 4 == 0)
        usual(subtask, written=share * 10**6, async_=share * 40)

    assert None is residuals(edit)


def test_a_history_without_latency_has_none(residuals):
    assert None is residuals(lambda number, _, subtask: usual(subtask))
