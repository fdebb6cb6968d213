"""Constants that were planted come back: in simulated recordings, and in copies of real ones whose times were moved."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from benchmarks.lab import Recording, read
from benchmarks.lab.calibration.estimate import votes
from benchmarks.lab.calibration.estimators import CONSTANTS
from sim.model.scenario import Overheads
from tests.benchmarks.lab.calibration.recorded import RECORDINGS, STARTUP_MS, recorded

MS = 10**6


def test_every_constant_has_an_estimator():
    """And says what it is; nothing else has one."""
    assert {field.name for field in fields(Overheads)} == {f"{name}_ns" for name in CONSTANTS}
    assert all(constant.what.endswith(".") and constant.how for constant in CONSTANTS.values())


@pytest.mark.parametrize("scale", [1, 4])
def test_planted_constants_come_back_from_simulated_recordings(scale):
    """Within a millisecond: recorded times are cut to whole ones."""
    planted = {"trigger": 4, "acknowledge": 5, "complete": 9, "first_trigger": 35, "file": 2, "notify": 3}
    planted = {name: value * scale for name, value in planted.items()}
    overheads = Overheads(**{f"{name}_ns": value * MS for name, value in planted.items()})

    overrun = votes(recorded("p2-severe-aligned", overheads))
    chain = votes(recorded("chain3-none-asyncflush500-aligned", overheads, seconds=20))
    paused = votes(recorded("minpause3s-p2-severe-aligned", overheads))

    for estimated, names in (
        (overrun, "trigger acknowledge complete first_trigger file"),
        (chain, "trigger acknowledge first_trigger file"),
    ):
        assert {name: estimated[name] for name in names.split() if abs(estimated[name] - planted[name]) > 1} == {}
    assert paused["complete"] == pytest.approx(planted["complete"], abs=1)
    assert "complete" not in chain, "no checkpoint is late, none waits for a pause"
    assert overrun["start"] == STARTUP_MS


@pytest.mark.parametrize("late_us", [400, 900])
def test_a_planted_delay_of_the_flusher_comes_back(late_us):
    """To a tenth of a millisecond: eighty flushes lie between two checkpoints."""
    unaligned = {"execution.checkpointing.unaligned.enabled": "true"}
    given = recorded(
        "p4-none-largestate-slowdfs-aligned", Overheads(flusher_ns=late_us * 1000), seconds=60, flink=unaligned
    )

    assert late_us / 1000 == pytest.approx(votes(given)["flusher"], abs=0.1)
    assert "flusher" not in votes(recorded("p4-severe-unaligned", Overheads())), (
        "outputs of a source that waits are full"
    )


def moved(name: str, **by_ms: float) -> Recording:
    """A copy of a recording in which events of a kind (or a status of the job) are so much later."""
    given = read(RECORDINGS / f"{name}.json.gz")
    events = {
        kind: table.model_copy(update={"rows": tuple((row[0] + by_ms[kind], *row[1:]) for row in table.rows)})
        if kind in by_ms
        else table
        for kind, table in given.events.items()
    }
    times = {status: at + int(by_ms.get(status, 0)) for status, at in given.job.timestamps.items()}
    return given.model_copy(update={"events": events, "job": given.job.model_copy(update={"timestamps": times})})


@pytest.mark.parametrize(
    ("name", "constant", "later"),
    [
        ("fail-recover-severe-unaligned", "fail", {"RESTARTING": 12}),
        ("fail-recover-severe-unaligned", "restart", {"RUNNING": 12}),
        ("fail-recover-hashmap160-aligned", "deploy", {"init_state": 12}),
        ("p4-severe-aligned", "start", {"open": 12, "prefilled": 12, "source_start": 12}),
    ],
)
def test_what_is_later_by_so_much_makes_its_constant_larger_by_so_much(name, constant, later):
    assert votes(moved(name))[constant] + 12 == pytest.approx(votes(moved(name, **later))[constant])


def test_closing_counts_from_the_last_thing_waited_for():
    """In a chain every operator but the first waits for those before it: if all close later, by the first alone it is larger."""
    assert (
        votes(moved("stop-savepoint-drain-mild"))["close"]
        < votes(moved("stop-savepoint-drain-mild", close=12))["close"]
    )
    assert "close" not in votes(moved("p4-severe-aligned")), "a job that is cancelled closes nothing in order"


def test_a_recording_tells_only_what_it_shows():
    """No failure, no end, no late checkpoint: nothing is said of them, and nothing is made up for a recording without events."""
    cast = votes(read(RECORDINGS / "chain3-none-asyncflush500-aligned.json.gz"))
    silent = votes(read(RECORDINGS / "p2-severe-aligned.json.gz").model_copy(update={"events": {}}))

    assert {"trigger", "acknowledge", "first_trigger", "file", "start"} == set(cast)
    assert {"trigger", "acknowledge", "complete", "file"} == set(silent)


def test_checkpoints_that_show_something_else_do_not_vote():
    """Unaligned snapshots also write in-flight data, slow files are slow, RocksDB writes others: none says what one file costs."""
    assert "file" not in votes(read(RECORDINGS / "p4-severe-unaligned.json.gz"))
    assert "file" not in votes(read(RECORDINGS / "rocksdb-incremental-p2-aligned.json.gz"))


def test_a_trigger_that_was_not_refused_says_nothing():
    """It came when the first task ran, not the last."""
    given = read(RECORDINGS / "final-bounded-chain3.json.gz")

    assert given.checkpoints.counts["failed"] == 0
    assert "first_trigger" not in votes(given)


def test_finished_sources_do_not_vote():
    """They take part with zeros; a median over them would be one."""
    samples_ms = CONSTANTS["trigger"].samples_ms(read(RECORDINGS / "final-bounded-plus-unbounded.json.gz"))

    assert np.median(samples_ms) >= 1
