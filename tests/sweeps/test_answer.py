"""What a sweep file wants to know, told from the results."""

from dataclasses import replace

import pandas as pd
import pytest

from sim.analysis.sweeps.answers import Limit
from sim.sweeps.answer import sections, sentence
from sim.sweeps.file.question import Question

DURATION = {"10 s": 9.0, "30 s": 4.0}


@pytest.fixture
def results():
    rows = [
        {"cell": "x", "scenario": "s", "replication": k, "seed": k, "window": window, "interval": interval, "strategy": "aligned",
         "status": "ok", "end_to_end_p99_ms": 1000 * DURATION[interval] + load + k, "throughput_change": -0.01 * DURATION[interval]}
        for k in range(3) for window, load in (("quiet", 0), ("busy", 700)) for interval in DURATION
    ]  # fmt: skip
    return pd.DataFrame(rows)


QUESTION = Question(
    ("interval",), ("end_to_end_p99_ms", "throughput_change"), ("window", "interval"), "end_to_end_p99_ms",
    (Limit("throughput_change", at_least=-0.05),), (("interval", "10 s"),),
)  # fmt: skip


def test_tables(results):
    """Means with their confidence, differences run by run, and what matters."""
    means, apart, shares = sections(QUESTION, results)

    assert ["30 s", "4.4 s ± 0.4 s", "-4.0 % ± 0 %"] == [cell.replace("402 ms", "0.4 s") for cell in means.rows[1]]
    assert [["30 s", "-5 s ± 0 ms", "+5.0 % ± 0 %"]] == apart.rows
    assert "6 of them" in apart.title
    assert [["interval", "98 %", "98 %"], ["window", "2 %", "2 %"]] == shares.rows


def test_effects_of_worlds_that_all_settings_have_met(results):
    """In a race the others would show settings that did not run as if windows had done it."""
    results.loc[(results["replication"] > 0) & (results["window"] == "busy"), "end_to_end_p99_ms"] += 9000
    complete = results[results["replication"] == 0]
    shares = sections(QUESTION, results, complete)[-1]

    assert sections(QUESTION, complete)[-1] == shares
    assert sections(QUESTION, results)[-1] != shares


def test_worlds_without_a_value_are_counted(results):
    """A difference of fewer worlds than the others says of how many."""
    results.loc[results.index[:2], "throughput_change"] = float("nan")
    _, apart, _ = sections(QUESTION, results)

    assert [["30 s", "-5 s ± 0 ms", "+5.0 % ± 0 % (n=5)"]] == apart.rows


def test_the_sentence(results):
    """What to choose, what it gives, what it keeps and how sure that is."""
    answer = sentence(QUESTION, results)

    among = "1 of 2 settings keeps throughput_change at least -5.0 %"
    assert f"Least end_to_end_p99_ms: 4.4 s on average, with interval 30 s ({among}). Chosen in > 99 % of bootstrap resamples." == answer
    all_keep = replace(QUESTION, limits=(Limit("throughput_change", at_least=-0.5),))
    assert "(2 of 2 settings keep throughput_change at least -50 %)." in sentence(all_keep, results)


def test_few_worlds_tell_nothing(results):
    """Four windows gave a best setting, and an interval that held all settings."""
    few = results[results["window"].isin(sorted(results["window"].unique())[:1])]

    assert sentence(QUESTION, few).endswith("too few to tell: 5 or more are needed, by more windows or replications.")
    assert "bootstrap" not in sentence(QUESTION, few)


def test_an_answer_for_each_value(results):
    """Tables begin with it; what matters is asked of all together."""
    question = replace(QUESTION, by="window")
    means, apart, shares = sections(question, results)

    assert ["window", "interval", "end_to_end_p99_ms", "throughput_change"] == means.header
    assert [["quiet", "10 s", "9 s"], ["quiet", "30 s", "4 s"], ["busy", "10 s", "9.7 s"], ["busy", "30 s", "4.7 s"]] == [
        [*row[:2], row[2].partition(" ±")[0]] for row in means.rows
    ]
    assert [["quiet", "30 s", "-5 s ± 0 ms", "+5.0 % ± 0 %"], ["busy", "30 s", "-5 s ± 0 ms", "+5.0 % ± 0 %"]] == apart.rows
    assert [["interval", "98 %", "98 %"], ["window", "2 %", "2 %"]] == shares.rows
    quiet, busy = sentence(question, results).splitlines()
    assert quiet.startswith("window quiet: Least end_to_end_p99_ms: 4 s on")
    assert busy.startswith("window busy: Least end_to_end_p99_ms: 4.7 s on")


def test_a_mean_says_what_it_leaves_out(results):
    """Worlds without a value, e.g. those in which the job was not caught up within the run; of one world there is no interval."""
    results.loc[(results["window"] == "busy") & (results["interval"] == "30 s"), "end_to_end_p99_ms"] = float("nan")
    means = sections(QUESTION, results)[0]

    assert ["9.4 s ± 402 ms", "4 s ± 2.5 ms (n=3)"] == [row[1] for row in means.rows]
    assert "9 s" == sections(QUESTION, results[:1])[0].rows[0][1]


def test_when_nothing_will_do(results):
    limit = Limit("end_to_end_p99_ms", at_most=1.0)
    question = Question(("interval",), ("end_to_end_p99_ms",), ("interval",), "end_to_end_p99_ms", (limit,))

    assert "None of 2 settings keeps end_to_end_p99_ms at most 1 ms as a mean over windows x seeds." == sentence(question, results)


def test_no_results_no_tables(results):
    assert [] == sections(QUESTION, results.assign(strategy="none"))
