"""One sentence, from the numbers: each case that a user can meet, and strategies that do not keep up."""

import math
from dataclasses import replace

import pytest

from sim.results.rates import KeepingUp
from sim.results.side_by_side import Singles
from sim.results.verdict import overload_sentence, verdict
from tests.results.analysis.runs_by_hand import Made, line, saturated

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
