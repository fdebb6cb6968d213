"""What the history of checkpoints tells of one vertex: work before the barrier, state, how much of it is written, storage."""

import copy
import math
import re
from pathlib import Path

import pytest

from sim.advice.unknowns import plausible, unknowns
from sim.jobs.infer.cores import usual_checkpoints
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from sim.model.schema.writer import write
from sim.model.units import parse_byte_rate, parse_duration, parse_size

REST = Path(__file__).parents[2] / "data" / "rest"


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


def test_what_remains_of_an_aligned_checkpoint_is_work_before_the_barrier(history):
    """Alignment is no part of it."""

    def edit(_, vertex, subtask):
        phases(subtask, start=100, align=300, sync=5, async_=20, total=925 if vertex == "sink" else 428)

    job = history(edit).document["job"]

    assert parse_duration(job["sink"]["snapshot"]["pre-barrier"]) == 500_000_000
    assert not any("pre-barrier" in job[name].get("snapshot", {}) for name in ("src", "map"))


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


def test_work_of_a_busy_machine_stands_out_from_its_latency(history):
    def edit(number, vertex, subtask):
        late = 200 if number % 2 else 20
        phases(subtask, start=10, align=0, sync=0, async_=20, total=30 + late + 1000 * (vertex == "sink"))

    snapshot = history(edit).document["job"]["sink"]["snapshot"]

    assert pytest.approx(parse_duration(snapshot["pre-barrier"]), rel=0.25) == 1_000_000_000


@pytest.mark.parametrize("name", sorted(path.stem for path in (REST.parent / "users-jobs").glob("*.zip")))
def test_nothing_is_read_into_jobs_that_do_no_work_before_the_barrier(name):
    inference = infer_scenario(read_saved(REST.parent / "users-jobs" / f"{name}.zip"))

    assert not any("pre-barrier" in vertex.get("snapshot", {}) for vertex in inference.document["job"].values())


def test_a_sink_that_flushes_is_found():
    """Its writer takes 400 ms before it forwards the barrier."""
    vertex = infer_scenario(read_saved(REST / "keeping-up.zip")).document["job"]["write"]

    assert pytest.approx(parse_duration(vertex["snapshot"]["pre-barrier"]), rel=0.02) == 400_000_000


def test_noise_is_no_work(history):
    """Nor is a larger one now and then."""

    def edit(number, _, subtask):
        late = 80 if number % 4 == 0 and subtask["index"] == 0 else 20
        phases(subtask, start=10, align=0, sync=0, async_=20, total=30 + late)

    assert not any("pre-barrier" in vertex.get("snapshot", {}) for vertex in history(edit).document["job"].values())


def test_work_that_is_done_now_and_then_has_a_probability(history):
    """A flush that takes 2 s in some snapshots."""
    seen = []

    def edit(_, vertex, subtask):
        seen.append(vertex == "sink")
        slow = vertex == "sink" and seen.count(True) % 4 == 0
        phases(subtask, start=10, align=0, sync=0, async_=20, total=2030 if slow else 35)

    snapshot = history(edit).document["job"]["sink"]["snapshot"]

    assert (parse_duration(snapshot["pre-barrier"]), snapshot["probability"]) == (2_000_000_000, "25 %")


def test_a_long_synchronous_phase(history):
    inference = history(lambda _, __, subtask: phases(subtask, start=10, align=0, sync=200, async_=20, total=233))

    assert inference.document["job"]["map"]["snapshot"]["sync"] == "200 ms"


def test_in_flight_data_is_no_state(history):
    """It is in Flink's sizes."""

    def edit(_, __, subtask):
        phases(subtask, start=10, align=0, sync=0, async_=20, total=33, persisted=500_000)
        subtask["state_size"] = subtask["checkpointed_size"] = 700_000

    inference = history(edit)

    assert parse_size(inference.document["job"]["map"]["state"]["size"]) == 2 * 200_000
    assert parse_size(inference.document["job"]["src"]["snapshot"]["operator-state"]) == 200_000


def test_files_of_rocksdb_hold_more_than_the_state(history):
    """They grow by 1 MB until they are merged: then they are the state and 1 MB.  On the heap the last size counts."""

    def edit(number, _, subtask):
        subtask["state_size"] = 10**6 * (5 + number % 3)

    rocksdb, heap = history(edit, "keeping-up"), history(edit)

    assert parse_size(rocksdb.document["job"]["join-customer"]["state"]["size"]) == 2 * 4 * 10**6
    assert parse_size(heap.document["job"]["map"]["state"]["size"]) == 2 * 10**6 * (5 + 77 % 3)


def test_state_that_grows_is_told(history):
    def edit(number, _, subtask):
        subtask["state_size"] = subtask["checkpointed_size"] = 10**6 * (number - 70)

    inference = history(edit)
    comment = " ".join(inference.comments["job.map.state.size"].split())

    assert comment.endswith("7,000,000 to 7,000,000 bytes each; 8,000,000 bytes in checkpoint 74")
    assert "growth" not in inference.document["job"]["map"]["state"], "four checkpoints are no line"


@pytest.mark.parametrize(
    ("sizes", "growth"),
    [
        (lambda rank: 5_000_000 + 1_000_000 * rank, 10**6 / (5 * 450)),
        (lambda rank: 5_000_000 + 1_000_000 * (rank % 2), None),
        (lambda rank: 5_000_000 + 10_000 * rank, None),
        (lambda rank: 5_000_000 + 20_000_000 * (rank == 17), None),
    ],
    ids=["a line", "to and fro", "hardly", "at once"],
)
def test_state_grows_if_its_sizes_lie_on_a_line(history, sizes, growth):
    """Every 5 s, 450 records/s: the scenario begins an interval before the first size, and every record adds its share of the rise."""

    def edit(number, _, subtask):
        subtask["state_size"] = subtask["checkpointed_size"] = sizes(number - 2) // 2

    inference = history(edit, "../users-jobs/J2-count-aligned")
    state = next(vertex["state"] for vertex in inference.document["job"].values() if "state" in vertex)

    if growth is None:
        assert "growth" not in state
    else:
        assert pytest.approx(parse_size(state["size"]), rel=0.001) == 4_000_000
        assert growth == pytest.approx(parse_size(state["growth"]), rel=0.05)


def levelled(number):
    """18 checkpoints from number 2 on: 1 MB more with each, of which nothing is left over from the tenth on."""
    return 1_000_000 * min(number - 1, 10)


def growing_state(inference):
    return next((name, vertex["state"]) for name, vertex in inference.document["job"].items() if "state" in vertex)


def test_state_that_levels_off_to_the_byte_has_all_of_its_keys(history):
    """1 MB in 5 s up to 10 MB, and the same in the last nine checkpoints: keys that come and go would differ by chance."""

    def edit(number, _, subtask):
        subtask["state_size"] = subtask["checkpointed_size"] = levelled(number) // 2

    inference = history(edit, "../users-jobs/J2-count-aligned")
    name, state = growing_state(inference)

    assert (parse_size(state["size"]), parse_size(state["limit"])) == (10_000_000, 10_000_000)
    assert pytest.approx(parse_size(state["growth"]), rel=0.05) == 10**6 / (5 * 450)
    assert "ttl" not in state
    assert not any("expire" in question for question in inference.unknown)
    assert "it rose until checkpoint 11 and stays at 10,000,000 bytes to checkpoint 19" in " ".join(
        inference.comments[f"job.{name}.state.size"].split()
    )


def test_state_that_levels_off_with_some_noise_asks_why(history):
    """As many keys leave as come after 50 s, or values differ: both can be tried."""

    def edit(number, _, subtask):
        subtask["state_size"] = subtask["checkpointed_size"] = levelled(number) // 2 + 1000 * (number % 2)

    inference = history(edit, "../users-jobs/J2-count-aligned")
    name, state = growing_state(inference)

    assert parse_size(state["size"]) == parse_size(state["limit"]) == pytest.approx(10_000_000, rel=0.01)
    assert pytest.approx(parse_duration(state["ttl"]), rel=0.02) == 50_000_000_000
    assert f"{name}: Have all of its keys come, or do they expire (StateTtlConfig)?" in inference.unknown
    [open_value] = [
        row for row in unknowns(write(inference.document, "", inference.comments)) if row.path[-1] == "limit"
    ]
    assert plausible(open_value, 450) == ["0 B"]


def test_state_whose_keys_are_ever_less_new_has_a_limit(history):
    """Towards 40 MB with a time constant of 40 s; the scenario begins with the history."""

    def edit(number, _, subtask):
        subtask["state_size"] = subtask["checkpointed_size"] = round(20e6 * (1 - math.exp(-5 * (number - 1) / 40)))

    inference = history(edit, "../users-jobs/J2-count-aligned")
    _, state = growing_state(inference)

    assert pytest.approx(parse_size(state["limit"]), rel=0.03) == 40e6
    assert pytest.approx(parse_size(state["growth"]), rel=0.06) == 40e6 / 40 / 450
    assert parse_size(state["size"]) < 2e6


def test_a_history_too_short_to_show_a_limit_is_asked_for_it(history):
    def edit(number, _, subtask):
        subtask["state_size"] = subtask["checkpointed_size"] = 500_000 * number

    inference = history(edit, "../users-jobs/J2-count-aligned")
    name, state = growing_state(inference)
    comment = " ".join(inference.comments[f"job.{name}.state.growth"].split())

    assert "ttl" not in state
    assert f"{name}: When do its keys expire (StateTtlConfig: ttl)?" in inference.unknown
    assert comment.endswith("Assumed: never. It has grown for 85 s, as long as it is known.")


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


def test_tasks_that_all_write_alike_do_not_tell_how_fast_storage_is(history):
    """The fastest is the least it can be; beside late checkpoints, which show the latency of a file, most of the rest is work of a core."""

    def edit(_, __, subtask):
        phases(subtask, start=10, align=0, sync=0, async_=100, total=113)
        subtask["state_size"] = subtask["checkpointed_size"] = 30_000_000

    inference, late = history(edit, interval=20_000), history(edit)

    assert inference.document["storage"]["bandwidth"] == "300 MB/s"
    assert late.document["storage"]["metadata-latency"] == late.document["storage"]["file-latency"]
    assert "How fast does checkpoint storage write one file, in bytes per second?" in inference.unknown


def test_waits_of_unaligned_snapshots_are_not_storage(history):
    """Asynchronous phases end with the last barrier, and with the last task that shares a file."""

    def edit(_, vertex, subtask):
        phases(subtask, start=10, align=0, sync=0, async_=25 if vertex == "sink" else 900, total=935)

    inference = history(edit, unaligned_checkpoints=True)

    assert parse_duration(inference.document["storage"]["file-latency"]) <= 25_000_000
    assert "How fast does checkpoint storage write one file, in bytes per second?" in inference.unknown


def test_a_barrier_that_came_long_before_the_end_held_no_write_up(history):
    """Large snapshots wait for barriers for a while and tell the bandwidth; those that waited for none are small and tell none."""

    def edit(number, vertex, subtask):
        large = 40_000_000 * (subtask["index"] + number % 4 + 1)
        size = large if vertex == "sink" and subtask["index"] else 100_000
        took = 20 + size // 250_000
        align = 40 if size == large else 5
        phases(
            subtask,
            start=10,
            align=align,
            sync=0,
            async_=took,
            total=took + 13,
            persisted=1_000_000 if size == large else 0,
        )
        subtask["state_size"] = subtask["checkpointed_size"] = size

    inference = history(edit, unaligned_checkpoints=True)

    assert parse_byte_rate(inference.document["storage"]["bandwidth"]) == pytest.approx(250_000_000, rel=0.1)


def test_which_snapshots_waited_briefly_does_not_depend_on_how_long_they_took(history):
    """All wait alike, for less than a quarter of the usual 250 ms.  Without the shorter two the median would be 305 ms."""

    def edit(number, vertex, subtask):
        took = (150, 240, 260, 350)[number % 4] if vertex == "sink" else 900
        phases(subtask, start=10, align=61, sync=0, async_=took, total=took + 13, persisted=50_000)
        subtask["state_size"] = subtask["checkpointed_size"] = 2_050_000

    inference = history(edit, unaligned_checkpoints=True, interval=20_000)

    assert parse_duration(inference.document["storage"]["file-latency"]) / 10**6 == 250 - 20  # less 2 MB at 100 MB/s


def test_the_first_checkpoint_of_a_job_does_not_count():
    """Caches are cold, queues are empty; a history that begins later lacks it."""
    snapshot = read_saved(REST / "pressed.zip")
    answers = {path.replace("/details/74", "/details/1"): answer for path, answer in snapshot.answers.items()}
    path = f"/jobs/{snapshot.job}/checkpoints/details/1"
    answers[path] = answers[path] | {"id": 1}

    def numbers(answers):
        return [point.id for point in usual_checkpoints(RestJob(RestSnapshot("test", snapshot.job, answers)))]

    assert numbers(answers) == [75, 76, 77]
    assert numbers(snapshot.answers) == [74, 75, 76, 77]
