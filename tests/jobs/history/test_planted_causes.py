"""A real Flink, and causes that were not planted (`tests/data/planted/README.md`)."""

import pytest

from benchmarks.flink.causes import RUNS
from benchmarks.flink.planted import is_met, verdicts
from sim.jobs.history.causes import process_pauses
from sim.jobs.history.history import garbage_text
from tests.places import DATA


@pytest.mark.parametrize(
    "name", ["hot", "sink", "window", "disk", "users-jobs/J4-pressed-aligned-r1", "users-jobs/R3-firing-aligned"]
)
def test_no_pause_where_none_was(recorded, name):
    """Back-pressure, windows and slow files are no pauses of a process, and its garbage is as usual."""
    found = recorded(f"{name}.zip" if "/" in name else f"planted/{name}.zip")

    assert not [point.id for point in found.detailed if list(process_pauses(found, point))]
    assert not garbage_text(found.garbage, found.age_ms)


# ---- Causes planted afresh on a real Flink, and whether they are named (`tests/data/planted-afresh/README.md`).


KEPT = DATA / "planted-afresh"
CAUSES = {cause.name: cause for run in RUNS for cause in run.causes}
TOO_SHORT = {"window"}
"""Timers that fire for 400 ms every 11 s: three of forty checkpoints meet them, which shows no rhythm."""


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_is_named(name):
    """By the words that were written down before it was planted."""
    ((_, verdict, answers),) = verdicts(KEPT, [CAUSES[name]])

    assert ("not" if name in TOO_SHORT else "named") == verdict, [text for _, _, text, is_met in answers if not is_met]


def test_the_words_of_a_cause_fit_the_answers_about_no_other():
    """But those of its kind: two slow disks, two busy sinks, two timers."""
    names = {"tm": r"tm-\d", "other": r"tm-\d"}
    texts = {cause.name: [text for _, _, text, _ in answers] for cause, _, answers in verdicts(KEPT, CAUSES.values())}
    fitting = {
        (planted, name)
        for planted, answers in texts.items()
        for name, cause in CAUSES.items()
        if planted != name
        and all(any(is_met(question, text, names) for text in answers) for question in cause.questions)
    }

    assert {("expired", "disk"), ("hot", "sink"), ("timers", "window")} == fitting
