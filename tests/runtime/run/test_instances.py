"""Chains of job instances: where one ends and the next begins, under each claim mode, and at another parallelism."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.faults import JobManagerDown, Kill, Rescale, Restart
from sim.model.job import Job, Rate, Source
from sim.model.scenario import Action
from sim.model.storage import Directories
from sim.results.journal import EventType
from sim.runtime.result import segments
from sim.runtime.simulate import Chain, simulate
from tests.invariants.jobs.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, fault_at, scenario
from tests.runtime.job_chains import jobs

# Chains of job instances: each begins from a snapshot of the one before it, under each claim mode.


@pytest.fixture(scope="module")
def results():
    return {claim: simulate(jobs(claim)) for claim in ("claim", "no-claim", "legacy")}


@pytest.mark.parametrize("claim", ["claim", "no-claim", "legacy"])
def test_a_chain_goes_on_where_it_was(results, claim):
    """Ids, records and time go on; nothing is served twice or never."""
    result = results[claim]
    restores, checkpoints = result.restores, result.checkpoints

    assert result.violations == ()
    assert result.job_status == "RUNNING"
    assert list(restores["begun"]) == [3000.0, 6000.0]
    assert list(restores["restored_id"] + 1) == list(restores["first_id"])
    assert sorted(checkpoints["x_job"].unique()) == [0, 1, 2]
    assert list(result.recoveries["kind"]) == ["instance"] * 2
    assert result.recoveries["replayed_records"].gt(0).all()


def test_claim_builds_on_what_it_claims_and_deletes_the_rest(results):
    """One snapshot is left, with files of job 0 in it, which nobody else keeps."""
    (row,) = results["claim"].snapshots.to_dict("records")

    assert (row["job"], row["restorable"]) == (2, True)
    assert row["owners"].startswith("0 ")
    assert row["chain_length"] >= 1
    files = results["claim"].files
    there = files[files["deleted"] < 0]
    assert row["files_total"] == len(there) - len(unfinished(results["claim"]))


def unfinished(result):
    """Files of the checkpoint under way at the end."""
    files = result.files[result.files["deleted"] < 0]
    newest = result.checkpoints.loc[result.checkpoints["status"] == "IN_PROGRESS", "id"]
    return files[files["checkpoint"].isin(newest) & (files["owner"] == 2)]


def test_no_claim_writes_everything_once_and_is_free(results):
    """The first checkpoint is full; then the old snapshot may go, which breaks nothing; no file crosses a job's directory."""
    restores, snapshots = results["no-claim"].restores, results["no-claim"].snapshots

    assert list(restores["first_type"]) == ["full", "full"]
    assert (restores["bytes_reuploaded_first_full"] > 2_000_000).all()
    assert restores["deletable"].all()
    assert (restores["time_until_old_snapshot_deletable"] > restores["first_full_duration"]).all()
    assert list(snapshots["job"]) == [0, 1, 2]
    assert list(snapshots["files_outside_job_dir"]) == [0, 0, 0]
    assert list(snapshots["would_break"]) == ["", "", ""]


def test_legacy_builds_on_files_nobody_owns(results):
    """Nothing is written again and nothing is deleted: the old snapshots stay, and stay needed."""
    restores, snapshots = results["legacy"].restores, results["legacy"].snapshots

    assert list(restores["first_type"]) == ["checkpoint", "checkpoint"]
    assert not restores["deletable"].any()
    assert snapshots["restorable"].all()
    first, *_, last = snapshots.to_dict("records")
    assert f"{last['job']}/{last['id']}" in first["would_break"].split()
    kept = {claim: int((result.files["deleted"] < 0).sum()) for claim, result in results.items()}
    assert kept["claim"] < kept["legacy"]


def test_claim_writes_less_than_no_claim(results):
    """The price of independence is one full checkpoint per job."""
    written = {claim: int(result.checkpoints["checkpointed_size"].sum()) for claim, result in results.items()}

    assert written["claim"] == written["legacy"]
    assert written["claim"] + 1_000_000 < written["no-claim"]


@pytest.mark.parametrize(
    ("paths", "copied", "ends"),
    [
        ("absolute", "own", "FAILED"),
        ("absolute", "job", "FAILED"),
        ("relative-to-metadata", "own", "FAILED"),
        ("relative-to-metadata", "job", "RUNNING"),
        ("relative-to-job", "job", "RUNNING"),
        ("relative-to-metadata", "root", "RUNNING"),
    ],
)
def test_a_lost_cluster(paths, copied, ends):
    """A job begins from a copy only if the copy brings along what the metadata names."""
    result = simulate(jobs("no-claim", count=2, seconds=4, directories=Directories(paths), copied=copied))

    assert ends == result.job_status.partition(":")[0]
    assert (1 if ends == "RUNNING" else 0) == len(result.restores)
    assert ("names files that a copy of" in result.job_status) == (ends == "FAILED")


@pytest.mark.parametrize(("format_", "first"), [("native", "checkpoint"), ("canonical", "checkpoint")])
def test_a_chain_of_savepoints(format_, first):
    """Self-contained, the user's to keep: claimed, a native one is built upon, a canonical one cannot be."""
    actions = (Action(SECOND // 5, format_),)
    result = simulate(jobs("claim", count=2, seconds=8, actions=actions, start_from="savepoint"))
    (restored,) = result.restores.to_dict("records")

    assert result.violations == ()
    assert (format_, first) == (restored["restored_type"], restored["first_type"])
    if format_ == "native":
        assert restored["first_checkpointed_size"] < 1_500_000
    else:
        assert restored["first_checkpointed_size"] > 1_500_000


def test_a_savepoint_is_moved_by_copying_it():
    """Whatever the paths."""
    actions = (Action(SECOND, "native"),)
    result = simulate(jobs("no-claim", count=2, seconds=4, actions=actions, start_from="savepoint", copied="own"))

    assert result.job_status == "RUNNING"
    assert result.snapshots.loc[result.snapshots["type"] == "native", "relocatable_own_dir"].all()


def test_nothing_to_begin_from():
    """A chain ends where no snapshot is; it says so."""
    result = simulate(jobs(count=2, seconds=4, start_from="savepoint"))

    assert result.job_status == "FAILED: job 1 cannot start: no savepoint of job 0 was completed"


# Where one job instance ends and the next begins: without a JobManager, with captured output, and what the tables say of it.


RESCALED_NS = 3 * SECOND


def rescaled(kind=ALIGNED, *, seconds=6, down_ms=None, sink_ns=2 * MS, **options):
    """The sink gets a third subtask at 3 s; `down_ms`: from 2.9 s on there is no JobManager for so long."""
    base = scenario(chain(2, rate=100, sink_ns=sink_ns), kind, seconds=seconds, interval_ms=400, **options)
    faults = () if down_ms is None else (fault_at(JobManagerDown(down_ms * MS), 2900),)
    return replace(
        base,
        restart=Restart("fixed-delay", delay_ns=10 * MS),
        faults=faults,
        rescale=(Rescale(RESCALED_NS, (("sink", 3),)),),
    )


def rescaled_ns(result):
    return [row.time_ns for row in result.journal if row.event_type is EventType.RESCALED]


@pytest.mark.parametrize(("down_ms", "at_ns"), [(None, RESCALED_NS), (50, RESCALED_NS), (1500, 4400 * MS)])
def test_a_rescale_waits_for_a_job_manager(down_ms, at_ns):
    result = simulate(rescaled(down_ms=down_ms))

    assert [at_ns] == rescaled_ns(result)
    assert [len(rows) for _, rows in result.tasks[result.tasks["vertex"] == "sink"].groupby("x_job")] == [2, 3]
    assert (result.job_status, result.violations) == ("RUNNING", ())


def test_without_a_job_manager_to_the_end_nothing_is_rescaled():
    result = simulate(rescaled(seconds=4, down_ms=1500))

    assert rescaled_ns(result) == []
    assert result.job_status == "FAILED: job 1 cannot start: since 3 s there has been no JobManager to rescale it"
    assert result.ended_ns == 4 * SECOND


@pytest.mark.parametrize("on_downstream", [False, True])
def test_captured_output_is_read_by_its_writers_or_by_its_readers(on_downstream):
    """A slow sink: there is captured output of the stage, which is rescaled with its readers."""
    ran = Chain(
        rescaled(UNALIGNED, sink_ns=12 * MS, recover_output_on_downstream=on_downstream), "compiled", check=True
    )
    ran.run()
    job = ran.instances[1]
    overtaken = {job.names[task][0]: int(part.position.overtaken.sum()) for task, part in job.beginning.parts.items()}

    assert job.violations() == ()
    assert (overtaken["source"] + overtaken["stage0"] == 0) == on_downstream


# Rescaling: the job goes on with another parallelism from a checkpoint or a savepoint, and serves every record once.


LOG = Source((Rate(0, Fraction(100)),), 500)  # 5 s of records
LARGER = (("stage0", 3), ("sink", 4))


def rescaling(kind, *, savepoint=False, faults=(), log=LOG, actions=()):
    """At 3 s, while a slow sink keeps the queues full."""
    job = chain(2, sink_ns=12 * MS, rate=100)
    job = Job(tuple(replace(vertex, source=log) if vertex.source else vertex for vertex in job.vertices))
    base = replace(
        scenario(job, kind, seconds=24, interval_ms=400),
        restart=Restart("fixed-delay", delay_ns=300 * MS),
        faults=faults,
        rescale=(Rescale(3 * SECOND, LARGER, savepoint=savepoint),),
        actions=actions,
    )
    return simulate(base)


def begun(result):
    return result.recoveries[result.recoveries["kind"] == "rescale"].iloc[0]


def test_an_action_at_the_moment_of_a_rescale_is_one_of_the_new_job():
    actions = tuple(Action(at_s * SECOND) for at_s in (2, 3, 4))
    parts = segments(
        replace(scenario(chain(2), ALIGNED, seconds=9), actions=actions, rescale=(Rescale(3 * SECOND, LARGER),))
    )

    assert [[action.at_ns // SECOND for action in segment.scenario.actions] for segment in parts] == [[2], [3, 4]]


KILLED_WHILE_STOPPING = (fault_at(Kill("sink", 1), 3200),)
SAVEPOINT_BEFORE = (Action(1 * SECOND),)


def test_a_stop_that_fails_is_requested_again():
    """A kill aborts its savepoint.  The job restarts, runs on, and is rescaled from the next one: not from an older savepoint."""
    log = Source((Rate(0, Fraction(100)),), 1500)
    result = rescaling(ALIGNED, savepoint=True, faults=KILLED_WHILE_STOPPING, actions=SAVEPOINT_BEFORE, log=log)
    stops = result.checkpoints[result.checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"]

    assert result.violations == ()
    assert result.job_status == "FINISHED"
    assert stops["status"].tolist() == ["FAILED", "COMPLETED"]
    assert [int(trigger) for trigger in stops["trigger_timestamp"]] == [3000, 13_000]
    assert begun(result)["restored_checkpoint"] == stops["id"].iloc[1]


def test_a_job_whose_stop_failed_and_that_ends_by_itself_is_not_rescaled():
    """An older savepoint is no place to begin from: what came after it has been committed."""
    result = rescaling(ALIGNED, savepoint=True, faults=KILLED_WHILE_STOPPING, actions=SAVEPOINT_BEFORE)

    assert result.job_status == "FINISHED"
    assert result.recoveries["kind"].tolist() == ["task"]


@pytest.mark.parametrize(("seconds", "stopped"), [(3.1, False), (6, True)])
def test_a_rescale_that_never_comes_is_told(seconds, stopped):
    """Full queues keep the barrier of its savepoint, and the run is over; with time left the job is rescaled."""
    base = scenario(chain(2, rate=100, sink_ns=12 * MS), ALIGNED, seconds=seconds, interval_ms=400)
    result = simulate(replace(base, rescale=(Rescale(3 * SECOND, (("sink", 3),), savepoint=True),)))
    status = (
        "FAILED: job 1 cannot start: the savepoint of 3 s that job 0 stops with was not complete at the end of the run"
    )

    assert ("RUNNING" if stopped else status) == result.job_status
