"""How far predictions of a what-if are off: what was predicted, what the package makes of it, and the page."""

import csv

import pytest

from benchmarks.lab.as_answers import as_answers
from benchmarks.lab.backtest_verdicts import (
    BEGIN,
    DATA,
    END,
    PAGE,
    WHAT_IFS,
    document,
    factor,
    read_results,
    settings,
    table,
)
from benchmarks.lab.backtest_verdicts import main as verdicts
from benchmarks.lab.what_ifs_learned import is_covered, is_promised, learned
from sim.jobs.evidence.what_ifs import FILE, evidence, read_factors
from sim.jobs.reading import infer
from tests.scenarios import read_scenario

SEVERE = "recordings/p2-severe-aligned.json.gz"


def test_the_package_and_the_page_have_what_was_predicted(capsys):
    """`--write` wrote both from the settings that are kept."""
    found = read_results()
    block = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()
    verdicts([])

    assert FILE.read_text(encoding="utf-8") == document(found)
    assert table(found) == block == capsys.readouterr().out.strip()
    assert read_factors(document(found)) == evidence()


def test_every_what_if_is_of_recordings_that_are_there():
    with WHAT_IFS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kept = {(setting.imported, setting.predicted) for setting in read_results()}

    assert {(row["imported"], row["predicted"]) for row in rows} == kept
    assert all((DATA / name).is_file() for pair in kept for name in pair)
    assert all((row["imported"] == row["predicted"]) == (not row["changes"]) for row in rows)


def test_nine_of_ten_settings_lie_within_where_their_job_is_left_out():
    """Of all, and of all kinds of changes but those of a few jobs, where leaving one out leaves too little."""
    found = read_results()
    rows = {kinds: row.covered for kinds, row in learned(found).items() if row.covered is not None}
    promised = [setting for setting in found if is_promised(setting, found)]

    assert sum(all(is_covered(setting, found)) for setting in promised) >= 0.9 * len(promised)
    assert {(), ("barriers",), ("interval",), ("parallelism",), ("load",), ("storage",), ("network",)} < rows.keys()
    assert {kinds for kinds, covered in rows.items() if min(covered) < 0.9} <= {
        ("backend",),
        ("barriers", "load"),
        ("barriers", "backend"),
    }
    assert min(rows["backend",]) > 0.8
    assert {kinds for kinds, row in evidence().items() if row.settings and row.covered is None} == set()


def test_our_own_recording_is_imported_from_what_its_rest_api_said():
    """What the recording is configured with, found again: parallelism, exchange, place of tasks, and 3 ms per record."""
    inference = infer(as_answers(DATA / SEVERE))
    scenario = read_scenario(inference.text)
    sink = scenario.job.vertex("sink")

    assert (
        scenario.cluster.placement,
        scenario.checkpoint.interval_ns,
        sink.parallelism,
        sink.inputs[0].ship,
    ) == ("isolated", 4 * 10**9, 2, "hash")
    assert pytest.approx(sink.inputs[0].service.mean, rel=0.05) == 3e6


def test_a_setting_is_predicted_from_the_other_recording():
    """The interval of `maxconcurrent2`, asked of the run with 4 s between checkpoints."""
    changes = "checkpoint.interval=1500 ms; checkpoint.max-concurrent=2"
    row = {
        "family": "severe",
        "imported": SEVERE,
        "predicted": "recordings/maxconcurrent2-p2-severe-aligned.json.gz",
        "changes": changes,
    }
    (found,) = settings([row])

    assert found.kinds == ("interval",)
    assert max(found.off_by) < 1.2
    assert found.observed_ms[0] == pytest.approx(5000, rel=0.3)


def test_noise_of_a_machine_is_no_error():
    assert (factor(100, 159), factor(100, 200), factor(0, 59)) == (1.0, 2.0, 1.0)
