"""Answers about more settings, windows and limits than are named one by one: who is named, and how many others there are."""

from dataclasses import replace

import numpy as np
import pytest

from sim.results.sweep_answers import Limit
from sim.studies.sweeps.answer import MAX_WINDOWS, sentence
from sim.studies.sweeps.sweep_file import Question
from tests.results.analysis.sweeps.made_up import rows_of
from tests.studies.sweeps.test_headline import COLUMN, KEY, LOAD, asks, titled

P99 = "end_to_end_p99_ms"


def settings(count, windows=8, step=1000.0, **others):
    """``x1`` to ``x<count>``, each `step` worse than the one before in every window."""
    load = LOAD[:windows] if windows <= 8 else 1000 * np.random.default_rng(3).random(windows)
    return rows_of({f"x{i}": step * i + load for i in range(1, count + 1)}, **others)


def struck(rows, names, windows=("w0",), **changes):
    """The rows of these settings in these windows, changed."""
    rows = rows.copy()
    for column, value in changes.items():
        rows.loc[rows[KEY].isin(names) & rows["window"].isin(windows), column] = value
    return rows


@pytest.mark.parametrize(
    ("failing", "rest"),
    [(4, ""), (5, "1 more setting fails in some windows. "), (7, "3 more settings fail in some windows. ")],
)
def test_four_settings_that_fail_are_named(failing, rest):
    """The others are counted."""
    rows = struck(settings(9), [f"x{i}" for i in range(2, 2 + failing)], job_status="FAILED: killed")
    found = sentence(asks(), rows)

    named = " ".join(f"With checkpoint.interval x{i} the job fails in 1 of 8 windows (killed)." for i in range(2, 6))
    assert found.startswith(f"{named} {rest}Least caught_up_ms: 1.6 s")
    assert "of 9 settings)" in found


def test_where_every_setting_fails_that_is_told_first():
    """With the first reason, and the windows; it is no fault of one setting."""
    rows = struck(settings(3), ["x1", "x2", "x3"], ["w1", "w4"], job_status="FAILED: out of memory.")
    found = sentence(asks(), rows)

    assert found.startswith("In 2 of 8 windows every interval fails (out of memory) (w1, w4). Least caught_up_ms: ")
    assert "over the other 6 windows" in found
    several = replace(asks(), settings=(KEY, "scenario"))
    assert sentence(several, rows).startswith("In 2 of 8 windows every setting fails (out of memory)")


@pytest.mark.parametrize(
    ("late", "rest"), [(4, ""), (5, ", with 1 more setting in some"), (6, ", with 2 more settings in some")]
)
def test_the_four_that_are_behind_most_often_are_named(late, rest):
    """The one that is behind in most windows comes first."""
    rows = settings(8)
    for i in range(2, 2 + late):
        rows = struck(rows, [f"x{i}"], [f"w{k}" for k in range(i - 1)], unfinished=COLUMN)
    found = sentence(asks(), rows)
    named = ", ".join(f"with x{i} in {i - 1}" for i in range(1 + late, max(1, late - 3), -1))

    assert found.startswith(
        f"Of the 8 windows, the job does not catch up within the run {named}{rest}. Least caught_up_ms: 1.6 s"
    )


@pytest.mark.parametrize(
    ("hopeless", "listed"),
    [
        (4, " (w0, w1, w2, w3)"),
        (5, " (w0, w1, w2, w3 and 1 more)"),
        (7, " (w0, w1, w2, w3 and 3 more)"),
        (8, ""),
    ],
)
def test_four_windows_are_listed_and_never_all(hopeless, listed):
    windows = [f"w{k}" for k in range(hopeless)]
    rows = struck(settings(2), ["x1", "x2"], windows, unfinished=COLUMN)
    found = sentence(asks(), rows)

    assert found.startswith(
        f"In {hopeless} of 8 windows the job does not catch up within the run with any {KEY}{listed}."
    )


@pytest.mark.parametrize(("equal", "names"), [(2, "x1, x2"), (4, "x1, x2, x3, x4"), (6, "x1, x2, x3, x4 and 2 more")])
def test_four_that_cannot_be_told_apart_are_named(equal, names):
    """And what is advised of them has its own value beside the reason."""
    noise = np.random.default_rng(5).standard_normal((equal + 1, 8))
    rows = rows_of({f"x{i}": 5000 + LOAD + 400 * noise[i] for i in range(equal + 1)})
    means = rows.groupby(KEY)[COLUMN].mean().sort_values()
    first, *others = means.index
    found = sentence(asks(), rows)

    listed = ", ".join(others[:4]) + (f" and {equal - 4} more" if equal > 4 else "")
    assert f"It cannot be told apart from {equal} others: {listed}. " in found
    assert found.endswith(f"Take {KEY} {first}: of these it has the least mean.")
    last = others[-1]
    assert f"Take {KEY} {last} (" in sentence(asks(against=last), rows)
    assert sentence(asks(against=last), rows).endswith("): it is compared with, and no other is surely better.")


@pytest.mark.parametrize(
    ("broken", "windows"),
    [
        (4, "w0: 2 s; w1: 2 s; w2: 2 s; w3: 2 s"),
        (5, "w0: 2 s; w1: 2 s; w2: 2 s; w3: 2 s; and 1 more"),
    ],
)
def test_four_windows_that_break_a_limit_are_named(broken, windows):
    rows = struck(settings(2, **{P99: 100.0}), ["x1"], [f"w{k}" for k in range(broken)], **{P99: 2000.0})
    found = sentence(asks(Limit(P99, at_most=1500.0)), rows)

    assert f"x1 keeps {P99} at most 1.5 s in {8 - broken} of 8 windows only (broken at {windows})." in found
    assert "It is kept in all 8 windows with x2." in found


def test_a_lower_limit_is_broken_by_less():
    """The worst is the least."""
    rows = settings(2, throughput_per_second=100.0)
    rows = struck(rows, ["x1"], ["w2"], throughput_per_second=40.0)
    rows = struck(rows, ["x1"], ["w5"], throughput_per_second=30.0)
    found = sentence(asks(Limit("throughput_per_second", at_least=50.0)), rows)

    assert (
        "x1 keeps throughput_per_second at least 50/s in 6 of 8 windows only (broken at w5: 30/s; w2: 40/s)." in found
    )


def test_several_limits_are_kept_together_or_not():
    rows = settings(2, **{P99: 100.0}, lag_s=1.0)
    limits = Limit(P99, at_most=1500.0), Limit("lag_s", at_most=2.0)
    broken = struck(rows, ["x1"], ["w0"], lag_s=2.5)
    everywhere = struck(broken, ["x2"], ["w1"], **{P99: 1600.0})

    assert f"(2 of 2 settings keep {P99} at most 1.5 s and lag_s at most 2 s on average over 8 windows)" in sentence(
        asks(*limits), rows
    )
    assert "All limits are kept in all 8 windows with x2." in sentence(asks(*limits), broken)
    assert "No setting keeps all limits in all 8 windows." in sentence(asks(*limits), everywhere)


@pytest.mark.parametrize(
    ("few", "rest"), [(4, ""), (5, ", 1 more has too few as well"), (6, ", 2 more have too few as well")]
)
def test_four_settings_with_too_few_checkpoints_are_named(few, rest):
    rows = settings(7, column=P99, completed=1250)
    rows = struck(rows, [f"x{i}" for i in range(1, 1 + few)], [f"w{k}" for k in range(8)], completed=10)
    found = sentence(asks(column=P99), rows)

    assert found.startswith(
        f"Not ranked, as {P99} needs 100 checkpoints in all runs of a setting: x1 has 80, x2 has 80, x3 has 80, x4 has 80{rest}."
    )
    assert f"(of {7 - few} settings that are ranked)" in found or f"(of {7 - few} setting" in found


@pytest.mark.parametrize("windows", [MAX_WINDOWS, MAX_WINDOWS + 6])
def test_the_windows_of_a_table_are_those_where_something_did_not_end(windows):
    """Twenty-four of them, in the order of the plan among equals."""
    rows = struck(settings(2, windows=windows), ["x2"], ["w9", "w20"], unfinished=COLUMN)
    rows = struck(rows, ["x1"], ["w13"], job_status="FAILED: killed")
    table = titled(asks(), rows, "caught_up_ms in each window")
    names = [row[0] for row in table.rows]

    if windows == MAX_WINDOWS:
        assert [f"w{i}" for i in range(windows)] == names
        assert table.title == "caught_up_ms in each window"
    else:
        assert ["w9", "w13", "w20", *(f"w{i}" for i in range(24) if i not in (9, 13, 20))][:MAX_WINDOWS] == names
        assert (
            table.title == "caught_up_ms in each window (24 of 30: those where something did not end or failed first)"
        )
    cells = {row[0]: row[1:] for row in table.rows}
    assert (cells["w13"][0], cells["w9"][1].startswith("> ")) == ("fails", True)


def test_five_settings_stand_side_by_side_and_six_do_not():
    assert titled(asks(), settings(5), "caught_up_ms in each").header == ["window", "x1", "x2", "x3", "x4", "x5"]
    wide = titled(
        asks(against="x6"), struck(settings(6), ["x3"], ["w1"], job_status="FAILED: killed"), "caught_up_ms in each"
    )

    assert wide.header == ["window", "taken", "compared with"]
    assert wide.rows[:2] == [["w0", "1.5 s", "6.5 s"], ["w1", "2 s", "7 s"]]


def test_settings_of_two_keys_are_pairs():
    """Named with both in sentences, and joined in the head of a table."""
    rows = settings(2)
    rows["checkpoint.timeout"] = rows[KEY].map({"x1": "a", "x2": "b"})
    rows = rows[[*rows.columns[:6], "checkpoint.timeout", *rows.columns[6:-1]]]
    question = Question((KEY, "checkpoint.timeout"), (COLUMN,), COLUMN)
    found = sentence(question, rows)

    assert "with checkpoint.interval x1, checkpoint.timeout a (of 2 settings)" in found
    assert found.endswith("next is (x2, b), by 1 s.")
    assert titled(question, rows, "caught_up_ms in each").header == ["window", "x1, a", "x2, b"]


def test_differences_say_in_how_many_windows_they_were_seen():
    """Fewer than others have, and those where one of both had not ended."""
    rows = struck(settings(4), ["x3"], ["w0", "w1", "w2"], **{COLUMN: np.nan}, nothing=COLUMN)
    rows = struck(rows, ["x4"], ["w5"], unfinished=COLUMN)
    table = titled(asks(against="x2"), rows, "Difference to")

    assert (
        table.title
        == "Difference to checkpoint.interval x2, window by window, with 95 % confidence for all settings of a column together"
    )
    assert table.rows[:2] == [["x1", "-1 s ± 0 ms"], ["x3", "+1 s ± 0 ms (n=5)"]]
    assert table.rows[2][0] == "x4"
    assert table.rows[2][1].endswith("(not ended in 1)")
    alone = titled(asks(against="x2"), settings(2), "Difference to")
    assert alone.title == "Difference to checkpoint.interval x2, window by window"


@pytest.mark.parametrize(
    ("noise", "difference", "says"),
    [
        (0.5, "-1 s ± 823 ms", "It is surely the least"),
        (0.675, "-1 s ± 1.1 s", "It cannot be told apart from 1 other: x2."),
    ],
)
def test_sentence_and_table_tell_the_same_settings_apart(noise, difference, says):
    """Both allow for all 15 pairs.  The second difference is clear (± 893 ms) if only the 5 in the table are allowed for."""
    rows = settings(6)
    rows.loc[rows[KEY] != "x1", COLUMN] += 1000 * noise * (-1.0) ** rows["window"].str[1:].astype(int)

    assert titled(asks(against="x2"), rows, "Difference to").rows[0] == ["x1", difference]
    assert says in sentence(asks(against="x2"), rows)


def test_percentiles_of_few_checkpoints_are_named_in_the_title():
    rows = settings(2, column=P99, completed=30)
    of_all = struck(rows, ["x1"], ["w0"], completed=200)

    note = f". {P99} is of %s checkpoints a run and needs 100: it is hardly more than the longest"
    assert titled(asks(column=P99), rows, "Mean").title.endswith(note % "30")
    assert titled(asks(column=P99), of_all, "Mean").title.endswith(note % "30 to 200")
    assert "checkpoints a run" not in titled(asks(column=P99), rows.assign(completed=100), "Mean").title
