"""What commits and failures cost, pooled over replications, and how it is told."""

import math

import pandas as pd
import pytest

from sim.results.consequences import consequences, consequences_sentence, consequences_texts
from sim.results.restarts import longest_lag_after_stop

COMMITS = ["records", "visible_latency", "again", "lost_records", "commit_timestamp", "commit_latency"]
RECOVERIES = ["failed", "running", "caught_up", "replayed_records"]


def run(commits=(), recoveries=(), lags=(0.0,), completed=()):
    checkpoints = pd.DataFrame({"trigger_timestamp": completed, "status": "COMPLETED", "savepointFormat": ""})
    restarts = pd.DataFrame(recoveries, columns=RECOVERIES)
    return {
        "checkpoints": checkpoints,
        "commits": pd.DataFrame([(*row, 9_000.0, 1_000.0) for row in commits], columns=COMMITS),
        "recoveries": restarts.assign(detected=restarts["failed"], kind="task-manager", served_again=7),
        "series": pd.DataFrame({"time": range(1, len(lags) + 1), "lag": lags, "x_latency": 500.0}),
    }


def cost(*restarts, end=10_000.0, lags=(0.0,), **others):
    """What a single run costs.  `restarts`: when each failed, ran and had caught up, and what it replayed."""
    return consequences([run(recoveries=restarts, lags=lags)], [end], **others)


def test_what_sinks_process_again_is_counted_per_run():
    """Two restarts in one of two runs."""
    runs = [run(recoveries=[(1_000.0, 2_000.0, 3_000.0, 9), (5_000.0, 6_000.0, 7_000.0, 9)]), run()]

    assert consequences(runs, [10_000.0] * 2).served_again_records == 7


def test_a_job_whose_backlog_grows_never_catches_up():
    failing = run(recoveries=[(1_000.0, 3_000.0, 4_000.0, 50)])
    keeps_up, behind = (consequences([failing], [10_000.0], falls_behind=[grows]) for grows in (False, True))
    header, rows = consequences_texts({"a": keeps_up, "b": behind}, dict.fromkeys("ab", "runs on"), behind=["b"])

    assert tuple((row.caught_up_ms, row.unfinished) for row in (keeps_up, behind)) == (
        (3_000, ""),
        (9_000, "caught_up_ms"),
    )
    assert (keeps_up.disturbed_share, behind.disturbed_share) == (0.3, 0.9)
    assert [row[header.index("caught up after")] for row in rows] == ["3 s", "not in this run"]


def test_the_median_wait_is_that_of_records():
    """Two small transactions do not stand for the one with nearly all output."""
    row = consequences([run([(10, 500.0, False, 0), (980, 90_000.0, False, 0), (10, 700.0, False, 0)])], [100_000.0])

    assert row.visible_p50_ms == 90_000.0


def test_output_that_never_becomes_visible_counts_as_late():
    """What a transaction lost, and what waits for a checkpoint that does not complete: it hides no more behind the others."""
    commits = [(100, 4_000.0, False, 0)] * 3
    lost = consequences([run([*commits, (100, 4_000.0, False, 10)])], [10_000.0])
    waiting = consequences([run(commits, completed=[1_000.0])], [60_000.0])
    never = cost(end=60_000.0, committers=["committer"])

    assert (lost.lost_records, lost.unfinished) == (10, "visible_p99_ms visible_max_ms")
    assert (waiting.unfinished, waiting.visible_p50_ms) == ("visible_p99_ms visible_max_ms", 4_000.0)
    assert waiting.visible_p99_ms > 50_000
    assert (never.visible_p50_ms, never.unfinished) == (60_000.0, "visible_p50_ms visible_p99_ms visible_max_ms")


def test_every_failure_counts_also_one_shortly_before_the_end():
    """Eleven seconds for the first; the second had ten, and did not catch up: that is no recovery within eleven seconds."""
    first, second = (20_000.0, 25_000.0, 31_000.0, 50), (90_000.0, 95_000.0, -1.0, 50)
    row = cost(first, second, end=100_000.0)

    assert (row.caught_up_ms, row.downtime_ms, row.unfinished) == (10_500.0, 5_000.0, "caught_up_ms")
    assert "more than 10 s" in [
        text.replace("11 s", "10 s") for text in consequences_texts({"a": row}, {"a": ""})[1][0]
    ]


def test_a_failure_during_a_restart():
    """The job is down from the first failure until the later restart runs, and replays what both read again.

    The later one has caught up when the backlog is as small as usual, also for the first.
    """
    first, second = (20_000.0, -1.0, -1.0, 50), (24_000.0, 30_000.0, 40_000.0, 50)
    row = cost(first, second, end=100_000.0)

    assert (row.failures, row.downtime_ms, row.replayed_records) == (2, 10_000.0, 100)
    assert (row.caught_up_ms, row.unfinished) == (20_000.0, "")


def test_tasks_that_fail_at_the_same_instant_are_one_failure():
    """One restart serves all of them."""
    recoveries = [*[(20_000.0, -1.0, -1.0, 0)] * 3, (20_000.0, 30_000.0, 40_000.0, 50)]
    row = cost(*recoveries, end=100_000.0)

    assert (row.failures, row.downtime_ms, row.replayed_records) == (1, 10_000.0, 50)


@pytest.mark.parametrize(
    "restarts",
    [
        # the second failure comes just before the end: what it will replay is not known, and is not 0
        [(20_000.0, 25_000.0, 31_000.0, 15_000), (99_000.0, -1.0, -1.0, 0)],
        # the job ran again with the second restart, and the first replayed nothing of its own
        [(20_000.0, -1.0, -1.0, 0), (24_000.0, 30_000.0, 40_000.0, 15_000)],
    ],
    ids=["never ran", "taken over"],
)
def test_a_restart_without_a_replay_of_its_own_hides_none(restarts):
    assert cost(*restarts, end=100_000.0).replayed_records == 15_000


def test_where_nothing_happens_nothing_is_claimed():
    row = cost(end=1_000.0)

    assert row.nothing_happened
    assert all(
        math.isnan(value) for value in (row.visible_p50_ms, row.downtime_ms, row.replayed_records, row.disturbed_share)
    )


def test_columns_are_those_that_say_something():
    """Commits without failures, failures without commits, and a failure the run is too short to recover from."""
    committing = consequences([run([(12_345, 4_000.0, False, 0)])], [1.0])
    failing = cost((1_000.0, 3_000.0, -1.0, 50), lags=[0.5, 3.5])

    header, rows = consequences_texts({"a": committing}, {"a": "runs on"})

    assert header == ["strategy", "job", "commits", "committed", "visible p50", "visible max"]
    assert rows == [["a", "runs on", "1", "12.3k", "4 s", "4 s"]]
    assert consequences_texts({"b": failing}, {"b": "runs on"})[1] == [
        ["b", "runs on", "1", "2 s", "50", "more than 9 s", "3.5 s", "90 %"]
    ]


def test_a_percentile_of_commits_needs_a_hundred_of_them():
    """Replications are pooled."""
    commits = [(1, 1_000.0 + k, False, 0) for k in range(50)]
    row = consequences([run(commits), run(commits)], [1.0, 1.0])

    assert "visible p99" not in consequences_texts({"a": row}, {"a": "runs on"})[0]
    header, rows = consequences_texts({"a": row}, {"a": "runs on"}, {"a": 2})
    assert header[4:] == ["visible p50", "visible p99", "visible max"]
    assert rows[0][2] == "50"


def test_the_sentence_sets_the_worst_beside_the_best():
    """Only where failures cost differently, and only between strategies that met any."""
    slow = cost((1_000.0, 3_000.0, 9_000.0, 5_000), lags=[7.0])
    quick = cost((1_000.0, 3_000.0, 4_000.0, 50), lags=[2.0])
    calm = cost()

    assert consequences_sentence({"a": slow, "b": quick, "c": calm}) == (
        "After a failure a replays 5000 records, lags by up to 7 s and is disturbed 80 % of the time; "
        "b replays 50 records, lags by up to 2 s and is disturbed 30 % of the time."
    )
    assert (
        consequences_sentence({"a": slow, "b": slow})
        == "Downtime and replay after a failure are the same with all of them."
    )
    assert consequences_sentence({"a": slow, "c": calm}) == ""


def test_who_is_disturbed_a_little_less_may_replay_more():
    """5.1 s and 5 s of 10 s are the same; 100 and 150 records are not."""
    longer, more = (cost((1_000.0, 3_000.0, up, records)) for up, records in ((6_100.0, 100), (6_000.0, 150)))

    assert "a replays 150 records" in consequences_sentence({"b": longer, "a": more})


@pytest.mark.parametrize(
    ("caught_up", "replayed", "is_same"),
    [(6_000.0, 109, True), (6_000.0, 111, False), (6_500.0, 100, True), (6_700.0, 100, False), (6_700.0, 109, False)],
)
def test_what_counts_as_the_same_cost(caught_up, replayed, is_same):
    """5 s of 10 s disturbed and 100 records: less than a tenth more records, and less than a tenth and a hundredth more time."""
    base, other = (cost((1_000.0, 3_000.0, up, records)) for up, records in ((6_000.0, 100), (caught_up, replayed)))

    assert is_same == (
        consequences_sentence({"a": base, "b": other})
        == "Downtime and replay after a failure are the same with all of them."
    )


def test_costs_that_a_bound_hides_are_not_called_the_same():
    """Neither has caught up at the end; nor are downtimes of 1 s and 3 s the same."""
    late = cost((1_000.0, 3_000.0, -1.0, 50))
    quick, slow = (cost((1_000.0, up, 9_000.0, 50)) for up in (2_000.0, 4_000.0))

    assert consequences_sentence({"a": late, "b": late}) == ""
    assert consequences_sentence({"a": quick, "b": slow}) == ""


def test_a_deployment_that_fails_is_no_further_failure():
    """A job that ends while it waits to run again has one failure; one that ran again and fails then has two."""
    waits, ran = (cost((1e3, up_ms, -1.0, 50), end=33e3, failed_jobs=[True]) for up_ms in (-1.0, 3e3))

    assert [row.failures for row in (waits, ran, cost(end=33e3, failed_jobs=[True]))] == [1, 2, 1]


def test_a_dead_job_has_no_lag():
    """Nothing of it was behind while it lived; a run that died is not compared by what failures cost."""
    dead, back = (
        cost(end=33_000.0, failed_jobs=[True]),
        cost((1e3, 3e3, 9e3, 50)),
    )
    header, rows = consequences_texts({"none": dead, "fixed": back}, {"none": "failed at 33 s", "fixed": "runs on"})

    assert math.isnan(dead.lag_s)
    assert rows[0][header.index("downtime") :] == ["for good", "-", "never", "failed at 33 s", "-"]
    assert consequences_sentence({"a": cost((1e3, 3e3, 9e3, 50), failed_jobs=[True]), "b": back}) == ""


@pytest.mark.parametrize(("slower_ms", "is_same"), [(1_110.0, True), (1_112.0, False)])
def test_downtimes_are_alike_up_to_a_tenth_of_the_longer_one(slower_ms, is_same):
    """1000 ms beside them, so a tenth is more than 100 ms."""
    quick, slow = (cost((1_000.0, 1_000 + ms, 9_000.0, 50)) for ms in (1_000.0, slower_ms))

    assert is_same == (
        consequences_sentence({"a": quick, "b": slow})
        == "Downtime and replay after a failure are the same with all of them."
    )


def test_one_bound_hides_the_cost():
    """Also where the others have caught up after the same time."""
    open_one = cost((1_000.0, 3_000.0, -1.0, 50), end=9_000.0)
    closed = cost((1_000.0, 3_000.0, 9_000.0, 50), end=9_000.0)

    assert consequences_sentence({"a": open_one, "b": closed}) == ""


def test_sums_are_means_per_run():
    """Two runs commit 100 and 300 records, and lose 6 of them; each restarts once on the mean."""
    runs = [
        run(
            [(100, 4_000.0, False, 6)],
            recoveries=[(at, at + 2_000.0, at + 4_000.0, 50) for at in (1_000.0, 9_000.0)],
        ),
        run([(150, 4_000.0, False, 0), (150, 4_000.0, False, 0)]),
    ]
    row = consequences(runs, [20_000.0, 30_000.0])

    assert (row.commits, row.committed_records, row.lost_records, row.restarts, row.ended_s) == (
        1.5,
        200.0,
        3.0,
        1.0,
        25.0,
    )
    assert pytest.approx(row.disturbed_share) == 8_000 / 50_000


def test_a_restart_at_the_very_beginning_is_one():
    first, second = (0.0, 0.0, 0.0, 10), (99_000.0, -1.0, -1.0, 0)
    row = cost(first, second, end=100_000.0)

    assert (row.replayed_records, row.downtime_ms, row.caught_up_ms) == (10.0, 500.0, 500.0)


def test_what_is_for_good_and_what_only_did_not_happen():
    """A job that died after a restart has a downtime, one that died at once is down for good, a calm one was never down.

    The failure that ends a job has no restart, and counts too.
    """
    back = (1_000.0, 3_000.0, 9_000.0, 50)
    rows = [
        cost(back, failed_jobs=[True]),
        cost(failed_jobs=[True]),
        cost(),
    ]
    header, cells = consequences_texts(dict(zip("abc", rows, strict=True)), {"a": "died", "b": "dead", "c": "runs"})
    found = [dict(zip(header, row, strict=True)) for row in cells]

    assert [tuple(row[name] for name in ("failures", "downtime", "caught up after")) for row in found] == [
        ("2", "2 s", "8 s"),
        ("1", "for good", "never"),
        ("0", "-", "-"),
    ]
    assert [row["largest lag"] for row in found] == ["died", "dead", "-"]
    assert "lost" not in header


def test_a_job_without_committers_has_its_output_at_once():
    """Beside one that commits; what is lost has a column where anything is."""
    commits, none = consequences([run([(100, 4_000.0, False, 7)])], [1e4]), cost()
    header, cells = consequences_texts({"a": commits, "b": none}, dict.fromkeys("ab", ""), at_once=["b"])
    found = [dict(zip(header, row, strict=True)) for row in cells]

    assert [tuple(row[name] for name in ("commits", "committed", "visible p50", "lost")) for row in found] == [
        ("1", "100", "4 s", "7"),
        ("0", "0", "at once", "0"),
    ]


def test_a_record_due_when_the_job_stops_leaves_between_two_samples():
    """At 103 s the source has read up to 94 s, at 104 s up to 100.5 s: the record of 95 s leaves at 103.15 s."""
    rows = [(94, 0.0), (96, 1.0), (103, 9.0), (104, 3.5), (105, 0.0)]
    run = {
        "series": pd.DataFrame([("s", *row) for row in rows], columns=["vertex", "time", "lag"]),
        "recoveries": pd.DataFrame({"failed": [95_000.0]}),
    }
    assert longest_lag_after_stop(run) == pytest.approx(8.154, abs=1e-3)
    assert math.isnan(longest_lag_after_stop({**run, "recoveries": pd.DataFrame({"failed": [106_000.0]})}))
