"""Where one sentence ends and another begins: noise, shares, and who counts as the worst."""

import math
from dataclasses import replace

import pytest

from sim.results.end_of_job import Finish
from sim.results.rates import KeepingUp
from sim.results.side_by_side import Singles
from sim.results.verdict import early_end_sentence, finish_sentence, overload_sentence, verdict
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


# One sentence, from the numbers: each case that a user can meet.


def test_a_skewed_input_decides():
    """Alignment, not start delay: the vertex that waits is named, and the input that is behind."""
    run = (
        Made()
        .checkpoint(0, 4300)
        .part("behind data", "map", 20)
        .part("alignment", "map", 4200, upstream="source[1]")
        .part("behind data", "sink", 40)
    )
    run.load(busy=(0.1, 0.5, 0.99), waiting=(0.9, 0, 0))

    text = verdict([line("aligned", run), line("unaligned", saturated(70, 0, persisted=5))])

    assert text.startswith(
        "In checkpoint 1 (aligned) 'map' waits 4.2 s from its first to its last barrier, which comes from source[1] ('sink' busy 99 %, "
    )
    again = Made().checkpoint(0, 4300).part("alignment", "map", 4200, upstream="source[1]")
    again.load(busy=(0.1, 0.99, 0.5), waiting=(0.9, 0, 0))
    assert "which comes from source[1] ('map' busy 99 %" in verdict([line("aligned", again)])


def test_even_unaligned_barriers_can_wait():
    """A task thread that is held up lets nothing overtake."""
    text = verdict([line("unaligned", saturated(2100, 2000, persisted=9))])

    assert text.startswith(
        "Even barriers that overtake data, as in checkpoint 1, wait 2 s for the task thread of 'sink'"
    )


def waiting_for(part, *, before=None):
    """The verdict about checkpoints that spend most of their time on a part."""
    run = Made()
    for ms in [before] * 9 if before else []:
        run.checkpoint(0, ms).part("upload", "sink", ms)
    run.checkpoint(0, 1600).part("trigger", "", 3).part(part, "sink", 1440)
    return verdict([line("it", run.load(busy=(0.1, 0.2, 0.3)))])


def test_each_other_wait_has_words_of_its_own():
    """The scenarios of `tests/claims` have the others."""
    assert waiting_for("channel state").startswith(
        "Writing in-flight data of 'sink' takes 1.4 s of the 1.6 s of checkpoint 1"
    )
    assert waiting_for("file before barrier").startswith(
        "Work before the barrier takes 1.4 s of the 1.6 s of checkpoint 1"
    )


def test_a_quick_median_does_not_hide_a_slow_tail():
    """Nothing holds most barriers up; what holds up the others is said."""
    text = waiting_for("async work", before=60)

    assert text.startswith(
        "Checkpoints take 60 ms in the median, the longest 1.6 s: asynchronous work of 'sink' takes 1.4 s of the 1.6 s of checkpoint 10"
    )
    upload = waiting_for("upload", before=60)
    assert upload.startswith("Checkpoints take 60 ms in the median, the longest 1.6 s: writing 1 kB takes 1.4 s")


CIRCLE = "'sink' reads no more from 'map' until the barrier of 'source' comes, and 'source' cannot send it"


def test_a_job_that_restarts_for_ever_because_its_checkpoints_hang():
    """The reason of the restarts alone does not help."""
    hung = (
        Made().checkpoint(0, 100, status="FAILED", failure="CHECKPOINT_EXPIRED", standstill=CIRCLE).load(busy=(0, 0, 0))
    )

    assert (f"With unaligned the job restarts forever: 9 times in a row; take aligned barriers; {CIRCLE}.") == verdict(
        [line("unaligned", hung, status="RESTARTING FOR EVER: 9 times in a row; take aligned barriers")]
    )


@pytest.mark.parametrize(
    ("restored", "expected"),
    [
        ((0,), "the job restarts once, from the beginning, as a checkpoint fails (checkpoint.tolerable-failed)"),
        ((0, 0), "the job restarts 2 times, from the beginning, as"),
        ((0, 3), "the job restarts 2 times, 1 of them from the beginning, as"),
        ((3,), "the job restarts once, as"),
    ],
)
def test_failed_checkpoints_that_restart_the_job(restored, expected):
    stuck = Made().checkpoint(0, 4000, status="FAILED", failure="Checkpoint expired before completing.")
    stuck.load(busy=(0.1, 0.5, 0.99)).restart(cause="task manager 0 lost")
    assert "restarts" not in verdict([line("aligned", stuck)])

    for checkpoint in restored:
        stuck.restart(restored=checkpoint)

    assert f"checkpoints expire; {expected}" in verdict([line("aligned", stuck)])


def test_a_job_that_restarts_for_ever():
    """What the run said of it, and who does better."""
    stuck = Made().checkpoint(0, 4000, status="FAILED", failure="").load(busy=(0.1, 0.5, 0.99))
    lines = [
        line("aligned", stuck, status="RESTARTING FOR EVER: 9 times in a row"),
        line("unaligned", saturated(70, 0)),
    ]

    assert verdict(lines) == "With aligned the job restarts forever: 9 times in a row; with unaligned it does not."


def test_savepoints_are_named_in_a_cost_and_never_free():
    """What is not served during a savepoint is served after it."""
    own = {cost: line("aligned", saturated(5700, 3100), baseline_per_second=cost) for cost in (100.0, 110.0)}
    free, dear = (verdict([replace(row, has_savepoints=True)]) for row in own.values())

    assert "throughput" not in free
    assert dear.endswith("; checkpoints and savepoints cost 9.1 % of throughput.")


def test_a_workload_and_a_strategy_are_named_together():
    """A job that restarts forever under one of two loads."""
    stuck = Made().checkpoint(0, 4000, status="FAILED", failure="").load(busy=(0.1, 0.5, 0.99))
    lines = [line(label, saturated(60, 10), group="rate 1k/s") for label in ("aligned", "unaligned")]
    lines.append(line("aligned", stuck, group="rate 9k/s", status="RESTARTING FOR EVER: 9 times in a row"))
    lines.append(line("unaligned", saturated(70, 0), group="rate 9k/s"))

    assert verdict(lines).startswith("With rate 9k/s and aligned the job restarts forever")


def test_tails_count():
    """Equal medians hide the checkpoints people are called for at night; the cause is that of the slow ones."""
    late = saturated(300, 10, times=9)
    late.checkpoint(9000, 6300).part("behind data", "map", 15).part("behind data", "sink", 6200)

    text = verdict([line("aligned", late), line("unaligned", saturated(310, 5, persisted=7, times=10))])

    assert text.startswith(
        "Medians are alike (300 ms to 310 ms), tails are not: barriers of checkpoint 10 (aligned)"
        " wait behind 6.2 s of queued data in front of 'sink'"
    )
    assert "; the longest of unaligned is 310 ms instead of 6.3 s; throughput is the same" in text


def test_no_name_hides_the_slowest_tenth():
    """It is said unless the sentence on the difference gives the longest checkpoint; a strategy may have these words in its name."""
    late = saturated(1000, 900, times=18)
    for k in range(3):
        late.checkpoint(1e5 + 1e4 * k, 9000).part("behind data", "sink", 8900)

    text = verdict([line("the longest interval", late), line("short", saturated(100, 20, times=21))])

    assert ". One in ten takes 9 s or more with the longest interval: barriers of checkpoint 19" in text


def test_a_quicker_median_with_the_same_tail():
    """The tail hardly moves, so both longest checkpoints are given."""
    quick = saturated(200, 10, times=9)
    quick.checkpoint(9000, 6300).part("behind data", "sink", 6200)

    text = verdict([line("aligned", saturated(5700, 3100, times=10)), line("unaligned", quick)])

    assert "; unaligned checkpoints take 200 ms instead of 5.7 s (longest 6.3 s instead of 5.7 s); " in text


def test_a_hot_subtask_is_named():
    """The mean of its vertex hides it."""
    run = saturated(5700, 3100)
    run.series = [{**row, "busy": 0.36} for row in run.series]

    assert "in front of 'sink' ('sink[0]' busy 99 %, 'source' back-pressured 90 %)" in verdict([line("aligned", run)])


def test_a_chain_that_stops_says_where_it_goes_on():
    """A job that found nothing to begin from is no matter of checkpoints."""
    stopped = line("copied own", saturated(70, 0), status="FAILED: job 1 cannot start: chk-5 names files elsewhere")

    assert verdict([stopped]) == "With copied own job 1 cannot start: chk-5 names files elsewhere."
    assert verdict([stopped, line("copied job", saturated(70, 0))]).endswith(
        "files elsewhere; with copied job it goes on."
    )


def test_checkpoints_of_which_nothing_was_recorded_have_no_cause():
    """They are slow, and why is not known: how busy the job was is all that is said."""
    slow = replace(line("aligned", saturated(5700, 3100)), singles=Singles(None, None, None))

    assert verdict([slow]).startswith("Nothing was recorded of these checkpoints ('sink' busy 99 %")


# The sentence about strategies that do not keep up: which falls short most, by which numbers, and which others do.


def row(label, emitted=None):
    """A strategy whose sources emit so much of 100/s."""
    return line(label, saturated(5700, 3100), overload=emitted and KeepingUp(emitted, 100.0, math.nan))


def test_who_keeps_up_is_not_mentioned():
    assert overload_sentence([row("a"), row("b")]) == ""
    assert overload_sentence([row("a"), row("b", 80.0)]) == (
        "Overloaded: b: sources emit 80/s of 100/s that are due, and their backlog grows; 'sink' is busy 99 % over the whole run."
    )


def test_the_one_that_falls_short_most_is_told_in_numbers():
    """By the share that is emitted: 150/s of 200/s are less than 80/s of 100/s."""
    most = replace(row("c"), overload=KeepingUp(150.0, 200.0, 12.0))
    text = overload_sentence([row("b", 80.0), most])

    assert text.startswith(
        "Overloaded: c: sources emit 150/s of 200/s that are due before the first failure or stop (12 s), and"
    )
    assert text.endswith(" Also overloaded: b.")


def test_others_are_named_up_to_four_and_counted_beyond():
    rows = [row("g"), row("a", 50.0), *(row(name, 80.0) for name in "bcdef")]

    assert overload_sentence(rows[:5]).endswith(" Also overloaded: b, c and d.")
    assert overload_sentence(rows).endswith(" Also overloaded: 5 strategies.")
    assert overload_sentence(rows[1:5]).endswith(" Also overloaded: all others.")


def test_what_is_never_idle_limits_a_job_in_which_nothing_is_always_busy():
    """A window is busy between its ends, and then waits for the readers of all that leaves at once."""
    always = row("a", 80.0)
    held_up = replace(always, overload=always.overload._replace(never_idle=("window", 0.6, 0.37)))
    at_times = replace(held_up, summary=replace(held_up.summary, busy_share=0.64, busiest_subtask_share=0.64))

    assert "'sink' is busy 99 % over" in overload_sentence([held_up])
    assert "'window' is never idle: busy 60 % and back-pressured 37 % over" in overload_sentence([at_times])
