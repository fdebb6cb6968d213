"""One checkpoint as an animation: what is shown is what the journal and the tables say, and recording changes nothing."""

import json
from contextlib import suppress

import pytest

from sim.app.examples import contents
from sim.explain.close_up import rerun_with_observers
from sim.explain.player import (
    BLOCKED,
    IN_CHANNEL,
    NOT_SENT,
    TAKEN,
    PlayedCheckpoint,
    _AllSampledError,
    choose_checkpoints,
    describe,
)
from sim.model.schema.study import loads
from sim.plane.interface import channels_in, channels_out
from sim.results.journal import EventType
from sim.runtime.simulate import simulate

AHEAD, OVERTAKEN, BEHIND, UNSENT, STORED, STATE = range(6)


@pytest.fixture(scope="module")
def runs():
    """Two subtasks of each vertex: eight channels."""
    text = contents("first")["first.yaml"].replace("parallelism: 4", "parallelism: 2").replace("60 s", "12 s")
    return {
        scenario.checkpoint.barriers.kind: rerun_with_observers(scenario) for scenario in loads(text, "first").scenarios
    }


@pytest.fixture(scope="module")
def played(runs):
    """Checkpoint 2 of each, recorded."""
    chosen = choose_checkpoints(runs, 2)
    return {one.run: one for one in chosen}, describe(chosen)


def at(one, rows, time_ns):
    """The sizes of all channels right after an event."""
    return rows[one.times_ns.index(time_ns + 1)]


def test_all_are_of_the_same_moment(played):
    _, description = played

    assert [(run["checkpoint"], run["trigger"]) for run in description["runs"]] == [(2, 4_021_000_000)] * 3
    assert json.loads(json.dumps(description)) == json.loads(json.dumps(description, allow_nan=False))


@pytest.mark.parametrize("kind", ["aligned", "unaligned", "aligned-timeout"])
def test_what_is_stored_is_what_subtasks_report(played, kind):
    """The in-flight data of a subtask are what was captured of its inputs, and what its barriers overtook in its outputs."""
    one, layout = played[0][kind], played[0][kind].context.layout
    stored = dict(zip(one.channels, at(one, one.rows(), one.end_ns)[:, STORED].tolist(), strict=True))
    inputs = sum(row.captured_input_bytes for row in one.stats.subtasks.values())
    outputs = sum(row.captured_output_bytes for row in one.stats.subtasks.values())

    assert sum(stored.values()) == inputs + outputs
    assert (inputs + outputs > 0) == (kind != "aligned")
    for task, row in one.stats.subtasks.items():
        if not channels_out(layout, task):  # nothing but its own input is in these channels behind the writer's barrier
            total = sum(stored[channel] for channel in channels_in(layout, task))
            writers = {layout.writer[channel] for channel in channels_in(layout, task)}
            overtaken = sum(int(one.parts[writer].position.overtaken.sum()) for writer in writers)
            assert row.captured_input_bytes <= total <= row.captured_input_bytes + overtaken


@pytest.mark.parametrize("kind", ["aligned", "unaligned", "aligned-timeout"])
def test_barriers_are_where_the_journal_says(played, kind):
    """In a channel since its writer forwarded it, and gone from it when its reader takes its snapshot."""
    one, layout = played[0][kind], played[0][kind].context.layout
    rows, first = one.rows(), {}
    for entry in one.entries:
        first.setdefault((entry.event_type, entry.task), entry.time_ns)
    for index, channel in enumerate(one.channels):
        forwarded = first[EventType.BARRIER_FORWARDED, layout.writer[channel]]
        begun = first[EventType.SNAPSHOT_BEGUN, layout.reader[channel]]
        states = dict(zip(one.times_ns, rows[:, index, STATE].tolist(), strict=True))

        assert {state for time, state in states.items() if time < forwarded} == {NOT_SENT}
        assert NOT_SENT not in {state for time, state in states.items() if time > forwarded}
        if kind == "aligned":
            assert {state for time, state in states.items() if time > begun} <= {TAKEN, BLOCKED}
        assert states[one.times_ns[-1]] == TAKEN


def test_a_channel_that_had_its_barrier_is_blocked_until_the_last_one_comes(played):
    one = played[0]["aligned"]
    rows, layout = one.rows(), one.context.layout
    arrivals = [entry for entry in one.entries if entry.event_type is EventType.BARRIER_ARRIVED]
    begun = {entry.task: entry.time_ns for entry in one.entries if entry.event_type is EventType.SNAPSHOT_BEGUN}
    resumed = {entry.task: entry.time_ns for entry in one.entries if entry.event_type is EventType.INPUTS_RESUMED}
    firsts = [entry for entry in arrivals if entry.time_ns < begun[entry.task]]

    assert {2, 3} <= {entry.task for entry in firsts} <= set(resumed), "both maps align"
    for entry in firsts:
        index = one.channels.index(entry.number)
        before, after = (rows[one.times_ns.index(entry.time_ns + step), index] for step in (0, 1))
        assert (before[STATE], after[STATE], after[AHEAD]) == (IN_CHANNEL, BLOCKED, 0)
        assert at(one, rows, resumed[entry.task])[index, STATE] == TAKEN
        blocked = {one.times_ns[i] for i in range(len(rows)) if rows[i, index, STATE] == BLOCKED}
        assert entry.time_ns < min(blocked) <= max(blocked) <= resumed[entry.task]
    other = next(
        i
        for i, channel in enumerate(one.channels)
        if layout.reader[channel] == firsts[0].task and channel != firsts[0].number
    )
    assert at(one, rows, firsts[0].time_ns)[other, STATE] == IN_CHANNEL, "the other channel is read"


def test_a_barrier_that_overtakes_passes_what_was_not_sent(played):
    """What the journal calls overtaken is what waited at the writer; nothing is blocked."""
    one = played[0]["unaligned"]
    rows, layout = one.rows(), one.context.layout
    for entry in one.entries:
        if entry.event_type is EventType.BARRIER_FORWARDED:
            indices = [index for index, channel in enumerate(one.channels) if layout.writer[channel] == entry.task]
            after = at(one, rows, entry.time_ns)[indices]
            assert after[:, UNSENT].sum() == entry.number
            assert after[:, OVERTAKEN].sum() >= entry.number
            assert not after[:, BEHIND].any()
    assert BLOCKED not in rows[..., STATE]
    assert (at(one, rows, one.end_ns)[:, STATE] == TAKEN).all()


def test_after_the_timeout_barriers_overtake(played):
    one = played[0]["aligned-timeout"]
    rows = one.rows()
    converted = [entry for entry in one.entries if entry.event_type is EventType.OUTPUT_CONVERTED and entry.number]

    assert converted
    for entry in converted:
        indices = [i for i, channel in enumerate(one.channels) if one.context.layout.writer[channel] == entry.task]
        before, after = rows[one.times_ns.index(entry.time_ns), indices], at(one, rows, entry.time_ns)[indices]
        assert not before[:, STORED].any()
        assert after[:, OVERTAKEN].sum() > 0 == before[:, OVERTAKEN].sum()


def test_the_description_is_the_samples_and_the_journal(played):
    """Samples that are left out differ from those before by less than half a percent of the fullest channel."""
    chosen, description = played
    step = description["capacity"] / 200
    for run in description["runs"]:
        one, rows = chosen[run["name"]], chosen[run["name"]].rows()
        assert [(event[0], event[1]) for event in run["events"]] == [
            (entry.time_ns - run["trigger"], entry.event_type.value) for entry in one.entries
        ]
        assert sum("takes the barrier of" in event[3] for event in run["events"]) == 8
        for index, channel in enumerate(run["channels"]):
            kept = dict(zip(channel["at"], channel["rows"], strict=True))
            last = channel["rows"][0]
            for sample in range(len(rows)):
                last = kept.get(sample, last)
                assert last[STATE] == rows[sample, index, STATE]
                assert abs(last[:STATE] - rows[sample, index, :STATE]).max() <= step


def test_recording_changes_nothing(played, runs):
    """The second run has the journal of the first one, and ends with the last sample."""
    first = played[0]["unaligned"]
    one = PlayedCheckpoint(first.run, first.context, first.stats)
    one.times_ns, one.channels = first.times_ns, first.channels
    instances = []

    def attach(instance):
        one._attach(instance)
        instances.append(instance)

    with suppress(_AllSampledError):
        simulate(first.context.scenario, check=False, attach=attach)
    journal = instances[0].journal
    assert list(journal) == runs["unaligned"].result.journal[: len(journal)]
    assert len(journal) < len(runs["unaligned"].result.journal)


def test_only_the_subtasks_that_acknowledge_last_are_shown():
    text = contents("first")["first.yaml"].replace("parallelism: 4", "parallelism: 6").replace("60 s", "2 s")
    scenario = loads(text, "first").scenarios[1]
    (one,) = choose_checkpoints({"unaligned": rerun_with_observers(scenario)}, 1)
    description = describe([one])
    acknowledged = [entry.task for entry in one.entries if entry.event_type is EventType.ACKNOWLEDGED]

    assert description["hidden"] == 6
    (run,) = description["runs"]
    assert len(run["tasks"]) == 12
    assert len(run["channels"]) == 32
    sinks = sorted(task for task in acknowledged if one.context.names[task][0] == "sink")
    latest = sorted(sinks, key=lambda task: -acknowledged.index(task))[:4]
    assert {name for name in run["tasks"] if name.startswith("sink")} == {
        f"sink[{one.context.names[task][1]}]" for task in latest
    }


def test_the_slowest_of_the_first_run_is_played_by_default(runs):
    assert next(one.stats.number for one in choose_checkpoints(runs)) == 2
