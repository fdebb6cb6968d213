"""Restart times by parallelism: each sentence holds of the simulated restarts, and predicted times beside recorded ones."""

import math
import re

import pytest

from benchmarks.restart_times import JOBS, compared, recorded_ms
from sim.advice.job import prepare_bench
from sim.advice.restart_times import restart_times_report
from sim.model.schema.study import load
from sim.results.formats import ms_text
from sim.runtime.simulate import simulate
from tests.claims.printed import Template, always, false_sentences, number, same_ms, weak_sentences
from tests.places import DATA, ROOT

LOST = DATA / "lost-task-managers"
PAGE = ROOT / "docs" / "your-own-job.md"
KEYS = r"[\w+.-]+(?:(?:, | and )[\w+.-]+)*?"


def times(told):
    return told["restart_times"]


def covers_all(told, match):
    longest_ms = max(row["range_ms"][1] for row in times(told))
    return longest_ms <= number(match["value"]) < longest_ms + 1000 and match["default"] == "5 min"


TEMPLATES = [
    Template(
        "covers",
        r"job\.autoscaler\.restart\.time: (?P<value>MS) covers every restart below \(the operator's default is (?P<default>MS)\)",
        lambda told, _: all(row["is_known"] for row in times(told)),
        covers_all,
    ),
    Template(
        "unknown",
        rf"job\.autoscaler\.restart\.time is unknown: no restart of all tasks is recorded, and assumed constants decide \((?P<keys>{KEYS})\)",
        lambda told, _: not all(row["is_known"] for row in times(told)),
        lambda told, match: told["recorded_ms"] is None and re.split(", | and ", match["keys"]) == told["assumed"],
    ),
    Template("once", r"Restart the job once and import it again", always, always),
    Template(
        "definition",
        r"From the end .*? all are\. The range covers both, assumed constants, and (?P<share>\d+) % more, as published recoveries "
        r"were longer\. Not included: .*? a failure",
        always,
        lambda told, match: match["share"] == "20",
    ),
    Template(
        "recorded",
        r"Its last recorded restart took (?P<recorded>MS), (?P<simulated>MS) simulated \(redeployed\)",
        lambda told, _: told["recorded_ms"] is not None,
        lambda told, match: (
            same_ms(match["recorded"], told["recorded_ms"])
            and same_ms(match["simulated"], *(row["redeployed_ms"] for row in times(told) if is_today(row)))
        ),
    ),
    Template(
        "assumed",
        rf"Assumed: (?P<keys>{KEYS})(?=\.$)",
        always,
        lambda told, match: re.split(", | and ", match["keys"]) == told["assumed"],
    ),
    Template(
        "stays",
        rf"Their parallelism stays, since rescaling them is not modelled: (?P<names>{KEYS})(?=\.$)",
        always,
        lambda told, match: (
            re.split(", | and ", match["names"]) == told["not_rescaled"]
            and not any(name in row["parallelism"] for row in times(told) for name in told["not_rescaled"])
        ),
    ),
]


def is_on_page(name, found):
    """Whether the table of recorded restarts has these numbers."""
    redeployed = "unknown" if math.isnan(found.redeployed_ms) else ms_text(found.redeployed_ms)
    cells = [ms_text(found.recorded_ms), redeployed, f"{ms_text(found.min_ms)} to {ms_text(found.max_ms)}"]
    row = f"| {' | '.join(cells)} |"
    return any(line.startswith(f"| {name}") and line.endswith(row) for line in PAGE.read_text().splitlines())


def is_today(row):
    return set(row["parallelism"].values()) == {2}


def asked(name, recorded_ms=None, overrides=(), factors=(1, 2)):
    bench = prepare_bench(LOST / name / "job.yaml", list(overrides), [], recovery_ms=None)
    found = restart_times_report(bench, recorded_ms, factors)
    return found.data, [part for part in found.parts if isinstance(part, str)]


CASES = [
    ("L2-lost-pressed-aligned", 3040.0),
    ("L2-lost-pressed-aligned", None),
    ("K7-lost-pressed-aligned", None),
]


def changed(text):
    """The sentence with another number, name of a key, or vertex."""
    for found in re.finditer(r"\d+(?:\.\d+)?(?= ms| s| min| %)", text):
        yield f"{text[: found.start()]}{float(found[0]) + 7:g}{text[found.end() :]}"
    for word in ("state-start", "fresh-start", "log"):
        if word in text.split(": ")[-1]:
            yield text.replace(word, f"{word}s")


def test_sentences_are_true_and_a_changed_number_or_name_is_false():
    exercised = set()
    for name, recorded in CASES:
        told, texts = asked(name, recorded)
        wrong, used = false_sentences(told, texts, ["-"], TEMPLATES)
        tried, weak = weak_sentences(told, texts, TEMPLATES, changed)
        exercised |= used
        assert (wrong, weak) == ([], [])
        assert tried >= 3
    assert exercised == {template.name for template in TEMPLATES}


def test_a_time_is_that_of_a_rescale_from_a_checkpoint():
    """At four times the parallelism, and what `restart.fresh-start` adds to each task of a redeployment."""
    told, _ = asked("L2-lost-pressed-aligned", factors=(4,))
    row = next(row for row in times(told) if 8 in row["parallelism"].values())
    file = LOST / "L2-lost-pressed-aligned" / "job.yaml"
    rescale = "{at: 65 s, parallelism: {profile+out-writer: 8, parse: 8}, from: checkpoint}"

    def downtime_ms(*overrides):
        (scenario,) = load(file, [f"rescale={rescale}", "faults=[]", *overrides]).scenarios
        return simulate(scenario, check=False).recoveries.iloc[0]["downtime"]

    assert row["in_place_ms"] == pytest.approx(downtime_ms(), rel=0.02)
    assert row["redeployed_ms"] == pytest.approx(downtime_ms("restart.fresh-start=0 s") + 2919, rel=0.02)


def test_without_checkpoints_there_is_nothing_to_say():
    _, texts = asked("L2-lost-pressed-aligned", overrides=["checkpoint.interval=off"])

    assert texts == ["Restart times are unknown: the job takes no checkpoints, so it restarts without state."]


@pytest.mark.parametrize("name", ["L1-lost-calm-aligned", "L2-lost-pressed-aligned", "A1-adaptive-aligned"])
def test_recorded_restarts_are_in_the_range(name, tmp_path):
    """Of jobs that were imported before; within 45 % of the time itself."""
    found = compared(name, tmp_path)

    assert is_on_page(name, found)
    assert found.min_ms <= found.recorded_ms <= found.max_ms
    assert abs(found.redeployed_ms / found.recorded_ms - 1) < 0.45


def test_where_constants_decide_the_time_is_unknown(tmp_path):
    """K7 was recorded on a machine that was busy to the full: 7.1 s, out of the range.  Nothing else is claimed of it."""
    found = compared("K7-lost-pressed-aligned", tmp_path)

    assert is_on_page("K7-lost-pressed-aligned", found)
    assert math.isnan(found.redeployed_ms)
    assert found.max_ms < found.recorded_ms == recorded_ms(JOBS["K7-lost-pressed-aligned"] / "jobmanager.log")


@pytest.mark.parametrize("name", ["values-100", "values-1000", "values-10000"])
def test_restarts_of_the_history_are_in_the_range(name, tmp_path):
    """A little long: 1 s for a fresh process, of which these needed half; the import knows how fast they read."""
    found = compared(name, tmp_path)

    assert is_on_page(name, found)
    assert found.recorded_ms <= found.redeployed_ms <= 1.6 * found.recorded_ms, ms_text(found.redeployed_ms)
