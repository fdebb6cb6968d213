"""Advice held to longer runs and to the recordings of what was advised."""

import pandas as pd

from benchmarks.advice_kept import Answer, limits_of, siblings, table


def test_recordings_of_one_job_under_other_barriers():
    assert siblings("J4-pressed-aligned-r1") == ["J4-pressed-timeout500-r1", "J4-pressed-unaligned-r1"]
    assert siblings("J1-q20-aligned") == []


def test_limits_leave_room_above_the_history():
    rows = [("end_to_end_duration", False, value) for value in range(100, 1200, 100)] + [
        ("end_to_end_duration", True, 9e6),
        ("sync", False, 9e6),
    ]

    assert limits_of(pd.DataFrame(rows, columns=["quantity", "first", "value"])) == [1250, 5000]


def answer(longer_ms=900.0, checkpoints=300, *, confirmed=True):
    kept = checkpoints > 0 and longer_ms <= 1000
    return Answer(
        "J2", 1000.0, "aligned, every 5 s", 0.9, longer_ms, checkpoints, "J2 1.2 s", kept, False, confirmed, 12.0
    )


def test_what_keeps_and_what_is_refused_is_counted():
    last = table([answer(), answer(1100.0), answer(float("nan"), 0)]).splitlines()[-1]

    assert last.startswith("1 of 2 advised settings keep their limit in a longer run, 0 of 2 in their own recording. ")
    assert last.endswith(" For 1 limits none was advised.")


def test_what_was_advised_as_not_confirmed_is_counted_apart():
    last = table([answer(), answer(1100.0, confirmed=False), answer(confirmed=False)]).splitlines()[-1]

    assert last.startswith("1 of 1 advised settings keep")
    assert " Of 2 advised as not confirmed 1 kept it. " in last
    assert answer(1100.0, confirmed=False).row()[5] == "BROKEN, not confirmed"
