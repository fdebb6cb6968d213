"""The sentences of an answer, and the tables beside them: half of the windows overloaded, failures, ties, one window, missing columns."""

from dataclasses import replace

import numpy as np
import pytest

from sim.results.sweep_answers import Limit
from sim.studies.sweeps.answer import MAX_WINDOWS, sections, sentence
from sim.studies.sweeps.sweep_file import Question
from tests.results.analysis.sweeps.made_up import rows_of

KEY, COLUMN = "checkpoint.interval", "caught_up_ms"
LOAD = 1000 * np.random.default_rng(1).random(8)
NOISE = np.random.default_rng(2).standard_normal((5, 8))


def asks(*limits, column=COLUMN, against=""):
    reference = ((KEY, against),) if against else ()
    return Question((KEY,), (column,), column, limits, reference)


def titled(question, results, start):
    return next(section for section in sections(question, results) if section.title.startswith(start))


@pytest.fixture
def overloaded():
    """In four of eight windows nothing catches up; in two others one setting does not."""
    bounds = [(setting, window) for setting in ("10 s", "30 s", "90 s") for window in range(4)] + [
        ("90 s", 4),
        ("30 s", 5),
    ]
    base = np.where(np.arange(8) < 4, 300_000.0, 26_000 + LOAD)
    late = base + np.array([0, 0, 0, 0, 200_000, 4_000, 4_100, 3_900])
    other = base + np.array([0, 0, 0, 0, 2_000, 200_000, 2_100, 1_900])
    return rows_of({"10 s": base, "30 s": other, "90 s": late}, bounds=bounds)


def test_half_of_the_windows_are_overloaded(overloaded):
    """That is said before any number, and no window vanishes from a mean."""
    found = sentence(asks(against="10 s"), overloaded)

    assert found == (
        "In 4 of 8 windows the job does not catch up within the run with any checkpoint.interval (w0, w1, w2, w3). "
        "Of the other 4 windows, the job does not catch up within the run with 30 s in 1, with 90 s in 1. "
        "Least caught_up_ms: 26 s ± 364 ms over the other 4 windows, with checkpoint.interval 10 s (of 3 settings). "
        "It is surely the least: 95 % for all comparisons together."
    )
    assert titled(asks(), overloaded, "Mean").rows == [
        ["10 s", "> 2.7 min ± 2 min (not ended in 4 of 8)"],
        ["30 s", "> 3.1 min ± 113 s (not ended in 5 of 8)"],
        ["90 s", "> 3.2 min ± 112 s (not ended in 5 of 8)"],
    ]
    windows = titled(asks(), overloaded, "caught_up_ms in each window")
    assert windows.rows[0] == ["w0", "> 5 min", "> 5 min", "> 5 min"]
    assert windows.rows[4] == ["w4", "26 s", "28 s", "> 3.8 min"]


def test_a_setting_that_fails_in_its_worst_windows():
    """Its mean over the others would be the least."""
    rows = rows_of({"10 s": 5_000 + LOAD, "30 s": 9_000 + LOAD})
    hard = (rows[KEY] == "10 s") & rows["window"].isin(["w6", "w7"])
    rows.loc[hard, "job_status"] = "FAILED: restarts exhausted"

    assert sentence(asks(), rows) == (
        "With checkpoint.interval 10 s the job fails in 2 of 8 windows (restarts exhausted). "
        "Least caught_up_ms: 9.6 s ± 255 ms over 8 windows, with checkpoint.interval 30 s (of 2 settings)."
    )
    assert titled(asks(), rows, "Mean").rows[0] == ["10 s", "- (fails in 2 of 8)"]
    rows.loc[hard, ["status", "error", "job_status"]] = ["error", "MemoryError", None]
    assert sentence(asks(), rows).startswith(
        "With checkpoint.interval 10 s cells fail in 2 of 8 windows (MemoryError)."
    )


def test_ties():
    rows = rows_of({"10 min": LOAD, "20 min": LOAD, "30 min": LOAD * (1 + 1e-12)})

    assert sentence(asks(), rows) == (
        "Least caught_up_ms: 566 ms ± 255 ms over 8 windows, with checkpoint.interval 10 min (of 3 settings). "
        "It ties with 20 min, 30 min: their values agree to nine digits. "
        "Take checkpoint.interval 10 min: of equal ones it stands first."
    )
    assert sentence(asks(against="20 min"), rows).endswith(
        "It cannot be told apart from 2 others: 20 min, 30 min. 20 min ties with 10 min, 30 min. "
        "Take checkpoint.interval 20 min (566 ms ± 255 ms): it is compared with, and no other is surely better."
    )
    near = rows_of({"10 min": LOAD, "20 min": LOAD, "30 min": LOAD + 10 * NOISE[0]})
    assert sentence(asks(), near).endswith(
        "It cannot be told apart from 2 others: 20 min, 30 min. 10 min ties with 20 min. "
        "Take checkpoint.interval 10 min: of equal ones it stands first."
    )


def test_a_bound_ties_with_no_value():
    """What has not ended counts with the longest time known, which the others have in a world where all are alike."""
    rows = rows_of({"10 min": LOAD, "20 min": LOAD, "30 min": LOAD})
    rows.loc[rows[KEY] == "30 min", "unfinished"] = "caught_up_ms"

    assert sentence(asks(), rows).endswith(
        "It cannot be told apart from 2 others: 20 min, 30 min. 10 min ties with 20 min. "
        "Take checkpoint.interval 10 min: of equal ones it stands first."
    )


def test_runs_that_end_before_a_checkpoint_does():
    """Three intervals longer than the runs tie: no wonder."""
    rows = rows_of({"5 s": 1.2 * LOAD, "10 min": LOAD, "20 min": LOAD}).assign(completed=0)
    only_5_s = rows.assign(completed=[3 if interval == "5 s" else 0 for interval in rows[KEY]])

    assert sentence(asks(), rows).startswith("No run completes a checkpoint, with any checkpoint.interval. ")
    assert sentence(asks(), only_5_s).startswith("No run completes a checkpoint with 10 min, 20 min. ")
    assert "completes a checkpoint" not in sentence(asks(), only_5_s[only_5_s[KEY] == "5 s"])


def test_one_setting():
    """There is nothing to choose, and it is no plural."""
    assert sentence(asks(), rows_of({"10 s": LOAD})).startswith(
        "Least caught_up_ms: 566 ms ± 255 ms over 8 windows, with checkpoint.interval 10 s (of 1 setting)."
    )


def test_one_window():
    """It has no interval; with seeds it has one for this window alone."""
    rows = rows_of({"10 s": [1000.0], "30 s": [2000.0]})
    seeded = rows_of({"10 s": [1000 + 10 * NOISE[0]], "30 s": [2000 + 10 * NOISE[1]]})

    assert sentence(asks(), rows) == (
        "Least caught_up_ms: 1 s, with checkpoint.interval 10 s (of 2 settings). "
        "That is one window with one seed: there is no interval, and no setting is surely better than another."
    )
    assert sections(asks(), rows)[0].title == "Mean of one window: it has no interval over windows"
    assert sentence(asks(), seeded).endswith(
        "for all comparisons together; next is 30 s, by 1 s. It is one window: its seeds say nothing about others."
    )
    assert (
        sections(asks(), seeded)[0].title
        == "Mean over 8 seeds of a single window, with 95 % confidence for this window alone"
    )


def test_missing_columns():
    """No transactional sink: nothing was hidden, and its limit cannot be kept."""
    rows = rows_of({"10 s": 5_000 + LOAD, "30 s": 9_000 + LOAD}, visible_p99_ms=np.nan).assign(nothing="visible_p99_ms")
    limited = asks(Limit("visible_p99_ms", at_most=1000))

    assert sentence(limited, rows) == (
        "No run has a value of visible_p99_ms: there was nothing to measure. Its limit cannot be kept. "
        "None of 2 settings keeps visible_p99_ms at most 1 s."
    )
    only = Question((KEY,), ("visible_p99_ms",), "visible_p99_ms")
    assert (
        sentence(only, rows)
        == "No run has a value of visible_p99_ms: there was nothing to measure. No setting can be chosen."
    )
    assert sections(only, rows)[0].rows == [["10 s", "-"], ["30 s", "-"]]


def test_a_limit_that_the_interval_reaches():
    """It is kept by the mean, and another one may keep it."""
    rows = rows_of({"10 s": 500 + LOAD, "30 s": 400 + LOAD}, lag_s=1.0)
    rows["lag_s"] = np.where(rows[KEY] == "10 s", 10 + np.tile(NOISE[0], 2), 10.5 + np.tile(NOISE[0], 2))
    bound = float(rows.loc[rows[KEY] == "10 s", "lag_s"].mean()) + 0.1
    found = sentence(asks(Limit("lag_s", at_most=bound)), rows)

    assert "(1 of 2 settings keeps lag_s at most" in found
    assert "Whether it keeps its limit is not sure: the interval of lag_s reaches beyond." in found
    assert found.endswith("1 more may keep it: 30 s.")


def test_the_longest_of_a_few_checkpoints_is_no_percentile():
    """It is named with its count and not chosen; where none has the sample the answer says what is compared."""
    rows = rows_of({"5 min": 100 + LOAD, "1 s": 500 + LOAD, "2 s": 600 + LOAD}, column="end_to_end_p99_ms")
    rows["completed"] = rows[KEY].map({"5 min": 1, "1 s": 120, "2 s": 60})
    dies = rows.assign(completed=1)
    dies.loc[dies[KEY] == "2 s", "job_status"] = "FAILED: killed"

    assert sentence(asks(column="end_to_end_p99_ms"), rows) == (
        "Not ranked, as end_to_end_p99_ms needs 100 checkpoints in all runs of a setting: 5 min has 8. "
        "Least end_to_end_p99_ms: 1.1 s ± 255 ms over 8 windows, with checkpoint.interval 1 s (of 2 settings that are ranked). "
        "It is surely the least: 95 % for all comparisons together; next is 2 s, by 100 ms."
    )
    assert (
        "No setting that could be chosen has the 100 checkpoints that end_to_end_p99_ms needs: "
        "it is the longest of 8, and compared as that. Least end_to_end_p99_ms: 666 ms"
    ) in sentence(asks(column="end_to_end_p99_ms"), dies)
    assert "a run has 1:" in sections(asks(column="end_to_end_p99_ms"), dies)[0].title


def test_a_limit_on_a_percentile_needs_its_sample():
    """The longest of eight checkpoints keeps no limit of a p99: such a setting stands behind those that are known to keep it."""
    rows = rows_of({"5 min": LOAD, "1 s": 500 + LOAD, "2 s": 900 + LOAD}, end_to_end_p99_ms=400.0)
    rows["completed"] = rows[KEY].map({"5 min": 1, "1 s": 120, "2 s": 60})
    limited = asks(Limit("end_to_end_p99_ms", at_most=1000))
    slow = rows.assign(end_to_end_p99_ms=rows[KEY].map({"5 min": 1500.0, "1 s": 400.0, "2 s": 400.0}))

    assert sentence(limited, rows) == (
        "Not known to keep end_to_end_p99_ms at most 1 s, as that needs 100 checkpoints in all runs of a setting: 5 min has 8. "
        "Least caught_up_ms: 1.1 s ± 255 ms over 8 windows, with checkpoint.interval 1 s "
        "(2 of 3 settings keep end_to_end_p99_ms at most 1 s on average over 8 windows). "
        "It is surely the least: 95 % for all comparisons together; next is 2 s, by 400 ms."
    )
    few = sentence(limited, rows.assign(completed=10))
    assert (
        "needs 100 checkpoints in all runs of a setting: 5 min has 80, 1 s has 80, 2 s has 80. Least caught_up_ms: 566 ms"
        in few
    )
    assert "(3 of 3 settings seem to keep end_to_end_p99_ms at most 1 s on average over 8 windows)" in few
    assert "5 min" not in sentence(limited, slow)  # what the longest breaks is broken


def test_a_limit_is_told_window_by_window():
    """The mean keeps it, and windows break it: the sentence and a table say where, though the column is not asked for."""
    rows = rows_of({"10 s": 100 + LOAD, "30 s": 900 + LOAD}, end_to_end_p99_ms=400.0)
    rows.loc[(rows[KEY] == "10 s") & rows["window"].isin(["w3", "w5"]), "end_to_end_p99_ms"] = 1700.0
    rows.loc[(rows[KEY] == "10 s") & (rows["window"] == "w5"), "end_to_end_p99_ms"] = 2100.0
    question = asks(Limit("end_to_end_p99_ms", at_most=1000))
    both = rows.assign(end_to_end_p99_ms=np.where(rows["window"] == "w3", 1700.0, 400.0))
    found = sentence(question, rows)

    assert "(2 of 2 settings keep end_to_end_p99_ms at most 1 s on average over 8 windows)" in found
    assert "10 s keeps end_to_end_p99_ms at most 1 s in 6 of 8 windows only (broken at w5: 2.1 s, w3: 1.7 s)." in found
    assert "It is kept in all 8 windows with 30 s." in found
    near = rows.assign(end_to_end_p99_ms=rows["end_to_end_p99_ms"].replace({1700.0: 1041.0, 2100.0: 1004.0}))
    assert "(broken at w3: 1.04 s, w5: 1.004 s)" in sentence(question, near)  # "1 s" beside a limit of 1 s says nothing
    assert "No setting keeps it in all 8 windows." in sentence(question, both)
    assert titled(question, rows, "Mean").rows[0] == ["10 s", "666 ms ± 255 ms", "775 ms ± 587 ms"]
    table = titled(question, rows, "end_to_end_p99_ms in each window (limit: at most 1 s)")
    assert table.rows[3] == ["w3", "1.7 s", "400 ms"]
    assert "only" not in sentence(asks(Limit("end_to_end_p99_ms", at_most=3000)), rows)


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


@pytest.mark.parametrize(("late", "rest"), [(4, ""), (5, " and 1 more"), (6, " and 2 more")])
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
        (4, "w0: 2 s, w1: 2 s, w2: 2 s, w3: 2 s"),
        (5, "w0: 2 s, w1: 2 s, w2: 2 s, w3: 2 s and 1 more"),
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
        "x1 keeps throughput_per_second at least 50/s in 6 of 8 windows only (broken at w5: 30/s, w2: 40/s)." in found
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


@pytest.mark.parametrize(("few", "rest"), [(4, ""), (5, " and 1 more"), (6, " and 2 more")])
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

    note = f". {P99} needs 100 checkpoints, and a run has %s: read it as the longest one"
    assert titled(asks(column=P99), rows, "Mean").title.endswith(note % "30")
    assert titled(asks(column=P99), of_all, "Mean").title.endswith(note % "30 to 200")
    assert "needs 100" not in titled(asks(column=P99), rows.assign(completed=100), "Mean").title


def test_an_interval_as_long_as_the_run_is_not_ranked():
    """Its only checkpoint is the first one; where it keeps the limit and the other does not, none can be chosen."""
    measured = {"ended_s": 60.0, "warmup_ms": 0.0, "completed": 1}
    rows = rows_of({"4 s": 500 + LOAD, "2 min": 100 + LOAD}, column="end_to_end_p50_ms", **measured)
    found = sentence(asks(column="end_to_end_p50_ms"), rows)
    limited = sentence(asks(Limit("end_to_end_p50_ms", at_most=900), column="end_to_end_p50_ms"), rows)

    assert found.startswith(
        "Not ranked, as a run has fewer than 3 of their intervals, and its first checkpoint meets a job that has just started: "
        "2 min (--set run.duration='6 min'). Least end_to_end_p50_ms: 1.1 s"
    )
    assert limited.endswith("run.duration='6 min'). No setting can be chosen.")
    for other in (rows.assign(ended_s=360.0), rows.assign(completed=3), rows[rows[KEY] == "2 min"]):
        assert "Not ranked" not in sentence(asks(column="end_to_end_p50_ms"), other)
    assert "Not ranked" not in sentence(asks(), rows.assign(caught_up_ms=1.0))


def test_failures_at_unlike_parts_of_the_interval_are_named():
    """Also where what they cost is the same."""
    rows = rows_of({"1 min": LOAD, "3 min": LOAD})
    rows["interval_passed_share"] = rows[KEY].map({"1 min": 0.33, "3 min": 0.11})

    assert sentence(asks(), rows).startswith(
        "Failures come after 33 % of the interval with 1 min, after 11 % of the interval with 3 min, on average: what they cost may "
        "differ, or be the same, by that alone. "
    )
    assert "Failures come" not in sentence(asks(), rows.assign(interval_passed_share=rows["interval_passed_share"] / 3))


@pytest.mark.parametrize(("busy", "restarts", "is_overloaded"), [(0.4, 4, False), (0.95, 4, True), (0.4, 0, True)])
def test_who_catches_up_at_the_end_of_the_run_is_not_overloaded(busy, restarts, is_overloaded):
    """What was due during the last of four failures is not emitted yet, though the job is idle most of the time."""
    loads = {"emitted_per_second": 5_800.0, "offered_per_second": 6_000.0, "busiest_subtask_share": busy}
    rows = rows_of({"1 min": LOAD, "3 min": LOAD}, restarts=restarts, **loads)

    assert sentence(asks(), rows).startswith("Overloaded") == is_overloaded


def test_two_seeds_tell_little():
    two = rows_of({"10 s": [1000 + 100 * NOISE[0, :2]], "30 s": [1000 + 100 * NOISE[1, :2]]})

    assert "That says little: with 2 seeds a difference is sure only from 9 times its standard deviation" in sentence(
        asks(), two
    )
