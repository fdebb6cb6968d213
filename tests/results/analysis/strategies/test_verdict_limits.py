"""Where one sentence ends and another begins: noise, shares, and who counts as the worst."""

import math
from dataclasses import replace

import pytest

from sim.results.end_of_job import Finish
from sim.results.side_by_side import Singles
from sim.results.verdict import early_end_sentence, finish_sentence, verdict
from tests.results.analysis.runs_by_hand import Made, line, saturated

EXPIRED = "CHECKPOINT_EXPIRED"


def served(records, *, ms=70):
    """A run whose sinks serve so much."""
    run = saturated(ms, 0)
    run.series = Made().load(busy=(0.1, 0.5, 0.99), records=(100, 100, records)).series
    return run


@pytest.mark.parametrize(
    ("records", "ending"),
    [
        (101.4, "throughput is the same (+1.4 %)."),
        (101.6, "throughput rises (+1.6 %)."),
        (98.4, "throughput drops (-1.6 %)."),
        (98.6, "throughput is the same (-1.4 %)."),
    ],
)
def test_throughputs_within_one_and_a_half_per_cent_are_the_same(records, ending):
    lines = [
        line("aligned", served(100, ms=5700)),
        line("unaligned", served(records)),
    ]

    assert verdict(lines).endswith(ending)


def test_a_job_that_is_over_has_no_throughput_to_compare():
    """Nor has one without any."""
    slow, fast = (
        line("aligned", served(100, ms=5700)),
        line("unaligned", served(200)),
    )
    idle = line("aligned", served(0, ms=5700))

    assert "throughput" in verdict([slow, fast])
    assert "throughput" not in verdict([slow, replace(fast, steady=False, until_s=9.0, status="FINISHED")])
    assert "throughput" not in verdict([replace(slow, steady=False, until_s=9.0, status="FINISHED"), fast])
    assert "throughput is 200/s instead of 0/s" in verdict([idle, fast])


@pytest.mark.parametrize(("fast_ms", "differs"), [(599, True), (601, False)])
def test_durations_within_a_hundred_milliseconds_are_noise(fast_ms, differs):
    text = verdict([line("a", saturated(700, 10)), line("b", saturated(fast_ms, 10))])

    assert differs == ("instead of 700 ms" in text) == ("repetitions" not in text)


@pytest.mark.parametrize(("fast_ms", "differs"), [(8990, True), (9010, False)])
def test_durations_within_a_tenth_of_the_slower_one_are_noise(fast_ms, differs):
    assert differs == (
        "repetitions" not in verdict([line("a", saturated(10_000, 10)), line("b", saturated(fast_ms, 10))])
    )


@pytest.mark.parametrize(
    ("median_ms", "longest_ms", "beginning"),
    [
        (149, 149, "Checkpoints take 149 ms: nothing holds the barriers up"),
        (151, 151, "Barriers of checkpoint"),
        (140, 299, "Checkpoints take 140 ms: nothing holds"),
        (140, 301, "Checkpoints take 140 ms in the median, the longest 301 ms: b"),
        (160, 790, "Barriers of checkpoint"),
        (160, 810, "Checkpoints take 160 ms in the median, the longest 810 ms: b"),
    ],
)
def test_a_checkpoint_of_less_than_150_ms_is_quick(median_ms, longest_ms, beginning):
    """A tail counts from twice that on, or from five times the median of one that is not quick."""
    run = saturated(median_ms, 130, times=3)
    run.checkpoint(9000, longest_ms).part("behind data", "sink", longest_ms - 10)

    assert verdict([line("aligned", run)]).startswith(beginning)


@pytest.mark.parametrize(
    ("baseline", "cost"),
    [
        (101.4, "cost no throughput"),
        (101.7, "cost 1.7 % of"),
        (98.6, "cost no throughput"),
        (98.3, "throughput is +1.7 % with checkpoints"),
    ],
)
def test_a_cost_counts_from_one_and_a_half_per_cent_on(baseline, cost):
    assert cost in verdict([line("aligned", saturated(5700, 3100), baseline_per_second=baseline)])


def test_p99_decides_where_all_have_its_sample():
    """A hundred checkpoints of each; with one fewer the longest decides."""

    def tailed(count):
        run = saturated(300, 10, times=count - 4)
        for k in range(4):
            run.checkpoint(1e6 + 1e4 * k, 6300).part("behind data", "sink", 6200)
        return line("aligned", run)

    calm = line("unaligned", saturated(310, 5, times=100))
    assert "; the p99 of unaligned is 310 ms instead of 6.3 s; " in verdict([tailed(100), calm])
    assert "; the longest of unaligned is 310 ms instead of 6.3 s; " in verdict([tailed(99), calm])


def failing(count, completed, *, reason=EXPIRED):
    run = Made()
    for k in range(count):
        run.checkpoint(1000 * k, 4000, status="FAILED", failure=reason)
    for k in range(completed):
        run.checkpoint(1e5 + 1000 * k, 90).part("sync", "sink", 80)
    return run.load(busy=(0.1, 0.5, 0.9))


def test_the_worst_is_the_one_with_the_largest_share_of_failures():
    """Two of three are worse than three of nine; a job that fails is worse than all, then one that hangs."""
    most, share = line("most", failing(3, 6)), line("share", failing(2, 1))
    hung = line("hung", Made().checkpoint(0, -1, status="IN_PROGRESS", standstill="a circle").load(busy=(0, 0, 0)))
    dead = line("dead", failing(0, 5), status="FAILED: killed", failed=True)

    assert verdict([most, share]).startswith(
        "With share 2 of 3 checkpoints expire; with most 3 of 9 checkpoints expire."
    )
    assert verdict([most, share, hung]).startswith(
        "With hung a checkpoint hangs, because tasks wait for each other: a circle"
    )
    assert verdict([most, share, hung, dead]).startswith("With dead the job fails (killed)")


@pytest.mark.parametrize(
    ("reason", "fate"),
    [
        ("Checkpoint expired before completing.", "expire."),
        ("IO trouble.", "fail (IO trouble)."),
        ("", "fail (no reason given)."),
    ],
)
def test_failures_have_their_reason(reason, fate):
    assert verdict([line("it", failing(2, 0, reason=reason))]).startswith(f"With it 2 of 2 checkpoints {fate}")


def test_each_reason_has_its_number_and_only_expiry_has_a_cause():
    """Three that expired are not five; what held them up did not make the others fail."""
    run = failing(2, 4, reason="IO_EXCEPTION")
    for k in range(3):
        run.checkpoint(5e5 + k, 4000, status="FAILED", failure=EXPIRED).part("behind data", "sink", 4000)

    assert verdict([line("it", run)]).startswith(
        "With it 3 of 9 checkpoints expire, because barriers of checkpoint 7 (it) wait"
    )
    assert verdict([line("it", run)]).endswith("(busy 90 %); 2 fail (IO_EXCEPTION).")
    assert verdict([line("it", failing(2, 0, reason="IO_EXCEPTION"))]).endswith(
        "2 of 2 checkpoints fail (IO_EXCEPTION)."
    )


def test_back_pressure_is_told_from_a_tenth_on():
    run = saturated(5700, 3100)
    for share, is_told in ((0.11, True), (0.09, False)):
        run.series = [{**row, "backPressured": share if row["vertex"] == "source" else 0.0} for row in run.series]
        sentence = verdict([line("it", run, singles=Singles(None, None, None))])

        assert sentence.startswith("Nothing was recorded of these checkpoints ('sink' busy 99 %")
        assert is_told == ("'source' back-pressured" in sentence)


def test_of_several_workloads_the_one_with_most_at_stake_is_told():
    """Failed jobs count first, then failed checkpoints, then the ratio of durations."""

    def group(name, runs, **others):
        return [line(f"{label} {name}", run, group=name, name=label, **others) for label, run in runs.items()]

    calm = group("rate 1k/s", {"a": saturated(9000, 10), "b": saturated(70, 0)})
    close = group("rate 2k/s", {"a": saturated(9000, 10), "b": saturated(8000, 10)})
    expiring = group("rate 3k/s", {"a": failing(1, 2), "b": saturated(70, 0)})
    dead = group("rate 4k/s", {"a": saturated(70, 0), "b": saturated(70, 0)}, failed=True, status="FAILED: killed")

    assert verdict([*close, *calm]).startswith("With rate 1k/s: ")
    assert verdict([*close, *expiring, *calm]).startswith("With rate 3k/s and ")
    assert verdict([*expiring, *dead, *calm]).startswith("With rate 4k/s and ")
    apart = verdict([calm[0], close[0]])
    assert not apart.startswith("With rate"), "a strategy per workload is compared across them"


def test_strategies_whose_throughputs_differ_are_named():
    """From 1.5 % on, the highest and the lowest, whatever their durations."""
    lines = [line(name, served(records)) for name, records in (("a", 100), ("b", 130), ("c", 90))]

    assert verdict(lines).endswith("; b serves 130/s, c 90/s.")
    assert verdict([lines[0], line("d", served(101.4))]).endswith("; throughput is the same (±0 %).")
    assert verdict([lines[0], line("d", served(101.6))]).endswith("; d serves 102/s, a 100/s.")


def test_who_finishes_and_who_stops_is_empty_of_jobs_that_go_on():
    rows = [line("a", saturated(70, 0)), line("b", saturated(70, 0))]

    assert "" == finish_sentence(rows) == early_end_sentence(rows)
    assert (
        early_end_sentence([replace(row, last_trigger_s=0.0) for row in rows])
        == "With a and b no checkpoint is triggered. "
    )
    repeated = [replace(row, last_trigger_s=5.0) for row in rows * 3]
    assert early_end_sentence(repeated).startswith("With 6 strategies checkpoints stop before the job does")
    assert early_end_sentence(repeated[:4]).startswith("With a, b, a and b checkpoints stop before the job does")
    assert "none is triggered after 3 s" in early_end_sentence([*repeated, replace(rows[0], last_trigger_s=3.0)])
    assert math.isnan(rows[0].last_trigger_s)


def test_the_longest_first_upload_is_named():
    """It takes 9 s under b and 4 s under a; with a single strategy it needs no name."""

    def uploading(label, ms):
        run = Made().checkpoint(0, ms, size=4e9, state=4e9).part("upload", "sink", ms)
        for k in range(1, 4):
            run.checkpoint(1000 * k, 70, size=1e6, state=4e9).part("sync", "sink", 60)
        return line(label, run.load(busy=(0, 0, 0.5)))

    text = verdict([uploading("a", 4000), uploading("b", 9000)])
    assert text.endswith(
        " Checkpoint 1 (b) uploads everything, 4 GB in 9 s: it has its own row, and everything but commits is about later ones."
    )
    assert " Checkpoint 1 uploads everything, 4 GB in 4 s: it" in verdict([uploading("a", 4000)])


def test_interrupted_checkpoints_alone_are_no_verdict():
    """They fail by no fault of their own, and none was completed: also where no first upload was."""
    run = Made().checkpoint(9000, 70, status="FAILED", failure="JOB_FAILOVER_REGION").load(busy=(0, 0, 0.5))
    interrupted = (
        "After the warm-up no checkpoint was completed: a restart or the end of the job interrupted them; run longer."
    )

    assert interrupted == verdict([line("a", run)])


def test_one_job_that_is_over_hides_the_throughput_of_all():
    lines = [line(name, served(records)) for name, records in (("a", 100), ("b", 130))]

    assert verdict(lines).endswith("b serves 130/s, a 100/s.")
    over = replace(lines[0], steady=False, until_s=9.0, status="FINISHED")
    assert "serves" not in verdict([over, lines[1]])


@pytest.mark.parametrize(
    ("early_s", "late_s", "is_later"), [(0.1, 0.199, False), (0.1, 0.201, True), (9.0, 9.99, False), (9.0, 10.01, True)]
)
def test_ends_within_a_tenth_are_the_same(early_s, late_s, is_later):
    """A tenth of a second at least, and a tenth of the later time."""

    def ending(name, at_s):
        return line(name, saturated(70, 0), finish=Finish(at_s, 0.0, 1, 1, "", 50.0, 100.0))

    assert is_later == (", and at " in finish_sentence([ending("a", early_s), ending("b", late_s)]))
