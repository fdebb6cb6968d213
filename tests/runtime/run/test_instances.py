"""Chains of job instances: each begins from a snapshot of the one before it, under each claim mode."""

import pytest

from sim.model.scenario import Action
from sim.model.storage import Directories
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import SECOND
from tests.runtime.job_chains import jobs


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

    assert result.job_status == "FAILED: job 1 cannot begin: no savepoint of job 0 was completed"
