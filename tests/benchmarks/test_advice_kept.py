"""Advice held to longer runs and to the recordings of what was advised."""

import pandas as pd
import pytest

from benchmarks.advice_kept import HEADER, Answer, agrees, limit_of, siblings


def test_recordings_of_one_job_under_other_barriers():
    assert ["J4-pressed-timeout500-r1", "J4-pressed-unaligned-r1"] == siblings("J4-pressed-aligned-r1")
    assert [] == siblings("J1-q20-aligned")


def test_a_limit_leaves_room_above_the_history():
    rows = [("end_to_end_duration", False, value) for value in range(100, 1200, 100)] + [
        ("end_to_end_duration", True, 9e6),
        ("sync", False, 9e6),
    ]

    assert 1250 == limit_of(pd.DataFrame(rows, columns=["quantity", "first", "value"]))


@pytest.mark.parametrize(("factor", "expected"), [(1.0, True), (1.2, True), (1.5, False), (0.6, False)])
def test_what_agrees(factor, expected):
    measured = pd.Series([1000.0, 1100.0, 1200.0, 2000.0])

    assert expected == agrees(measured, measured * factor)


@pytest.mark.parametrize(("longer", "text"), [(900.0, "kept"), (1100.0, "BROKEN")])
def test_what_is_printed(longer, text):
    answer = Answer("J2", 1000.0, "aligned, every 5 s", 0.9, longer, 300, "J2 1.2 s", longer <= 1000, False, False, (), 12.0)

    assert ["J2", "1 s", "aligned, every 5 s", "90%"] == answer.row()[:4]
    assert [text, "J2 1.2 s BROKEN"] == answer.row()[5:7]
    assert len(HEADER) == len(answer.row())
