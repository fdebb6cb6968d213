"""What the history of checkpoints tells of one vertex: work before the barrier, state, how much of it is written, storage."""

import copy
import re

import pytest

from sim.advice.questions import unknowns
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.schema.writer import write
from sim.model.units import parse_duration, parse_size
from tests.places import REST


@pytest.fixture
def history():
    """``history(edit, name, **config)``: the scenario after `edit(number, vertex, subtask)` of every subtask of every checkpoint."""

    def infer(edit, name="pressed", options=(), **config):
        snapshot = read_saved(REST / f"{name}.zip")
        answers = copy.deepcopy(dict(snapshot.answers))
        names = {vertex["id"]: vertex["name"] for vertex in answers[f"/jobs/{snapshot.job}"]["vertices"]}
        answers[f"/jobs/{snapshot.job}/checkpoints/config"] |= config
        configurations = [answer for path, answer in answers.items() if path.endswith("/jobmanager/config")]
        for answer in configurations:
            answer.extend({"key": key, "value": value} for key, value in dict(options).items())
        for path, answer in answers.items():
            if found := re.search(r"/details/(\d+)/subtasks/(\w+)", path):
                for subtask in answer["subtasks"]:
                    edit(int(found[1]), names[found[2]], subtask)
        return infer_scenario(RestSnapshot("test", snapshot.job, answers, snapshot.samples))

    return infer


def phases(subtask, *, start, align, sync, async_, total, persisted=0):
    """[ms], and bytes in flight."""
    subtask |= {"start_delay": start, "end_to_end_duration": total, "unaligned_checkpoint": persisted > 0}
    subtask["checkpoint"] = {"sync": sync, "async": async_}
    subtask["alignment"] = subtask["alignment"] | {"duration": align, "persisted": persisted}


def test_an_unaligned_one_does_not_wait_for_the_others(history):
    """Their barriers come while the asynchronous phase lasts."""

    def edit(_, vertex, subtask):
        phases(subtask, start=100, align=300, sync=5, async_=320, total=925 if vertex == "sink" else 428)

    inference = history(edit, unaligned_checkpoints=True)

    assert parse_duration(inference.document["job"]["sink"]["snapshot"]["pre-barrier"]) == 500_000_000


@pytest.mark.parametrize(("at_sink", "works"), [(600, True), (100, False)], ids=["late", "in time"])
def test_work_before_the_barrier_makes_readers_wait(history, at_sink, works):
    """`map` acknowledges 500 ms late.  Where its reader had the barrier before that, it was no work."""

    def edit(_, vertex, subtask):
        match vertex:
            case "src":
                phases(subtask, start=10, align=0, sync=0, async_=20, total=33)
            case "map":
                phases(subtask, start=90, align=5, sync=0, async_=20, total=618)
            case _:
                phases(subtask, start=at_sink, align=0, sync=0, async_=20, total=at_sink + 23)

    inference = history(edit)
    vertex = inference.document["job"]["map"]

    assert works == ("pre-barrier" in vertex.get("snapshot", {}))
    assert works == ("in snapshots" in inference.comments["job.map.service"]), (
        "a wait for an acknowledgement keeps no thread busy"
    )


def test_latency_that_strikes_all_vertices_alike_is_no_work_of_the_last_one(history):
    """Nobody reads it, so only the others show what is usual."""

    def edit(number, _, subtask):
        late = 200 if number % 2 else 20
        phases(subtask, start=10, align=0, sync=0, async_=20, total=30 + late)

    assert not any("pre-barrier" in vertex.get("snapshot", {}) for vertex in history(edit).document["job"].values())


def test_what_happened_once_is_an_outlier(history):
    """However long it took."""
    seen = []

    def edit(_, vertex, subtask):
        seen.append(vertex == "sink")
        once = vertex == "sink" and seen.count(True) == 1
        phases(subtask, start=10, align=0, sync=0, async_=20, total=5000 if once else 33)

    assert "pre-barrier" not in history(edit).document["job"]["sink"].get("snapshot", {})


def test_a_long_synchronous_phase(history):
    inference = history(lambda _, __, subtask: phases(subtask, start=10, align=0, sync=200, async_=20, total=233))

    assert inference.document["job"]["map"]["snapshot"]["sync"] == "200 ms"


def levelled(number):
    """18 checkpoints from number 2 on: 1 MB more with each, of which nothing is left over from the tenth on."""
    return 1_000_000 * min(number - 1, 10)


def growing_state(inference):
    return next((name, vertex["state"]) for name, vertex in inference.document["job"].items() if "state" in vertex)


def test_state_that_levels_off_with_some_noise_asks_why(history):
    """As many keys leave as come after 50 s, or values differ: both can be tried."""

    def edit(number, _, subtask):
        subtask["state_size"] = subtask["checkpointed_size"] = levelled(number) // 2 + 1000 * (number % 2)

    inference = history(edit, "../users-jobs/J2-count-aligned")
    name, state = growing_state(inference)

    assert parse_size(state["size"]) == parse_size(state["limit"]) == pytest.approx(10_000_000, rel=0.01)
    assert pytest.approx(parse_duration(state["ttl"]), rel=0.02) == 50_000_000_000
    assert f"{name}: Has it reached its full number of keys, or do keys expire (StateTtlConfig)?" in inference.unknown
    [open_value] = [
        row for row in unknowns(write(inference.document, "", inference.comments)) if row.path[-1] == "limit"
    ]
    assert open_value.question.endswith("Has it reached its full number of keys, or do keys expire (StateTtlConfig)?")


@pytest.mark.parametrize(("given", "ttl"), [("2 h", "2 h"), ("0 ms", None), ("7200000", "2 h")])
@pytest.mark.parametrize("sizes", [levelled, lambda number: 1_000_000 * number], ids=["levels off", "a line"])
def test_the_configuration_tells_when_keys_expire(history, given, ttl, sizes):
    """It counts, unless sizes are the same to the byte; 0 is never, which leaves a question where they level off."""

    def edit(number, _, subtask):
        subtask["state_size"] = subtask["checkpointed_size"] = sizes(number) // 2 + 1000 * (number % 2)

    inference = history(edit, "../users-jobs/J2-count-aligned", options={"table.exec.state.ttl": given})
    _, state = growing_state(inference)

    is_open = any("expire" in question for question in inference.unknown)
    assert (ttl is None and sizes is levelled) == is_open
    if not is_open:
        assert ttl == state.get("ttl")
    assert "table.exec.state.ttl" not in inference.document.get("flink", {})
