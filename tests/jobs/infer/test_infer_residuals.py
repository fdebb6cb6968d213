"""What checkpoints of a history took beyond what is usual: read per subtask and part, and nothing that the protocol explains."""

import copy
import re
from pathlib import Path

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved

USERS = Path(__file__).parents[2] / "data" / "users-jobs"
LATE = 7
"""The checkpoint that is unlike the others."""


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


@pytest.mark.parametrize(
    ("change", "part", "expected"),
    [({"sync": 205}, "sync", 200), ({"async_": 540}, "async", 500), ({"late": 300}, "acknowledgement", 300)],
    ids=["sync", "async", "acknowledgement"],
)
def test_what_one_checkpoint_took_more_than_the_others(residuals, change, part, expected):
    """One subtask has it, the other one nothing."""

    def edit(number, vertex, subtask):
        usual(subtask, **(change if (number, vertex, subtask["index"]) == (LATE, "count", 1) else {}))

    found = residuals(edit)
    own = found["of"]["count+out-writer"]

    assert ([part, "backend"], 18) == (list(own), found["checkpoints"])
    assert [0, expected] == [max(numbers) for numbers in own[part]]
    assert own[part][1].index(expected) == LATE - 2, "the first checkpoint is left out"


def test_a_source_that_is_called_late(residuals):
    def edit(number, vertex, subtask):
        usual(subtask, start=120 if (number, vertex) == (LATE, "source") else 20)

    assert max(residuals(edit)["of"]["events"]["scheduling"][0]) == 117, "less what every call takes"


def test_a_source_that_is_always_late_is_busy(residuals):
    """With records, which the simulation knows."""

    def edit(number, vertex, subtask):
        usual(subtask, start=(700 if number == LATE else 400) if vertex == "source" else 20)

    assert max(residuals(edit)["of"]["events"]["scheduling"][0]) == 300


def test_data_that_barriers_wait_behind_is_no_chance(residuals):
    """Start delay and alignment of readers: the simulation has its own."""

    def edit(number, vertex, subtask):
        late = number == LATE and vertex != "source"
        usual(subtask, start=900 if late else 3, align=700 if late else 10)

    assert None is residuals(edit)


def test_large_files_are_no_chance(residuals):
    """Twice the bytes in twice the time, in every fourth checkpoint."""

    def edit(number, _, subtask):
        share = 1 + 9 * (number % 4 == 0)
        usual(subtask, written=share * 10**6, async_=share * 40)

    assert None is residuals(edit)


def test_a_long_phase_beside_a_short_one_is_nothing_unusual(residuals):
    """Together they took what they always take."""

    def edit(number, _, subtask):
        usual(subtask, **({"sync": 305, "async_": 40} if number % 4 == 0 else {"sync": 5, "async_": 340}))

    assert None is residuals(edit)


def test_asynchronous_phases_that_wait_for_barriers_are_no_chance(residuals):
    """Unaligned: of vertices with readers nothing, of the others what is longer than the wait."""

    def edit(number, vertex, subtask):
        late = number == LATE
        usual(subtask, align=500 if late else 10, async_=840 if late else 40)

    of = residuals(edit, unaligned_checkpoints=True)["of"]

    assert {"count+out-writer"} == {name for name, parts in of.items() if "async" in parts}
    assert max(of["count+out-writer"]["async"][0]) == 310


def test_a_history_without_latency_has_none(residuals):
    assert None is residuals(lambda number, _, subtask: usual(subtask))


def test_latency_of_every_checkpoint_counts_as_well(residuals):
    """A calm job: triggers take 13 ms and acknowledgements 8 ms, where 3 ms are the least.  No checkpoint is unlike the others."""
    of = residuals(lambda number, _, subtask: usual(subtask, start=13, late=5))["of"]

    assert {10} == {late for column in of["events"]["scheduling"] for late in column}
    assert {5} == {late for parts in of.values() for column in parts["acknowledgement"] for late in column}


def test_work_before_the_barrier_is_not_counted_twice(residuals):
    """A sink that flushes for 400 ms in every second snapshot, once for 600 ms."""

    def edit(number, vertex, subtask):
        usual(subtask, late=(600 if number == 8 else 400 if number % 2 == 0 else 0) if vertex == "count" else 0)

    own = residuals(edit)["of"]["count+out-writer"]["acknowledgement"][0]

    assert [late for late in own if late] == [200]


@pytest.mark.parametrize("name", ["J2-count-aligned", "J4-pressed-unaligned-r1"])
def test_recordings_of_a_busy_machine_have_tails(name):
    found = infer_scenario(read_saved(USERS / f"{name}.zip")).document["residuals"]
    columns = [
        numbers
        for parts in found["of"].values()
        for part, lists in parts.items()
        if part != "backend"
        for numbers in lists
    ]

    assert {found["checkpoints"]} == {len(numbers) for numbers in columns}
    assert max(map(max, columns)) > 100
