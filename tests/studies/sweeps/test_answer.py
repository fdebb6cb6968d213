"""What a sweep file wants to know, told from the results."""

from dataclasses import replace

import pandas as pd
import pytest

from sim.results.sweep_answers import Limit
from sim.studies.sweeps.answer import sections, sentence
from sim.studies.sweeps.sweep_file import Question

DURATION = {"10 s": 9.0, "30 s": 4.0}


@pytest.fixture
def results():
    rows = [
        {
            "cell": "x",
            "scenario": "s",
            "replication": k,
            "seed": k,
            "window": window,
            "interval": interval,
            "strategy": "aligned",
            "status": "ok",
            "end_to_end_p99_ms": 1000 * DURATION[interval] + load + k,
            "throughput_change": -0.01 * DURATION[interval],
        }
        for k in range(3)
        for window, load in (("quiet", 0), ("busy", 700))
        for interval in DURATION
    ]
    return pd.DataFrame(rows)


QUESTION = Question(
    ("interval",),
    ("end_to_end_p99_ms", "throughput_change"),
    "end_to_end_p99_ms",
    (Limit("throughput_change", at_least=-0.05),),
    (("interval", "10 s"),),
)


def test_tables(results):
    """Means with their confidence, differences window by window, and each window."""
    means, apart, windows, of_limit = sections(QUESTION, results)

    assert means.rows[1] == ["30 s", "4.4 s ± 4.4 s", "-4.0 % ± 0 %"]
    assert means.title == "Mean over 2 windows, seeds averaged within each, with 95 % confidence"
    assert apart.rows == [["30 s", "-5 s ± 0 ms", "+5.0 % ± 0 %"]]
    assert windows.rows == [["quiet", "9 s", "4 s"], ["busy", "9.7 s", "4.7 s"]]
    assert of_limit.title == "throughput_change in each window (limit: at least -5.0 %)"


@pytest.mark.parametrize("by", ["", "window"])
def test_texts_as_categories_change_no_answer(results, by):
    """Large sweeps have them: with failed rows, dead jobs, bounds and missing texts."""
    rows = results.assign(job_status="RUNNING", unfinished="", nothing=None, error="", completed=3)
    rows.loc[0, "unfinished"] = "end_to_end_p99_ms"
    rows.loc[1, "nothing"] = "throughput_change"
    rows.loc[2, ["job_status", "completed"]] = "FAILED: out of memory", 0
    rows.loc[4, ["status", "error", "job_status"]] = "error", "ValueError: no", None
    texts = {name: "category" for name in rows.columns if rows[name].dtype == object and name != "cell"}
    question = replace(QUESTION, by=by)

    assert sections(question, rows) == sections(question, rows.astype(texts))
    assert sentence(question, rows) == sentence(question, rows.astype(texts))


def test_settings_under_which_the_job_is_overloaded_or_at_its_limit_are_named(results):
    rates = results.assign(offered_per_second=1000.0, emitted_per_second=1000.0, busiest_subtask_share=0.9)
    rates.loc[rates["interval"] == "30 s", "busiest_subtask_share"] = 0.999
    full, unknown = sentence(QUESTION, rates), sentence(QUESTION, results)
    rates.loc[rates["interval"] == "30 s", "emitted_per_second"] = 980.0

    recovering = rates.assign(unfinished="caught_up_ms")
    idle = recovering.assign(busiest_subtask_share=0.58)

    assert "Overloaded, so that delays grow with the run: 30 s." in sentence(QUESTION, recovering)
    assert "Overloaded" not in sentence(QUESTION, idle), "it ends soon after a failure"
    assert "only a longer run shows whether the job keeps up: 30 s." in full
    assert "Overloaded, so that delays grow with the run: 30 s." in sentence(QUESTION, rates)
    assert "a longer run" not in unknown


def test_windows_of_many_settings_show_the_one_that_is_taken(results):
    others = [results.assign(interval=f"{i} min", end_to_end_p99_ms=1000.0 * i, unfinished="") for i in range(1, 6)]
    extended = pd.concat([*others, results])
    extended.loc[(extended["interval"] == "1 min") & (extended["window"] == "busy"), "unfinished"] = "end_to_end_p99_ms"
    limited = replace(QUESTION, limits=(Limit("end_to_end_p99_ms", at_most=4500.0),))
    windows = sections(limited, extended)[2]

    assert windows.header == ["window", "taken", "compared with"]
    assert windows.rows == [["quiet", "2 s", "9 s"], ["busy", "2 s", "9.7 s"]]


def test_what_one_setting_does_not_have_is_no_mean_of_the_others(results):
    """It has no value in a window where others have: that is worse than any value."""
    results.loc[results.index[:1], "throughput_change"] = float("nan")
    means, apart = sections(QUESTION, results)[:2]

    assert [row[2] for row in means.rows] == ["- (fails in 1 of 2)", "-4.0 % ± 0 %"]
    assert apart.rows == [["30 s", "-5 s ± 0 ms", "-"]]


def test_the_sentence(results):
    """What to choose, what it gives, what it keeps and how sure that is."""
    answer = sentence(QUESTION, results)

    among = "1 of 2 settings keeps throughput_change at least -5.0 % on average over 2 windows"
    assert f"Least end_to_end_p99_ms: 4.4 s ± 4.4 s over 2 windows, with interval 30 s ({among})." == answer
    all_keep = replace(QUESTION, limits=(Limit("throughput_change", at_least=-0.5),))
    assert sentence(all_keep, results).endswith(
        "(2 of 2 settings keep throughput_change at least -50 % on average over 2 windows). "
        "It is surely the least: 95 % for all comparisons together; next is 10 s, by 5 s."
    )


def test_an_answer_for_each_value(results):
    """Tables begin with it."""
    question = replace(QUESTION, by="window")
    means, apart = sections(question, results)

    assert means.header == ["window", "interval", "end_to_end_p99_ms", "throughput_change"]
    assert [[*row[:2], row[2].partition(" ±")[0]] for row in means.rows] == [
        ["quiet", "10 s", "9 s"],
        ["quiet", "30 s", "4 s"],
        ["busy", "10 s", "9.7 s"],
        ["busy", "30 s", "4.7 s"],
    ]
    assert apart.rows == [
        ["quiet", "30 s", "-5 s ± 0 ms", "+5.0 % ± 0 %"],
        ["busy", "30 s", "-5 s ± 0 ms", "+5.0 % ± 0 %"],
    ]
    quiet, busy = sentence(question, results).splitlines()
    assert quiet.startswith("window quiet: Least end_to_end_p99_ms: 4 s ± 2.5 ms over 3 seeds, with")
    assert busy.startswith("window busy: Least end_to_end_p99_ms: 4.7 s ± 2.5 ms over 3 seeds, with")


def test_a_mean_says_what_did_not_end(results):
    """It is a bound then; of one window there is no interval."""
    results["unfinished"] = ""
    results.loc[(results["window"] == "busy") & (results["interval"] == "30 s"), "unfinished"] = "end_to_end_p99_ms"
    means = sections(QUESTION, results)[0]

    assert [row[1] for row in means.rows] == ["9.4 s ± 4.4 s", "> 6.9 s ± 36 s (not ended in 1 of 2)"]
    assert means.title.endswith(". More than: it did not end everywhere, and counts there with the longest time known")
    assert sections(QUESTION, results[:1])[0].rows[0][1] == "9 s"


def test_no_results_no_tables(results):
    assert sections(QUESTION, results.assign(strategy="none")) == []
