"""One sentence, from the numbers: each case that a user can meet."""

import math
from dataclasses import replace

import pytest

from sim.results.side_by_side import Singles, StrategyRow, singles
from sim.results.summary import summarize
from sim.results.verdict import verdict


def line(label, run, edges, *, group="", status="RUNNING", baseline=math.nan):
    return StrategyRow(
        label,
        (("checkpoint.barriers", label),),
        group,
        status,
        summarize([run.tables()], edges),
        baseline,
        status != "RUNNING",
        singles=singles([run.tables()]),
    )


def test_nothing_holds_barriers_up(saturated, edges):
    """Quick and equal: no strategy is praised."""
    text = verdict([line("aligned", saturated(60, 10), edges), line("unaligned", saturated(40, 0), edges)])

    assert text.startswith("Checkpoints take 40 ms to 60 ms: nothing holds the barriers up ('sink' busy 99 %")
    assert "differ by less than repetitions of one real job do (40 ms to 60 ms); throughput is the same" in text


def test_a_skewed_input_decides(made, saturated, edges):
    """Alignment, not start delay: the vertex that waits is named, and the input that is behind."""
    run = (
        made()
        .checkpoint(0, 4300)
        .part("behind data", "map", 20)
        .part("alignment", "map", 4200, upstream="source[1]")
        .part("behind data", "sink", 40)
    )
    run.load(busy=(0.1, 0.5, 0.99), waiting=(0.9, 0, 0))

    text = verdict([line("aligned", run, edges), line("unaligned", saturated(70, 0, persisted=5), edges)])

    assert text.startswith(
        "In checkpoint 1 (aligned) 'map' waits 4.2 s from its first to its last barrier, which comes from source[1] ('sink' busy 99 %, "
    )


def test_even_unaligned_barriers_can_wait(saturated, edges):
    """A task thread that is held up lets nothing overtake."""
    text = verdict([line("unaligned", saturated(2100, 2000, persisted=9), edges)])

    assert text.startswith(
        "Even barriers that overtake data, as in checkpoint 1, wait 2 s for the task thread of 'sink'"
    )


def waiting_for(made, edges, part, *, duration=1600, share=0.9, times=1, before=None):
    """The verdict about checkpoints that spend most of their time on a part."""
    run = made()
    for ms in [before] * 9 if before else []:
        run.checkpoint(0, ms).part("upload", "sink", ms)
    for _ in range(times):
        run.checkpoint(0, duration).part("trigger", "", 3).part(part, "sink", duration * share)
    return verdict([line("it", run.load(busy=(0.1, 0.2, 0.3)), edges)])


def test_the_alignment_timeout_is_named_as_such(made, edges):
    """The task thread is free: the barrier may not overtake before."""
    text = waiting_for(made, edges, "until the timeout", duration=1055)

    assert text.startswith(
        "Barriers of checkpoint 1 wait 950 ms in front of 'sink' until the alignment timeout lets them overtake"
    )


def test_storage_does_not_decide_about_an_operators_own_work(made, edges):
    text = waiting_for(made, edges, "async work")

    assert text.startswith(
        "Asynchronous work of 'sink' takes 1.4 s of the 1.6 s of checkpoint 1, beside its files: neither storage nor barriers decide"
    )


def test_each_other_wait_has_words_of_its_own(made, edges):
    assert waiting_for(made, edges, "async queue").startswith(
        "Snapshots wait 1.4 s of the 1.6 s of checkpoint 1 for the asynchronous thread of 'sink', at work for older checkpoints"
    )
    assert waiting_for(made, edges, "channel state").startswith(
        "Writing in-flight data of 'sink' takes 1.4 s of the 1.6 s of checkpoint 1"
    )
    assert waiting_for(made, edges, "file before barrier").startswith(
        "Work before the barrier takes 1.4 s of the 1.6 s of checkpoint 1"
    )
    assert waiting_for(made, edges, "sync").startswith("The synchronous phase takes 1.4 s of the 1.6 s of checkpoint 1")
    assert waiting_for(made, edges, "acknowledgement").startswith(
        "Messages to and from the coordinator take 1.4 s of the 1.6 s of checkpoint 1"
    )


def test_a_quick_median_does_not_hide_a_slow_tail(made, edges):
    """Nothing holds most barriers up; what holds up the others is said."""
    text = waiting_for(made, edges, "async work", before=60)

    assert text.startswith(
        "Checkpoints take 60 ms in the median, the longest 1.6 s: asynchronous work of 'sink' takes 1.4 s of the 1.6 s of checkpoint 10"
    )
    upload = waiting_for(made, edges, "upload", before=60)
    assert upload.startswith("Checkpoints take 60 ms in the median, the longest 1.6 s: writing 1 kB takes 1.4 s")


CIRCLE = "'sink' reads no more from 'map' until the barrier of 'source' comes, and 'source' cannot send it"


def test_a_checkpoint_hangs(made, saturated, edges):
    """Before it expires, too: who waits for whom is said, not who is busy."""
    hung = made().checkpoint(0, -1, status="IN_PROGRESS", standstill=CIRCLE).load(busy=(0, 0, 0), waiting=(1, 0, 0))
    quick = line("aligned", saturated(70, 0), edges)
    because = f"because tasks wait for each other: {CIRCLE}; with aligned barriers they do not"

    assert f"With unaligned a checkpoint hangs, {because}." == verdict([line("unaligned", hung, edges)])
    hung.checkpoint(0, 100, status="FAILED", failure="Checkpoint expired before completing.", standstill=CIRCLE)
    text = verdict([line("unaligned", hung, edges), quick])
    assert f"With unaligned 1 of 1 checkpoints expire, {because}; aligned completes its one in 70 ms." == text


def test_a_job_that_restarts_for_ever_because_its_checkpoints_hang(made, edges):
    """The reason of the restarts alone does not help."""
    hung = (
        made().checkpoint(0, 100, status="FAILED", failure="CHECKPOINT_EXPIRED", standstill=CIRCLE).load(busy=(0, 0, 0))
    )

    assert (f"With unaligned the job restarts forever: 9 times in a row; take aligned barriers; {CIRCLE}.") == verdict(
        [line("unaligned", hung, edges, status="RESTARTING FOR EVER: 9 times in a row; take aligned barriers")]
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
def test_failed_checkpoints_that_restart_the_job(made, edges, restored, expected):
    stuck = made().checkpoint(0, 4000, status="FAILED", failure="Checkpoint expired before completing.")
    stuck.load(busy=(0.1, 0.5, 0.99)).restart(cause="task manager 0 lost")
    assert "restarts" not in verdict([line("aligned", stuck, edges)])

    for checkpoint in restored:
        stuck.restart(restored=checkpoint)

    assert f"checkpoints expire; {expected}" in verdict([line("aligned", stuck, edges)])


def test_a_checkpoint_expires_for_what_it_was_at(made, saturated, edges):
    """Its own path says what was too slow, whether others completed or not; the load has no part in it."""
    expired = "CHECKPOINT_EXPIRED"
    slow = (
        made()
        .checkpoint(0, 4000, status="FAILED", failure=expired)
        .part("behind data", "map", 30)
        .part("upload", "sink", 3970)
    )
    slow.load(busy=(0.1, 0.2, 0.3))
    quick = line("quick", saturated(70, 0), edges)
    because = "because writing files takes 4 s of the 4 s of checkpoint 1 (slow): storage decides, not the barriers; quick completes"

    assert f"With slow 1 of 1 checkpoints expire, {because} its one in 70 ms." == verdict(
        [line("slow", slow, edges), quick]
    )
    slow.checkpoint(5000, 90).part("sync", "sink", 80)
    assert f"With slow 1 of 2 checkpoints expire, {because} its one in 70 ms." == verdict(
        [line("slow", slow, edges), quick]
    )


def test_a_checkpoint_fails_without_its_metadata(made, edges):
    """It does not expire meanwhile: timeouts wait."""
    late = made().checkpoint(0, 4000, status="FAILED", failure="FINALIZE_CHECKPOINT_FAILURE").part("sync", "sink", 30)
    late.part("finalisation", "", 3970).load(busy=(0.1, 0.2, 0.3))

    assert verdict([line("late", late, edges)]).endswith(
        "fail (FINALIZE_CHECKPOINT_FAILURE), because all tasks of checkpoint 1 (late) acknowledge it, and its metadata cannot be written."
    )


def test_a_job_that_restarts_for_ever(made, saturated, edges):
    """What the run said of it, and who does better."""
    stuck = made().checkpoint(0, 4000, status="FAILED", failure="").load(busy=(0.1, 0.5, 0.99))
    lines = [
        line("aligned", stuck, edges, status="RESTARTING FOR EVER: 9 times in a row"),
        line("unaligned", saturated(70, 0), edges),
    ]

    assert verdict(lines) == "With aligned the job restarts forever: 9 times in a row; with unaligned it does not."


def test_a_job_that_is_killed_fails_for_no_checkpoint(saturated, edges):
    """Those it took completed: what they wait for has no part in it."""
    killed = line("none", saturated(5700, 3100), edges, status="FAILED: killed")

    assert (
        verdict([killed, line("fixed", saturated(70, 0), edges)])
        == "With none the job fails (killed); fixed completes its one in 70 ms."
    )


def test_one_strategy_is_held_against_none(saturated, edges):
    """Nothing to compare with but the job without checkpoints."""
    text = verdict([line("aligned", saturated(5700, 3100), edges, baseline=110.0)])

    assert text.endswith("; checkpoints cost 9.1 % of throughput.")


def test_savepoints_are_named_in_a_cost_and_never_free(saturated, edges):
    """What is not served during a savepoint is served after it."""
    own = {cost: line("aligned", saturated(5700, 3100), edges, baseline=cost) for cost in (100.0, 110.0)}
    free, dear = (verdict([replace(row, has_savepoints=True)]) for row in own.values())

    assert "throughput" not in free
    assert dear.endswith("; checkpoints and savepoints cost 9.1 % of throughput.")


def test_a_workload_and_a_strategy_are_named_together(made, saturated, edges):
    """A job that restarts forever under one of two loads."""
    stuck = made().checkpoint(0, 4000, status="FAILED", failure="").load(busy=(0.1, 0.5, 0.99))
    lines = [line(label, saturated(60, 10), edges, group="rate 1k/s") for label in ("aligned", "unaligned")]
    lines.append(line("aligned", stuck, edges, group="rate 9k/s", status="RESTARTING FOR EVER: 9 times in a row"))
    lines.append(line("unaligned", saturated(70, 0), edges, group="rate 9k/s"))

    assert verdict(lines).startswith("With rate 9k/s and aligned the job restarts forever")


def test_tails_count(saturated, edges):
    """Equal medians hide the checkpoints people are called for at night; the cause is that of the slow ones."""
    late = saturated(300, 10, times=9)
    late.checkpoint(9000, 6300).part("behind data", "map", 15).part("behind data", "sink", 6200)

    text = verdict([line("aligned", late, edges), line("unaligned", saturated(310, 5, persisted=7, times=10), edges)])

    assert text.startswith(
        "Medians are alike (300 ms to 310 ms), tails are not: barriers of checkpoint 10 (aligned)"
        " wait behind 6.2 s of queued data in front of 'sink'"
    )
    assert "; the longest of unaligned is 310 ms instead of 6.3 s; throughput is the same" in text


def test_a_hot_subtask_is_named(saturated, edges):
    """The mean of its vertex hides it."""
    run = saturated(5700, 3100)
    run.series = [{**row, "busy": 0.36} for row in run.series]

    assert "in front of 'sink' ('sink[0]' busy 99 %, 'source' back-pressured 90 %)" in verdict(
        [line("aligned", run, edges)]
    )


def test_no_checkpoint_is_no_verdict(made, edges):
    """It says what to do."""
    text = verdict([line("aligned", made().load(busy=(0, 0, 0)), edges)])

    assert text == "No checkpoint was completed or failed after the warm-up: run longer."


def test_a_chain_that_stops_says_where_it_goes_on(saturated, edges):
    """A job that found nothing to begin from is no matter of checkpoints."""
    stopped = line(
        "copied own", saturated(70, 0), edges, status="FAILED: job 1 cannot begin: chk-5 names files elsewhere"
    )

    assert verdict([stopped]) == "With copied own job 1 cannot begin: chk-5 names files elsewhere."
    assert verdict([stopped, line("copied job", saturated(70, 0), edges)]).endswith(
        "files elsewhere; with copied job it goes on."
    )


def test_checkpoints_of_which_nothing_was_recorded_have_no_cause(saturated, edges):
    """They are slow, and why is not known: how busy the job was is all that is said."""
    slow = replace(line("aligned", saturated(5700, 3100), edges), singles=Singles(None, None, None))

    assert verdict([slow]).startswith("Nothing was recorded of these checkpoints ('sink' busy 99 %")
