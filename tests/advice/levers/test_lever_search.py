"""Levers are pulled where no barriers and no interval keep the limits: on a job that is not simulated but made up."""

import pytest

from sim.advice.texts import excluded_sentences
from sim.advice.trials import CONFIRM_SHARE, LEVER_SHARE, LONG, REPEAT_SHARE
from tests.advice.made_up import MadeUp, searched

JOB = """\
# A job with state on the heap.
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 1 GB}}
checkpoint: {interval: 30 s}
storage: {bandwidth: 10 MB/s}
run: {duration: 3 s}
"""


class Uploading(MadeUp):
    """Most of each checkpoint is upload of state."""

    def row(self, axes, k, more_ms):
        row = super().row(axes, k, more_ms)
        ms = row["end_to_end_p50_ms"]
        return row | {
            "tail_upload_ms": 0.9 * ms,
            "tail_queue_ms": 0.1 * ms,
            "busiest_subtask_share": 0.2,
            "bottleneck": "sink",
        }


def test_a_lever_is_tried_where_limits_are_kept_with_too_little_room(job):
    """Nothing breaks the limit: what takes time is told by the limit that has little room."""
    slow = dict.fromkeys(("aligned", "unaligned"), 950.0) | {"aligned, RocksDB incremental": 500.0}
    found = searched(job, Uploading(slow), checkpoint_ms=1000)

    assert found.chosen.protocol == "aligned, RocksDB incremental"
    assert found.has_margin


def test_the_lever_that_helps_is_chosen(job):
    """RocksDB, with what it changes; today's barriers suffice with it, so they stay."""
    slow = {
        "aligned": 9000.0,
        "unaligned": 8000.0,
        "unaligned, RocksDB incremental": 500.0,
        "aligned, RocksDB incremental": 600.0,
    }
    found = searched(job, Uploading(slow), checkpoint_ms=1000)

    assert found.chosen.protocol == "aligned, RocksDB incremental"
    assert [change.name for change in found.candidate_of(found.chosen.name).changes] == ["RocksDB incremental"]
    assert found.candidate_of(found.chosen.name).point["job.sink.state.backend"] == "rocksdb"


def test_levers_stand_on_top_of_each_other(job):
    """One is not enough: the next one is tried on top of the best so far, and what is not needed is taken away again."""
    slow = {
        "aligned": 9000.0,
        "aligned, RocksDB incremental": 2000.0,
        "aligned, changelog": 5000.0,
        "aligned, RocksDB incremental, changelog": 500.0,
    }
    found = searched(job, Uploading(slow), checkpoint_ms=1000)

    assert found.chosen.protocol == "aligned, RocksDB incremental, changelog"
    assert [change.name for change in found.candidate_of(found.chosen.name).changes] == [
        "RocksDB incremental",
        "changelog",
    ]


def test_levers_that_help_nobody_end_the_search(job):
    slow = {"aligned": 9000.0, "aligned, RocksDB incremental": 8900.0}
    found = searched(job, Uploading(slow), checkpoint_ms=1000)

    assert found.chosen is None
    assert max(len(own.changes) for own in found.runs) == 1


@pytest.mark.parametrize(("connector", "protocol"), [("iceberg-v1", None), ("iceberg-v2", "unaligned")])
def test_a_sink_that_loses_records_is_never_overtaken(job, connector, protocol):
    """Unaligned would keep the limit; in front of Iceberg's FlinkSink it is not even tried."""
    job.write_text(JOB.replace("service: 1 ms", f"service: 1 ms, connector: {connector}"))
    found = searched(job, Uploading({"aligned": 9000.0, "unaligned": 100.0}), checkpoint_ms=1000)

    assert protocol == (found.chosen and found.chosen.protocol)
    assert (protocol is not None) == any("unaligned" in name for _, name in found.trials)


class OfLongRuns(Uploading):
    """Long runs show checkpoints that short ones do not, under one lever."""

    def row(self, axes, k, more_ms):
        row = super().row(axes, k, more_ms)
        slow = axes["trial"] == LONG and "RocksDB" in axes["protocol"]
        return row | ({"end_to_end_max_ms": 1100.0} if slow else {})


def test_other_levers_are_tried_in_place_of_one_that_long_runs_reject(job):
    """The first lever keeps the limit in short runs, and breaks it in long ones; the second one keeps it in both."""
    slow = {"aligned": 9000.0, "aligned, RocksDB incremental": 500.0, "aligned, changelog": 510.0}
    found = searched(job, OfLongRuns(slow), checkpoint_ms=1000)

    assert found.chosen.protocol == "aligned, changelog"
    assert found.has_margin
    assert {"checkpoint_ms"} == {
        limit for own in found.settings if "RocksDB" in own.protocol and own.ran_long for limit in own.breaks
    }


class TogetherOnly(Uploading):
    """RocksDB keeps the limit in short runs only, unless another lever is pulled as well."""

    def row(self, axes, k, more_ms):
        row = super().row(axes, k, more_ms)
        return row | (
            {"end_to_end_max_ms": 1100.0}
            if axes["trial"] == LONG and axes["protocol"].endswith("RocksDB incremental")
            else {}
        )


ALONE = {"aligned": 9000.0, "aligned, RocksDB incremental": 500.0, "aligned, changelog": 5000.0}


def test_where_no_lever_takes_the_place_of_the_last_one_another_stands_on_top(job):
    slow = ALONE | {"aligned, RocksDB incremental, changelog": 400.0}
    found = searched(job, TogetherOnly(slow), checkpoint_ms=1000)

    assert found.chosen.protocol == "aligned, RocksDB incremental, changelog"
    assert found.has_margin


def left_out(search, text):
    return [sentence for sentence in search.skipped_sentences if text in sentence]


def test_a_lever_that_no_budget_covers_ends_the_search(job):
    """It is named with those that would have followed, and counts as tried nowhere."""
    run = Uploading(
        {"aligned": 9000.0}, affords=lambda _scenarios, share: share not in (LEVER_SHARE, REPEAT_SHARE, CONFIRM_SHARE)
    )
    found = searched(job, run, checkpoint_ms=1000)

    assert len(left_out(found, "and further ones: more work than the budget leaves")) == 1
    assert not any(own.changes for own in found.runs)


def test_what_was_kept_for_later_stages_is_spent_on_levers_in_the_end(job):
    """No long run was needed; what the first round left out is not said to be left out."""
    run = Uploading(
        {"aligned": 9000.0, "aligned, changelog": 500.0}, affords=lambda _scenarios, share: share != LEVER_SHARE
    )
    found = searched(job, run, checkpoint_ms=1000)

    assert found.chosen.protocol == "aligned, changelog"
    assert not left_out(found, "lever")


def test_a_budget_that_ends_after_a_long_run_is_named(job):
    """Nothing takes the place of the lever that the long run rejects."""
    run = TogetherOnly(ALONE)
    run.affords = lambda _scenarios, share: (
        share not in (LEVER_SHARE, REPEAT_SHARE, CONFIRM_SHARE) or {1} == set(run.replications.values())
    )
    found = searched(job, run, checkpoint_ms=1000)

    assert found.chosen is None
    assert left_out(found, "and further ones")


class WithRareSlowFiles(Uploading):
    """Long runs of everything that writes state in full show a checkpoint of 16 s; short runs show none."""

    def __init__(self, **options):
        super().__init__({"aligned, RocksDB incremental": 90.0, "aligned, changelog": 90.0}, **options)
        self.ran_long = []

    def row(self, axes, k, more_ms):
        row = super().row(axes, k, more_ms)
        if axes["protocol"] not in self.duration:
            row |= dict.fromkeys(("end_to_end_p50_ms", "end_to_end_p90_ms", "end_to_end_p99_ms"), 500.0)
            row["end_to_end_max_ms"] = 500.0
        if axes["trial"] == LONG and k == 0:
            self.ran_long.append(axes["protocol"])
            row |= {} if "changelog" in axes["protocol"] else {"end_to_end_max_ms": 16_000.0}
        return row


def test_levers_are_judged_by_long_runs_once_one_shows_a_rare_slow_checkpoint(job):
    """All barriers keep 5 s in short runs.  One interval of each is enough to tell that they do not in long ones."""
    run = WithRareSlowFiles()
    found = searched(job, run, checkpoint_ms=5000)

    assert found.chosen.protocol == "aligned, changelog"
    assert found.chosen.ran_long
    rejected = [protocol for protocol in run.ran_long if "changelog" not in protocol]
    assert len(rejected) == len(set(rejected)), rejected
    assert found.has_unseen_tail(next(own.name for own in found.settings if not own.ran_long))


def test_a_short_run_is_not_advised_where_long_ones_break_the_limit(job):
    """The budget has no room for more than one long run."""
    run = WithRareSlowFiles()
    run.affords = lambda scenarios, _share: not run.ran_long or ("trial", LONG) not in scenarios[0].axes
    found = searched(job, run, checkpoint_ms=5000)

    assert len(run.ran_long) == 1
    assert found.chosen is None
    (sentence,) = excluded_sentences(found)
    assert sentence.startswith("With aligned, every ")
    assert "the longest of 100 checkpoints (16 s) exceeds the limit. " in sentence
