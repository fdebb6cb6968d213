"""The sentence about strategies that do not keep up: which falls short most, by which numbers, and which others do."""

import math
from dataclasses import replace

from sim.results.rates import KeepingUp
from sim.results.verdict import overload_sentence
from tests.results.analysis.runs_by_hand import line, saturated


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
