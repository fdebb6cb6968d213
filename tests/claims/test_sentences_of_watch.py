"""Each sentence of `ckptsim watch` about made-up jobs has a template and is true; and the corners in which some were not."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from sim.jobs.watch.forecast import Circumstances, Forecast, reasons
from sim.jobs.watch.observation import JobObservation, SeenCheckpoint, changes
from sim.jobs.watch.serving import page_of, verdict
from sim.jobs.watch.watcher import Watcher, WatchState
from tests.claims.printed import check, weak_sentences
from tests.claims.watch_templates import TEMPLATES, play

S = 1000
BEGUN_MS = 1_795_000_000_000
USUAL = Circumstances({"src": 1000.0}, {"map": 0.5}, {"map": 1e6}, {"upload": 80.0, "alignment": 20.0})
FORECAST = Forecast(BEGUN_MS, "a" * 32, 100.0, 200.0, (1.5, 2.0), 20, USUAL)
OBSERVATION = JobObservation(
    BEGUN_MS,
    "a" * 32,
    "orders",
    "RUNNING",
    BEGUN_MS - 3600 * S,
    "2.3.0",
    {"src": 1, "map": 2},
    ("src",),
    {"checkpoints": {"interval": "10000"}},
    1,
    0,
    (),
    {},
    (),
)


def point(number, ms=100.0, *, status="COMPLETED", failure="", **more):
    return SeenCheckpoint("a" * 32, number, status, BEGUN_MS + number * 10 * S, ms, failure=failure, **more)


def watcher(*points, forecast=FORECAST, limit_ms=None):
    return Watcher(WatchState(observation=OBSERVATION, recent=list(points), forecast=forecast), limit_ms)


def texts(events):
    return [event.text for event in events]


def at(seconds, *points, **values):
    """An observation with these checkpoints."""
    return replace(OBSERVATION, time_ms=BEGUN_MS + seconds * S, checkpoints=points, **values), BEGUN_MS + seconds * S


def test_the_job_did_not_begin_again_because_an_answer_was_missing():
    """What had no answer is as it was, and what was never known tells of no failure since."""
    unanswered = replace(OBSERVATION, restored=None, failures_ms=None)
    known = replace(OBSERVATION, restored=3, failures_ms=(BEGUN_MS - 60 * S,))

    assert not [*changes(unanswered, known)]
    told = watcher()
    told.state.observation = known
    told.process_observation(unanswered, BEGUN_MS)
    assert (3, known.failures_ms) == (told.state.observation.restored, told.state.observation.failures_ms)


def left(told, *points):
    return next(
        text for text in texts(told.process_observation(*at(1000, *points))[0]) if text.startswith("checkpoints leave")
    )


def test_checkpoints_that_all_expire_have_no_percentiles():
    """And a factor of a simulation says nothing of them."""
    expired = [
        point(n, 600.0 * S, status="FAILED", failure="Checkpoint expired before completing.") for n in range(2, 10)
    ]

    assert "; now none completes. Why is not known" in left(watcher(), *expired)


@pytest.mark.parametrize(
    ("usual", "said"),
    [
        (USUAL, "Why is not known: of load and threads nothing is known."),
        (
            replace(USUAL, state={}, parts_ms={}),
            "Why is not known: of load, state, threads and the parts of checkpoints nothing is known.",
        ),
    ],
)
def test_what_is_not_known_is_not_as_it_was(usual, said):
    """No counters of the job: whether its load is another one cannot be told."""
    now = Circumstances(state={"map": 1e6}, parts_ms={"upload": 82.0})

    assert said.rpartition(": ")[2] in reasons(usual, now)[1]


def test_load_and_state_as_they_were_are_said_to_be():
    assert (
        reasons(USUAL, USUAL)[1]
        == "Why is not known: load, state, threads and the parts of checkpoints are as they were."
    )


def test_shorter_checkpoints_have_a_part_that_shrank():
    """And threads that work less: both are named, and nothing is said to be as it was."""
    now = replace(USUAL, busy={"map": 0.1}, parts_ms={"alignment": 20.0})

    assert reasons(USUAL, now, -1)[1] == (
        "Threads of 'map' work 10 % of the time on average (before: 50 %); of a checkpoint, upload shrank most: 0 ms (before: 80 ms)."
    )


def test_a_value_beyond_a_limit_does_not_look_like_it():
    told = watcher(*(point(n, 1004.0) for n in range(2, 12)), limit_ms=1000.0)

    assert texts(told._report_limit(BEGUN_MS)) == ["checkpoints are longer than 1 s: p90 of the last 10 is 1.004 s"]
    assert verdict(told).startswith(
        "Checkpoints are longer than their limit, 1 s: p90 1.004 s. It is not sure yet whether checkpoints keep their forecast"
    )


def test_checkpoints_within_their_limit_or_too_few_are_not_said_to_exceed_it():
    for told in (
        watcher(*(point(n, 1000.0) for n in range(2, 12)), limit_ms=1000.0),
        watcher(*(point(n, 1004.0) for n in range(2, 7)), limit_ms=1000.0),
        watcher(*(point(n, 1004.0) for n in range(2, 12))),
    ):
        assert verdict(told).startswith("It is not sure yet whether checkpoints keep their forecast (p50 is above it")


@pytest.mark.parametrize(("made_s", "is_drawn"), [(50, True), (500, False)])
def test_a_forecast_that_is_not_drawn_is_not_in_the_legend(made_s, is_drawn):
    """One that was made after the last checkpoint has no length yet."""
    forecast = replace(FORECAST, made_ms=BEGUN_MS + made_s * S)
    durations = page_of(watcher(*(point(n) for n in range(2, 12)), forecast=forecast), [], BEGUN_MS).blocks[0].chart

    spans = durations.marks[durations.marks["shape"] == "span"]
    assert len(spans) == 3 * is_drawn
    assert (spans["x"] < spans["x2"]).all()
    assert any("forecast" in name for name in durations.colours) == is_drawn


def test_sentences_about_made_up_jobs_are_true():
    """And with another number each is false, at the moment that it is said."""
    found, exercised, weak, count = {}, Counter(), [], 0
    others = {template.name for template in TEMPLATES} - STRONG
    for seed in range(30):
        for told, text in play(seed):
            wrong, used = check([(seed, told, [text])], TEMPLATES)
            found |= wrong
            exercised += used
            tried, own = weak_sentences(told, [text], TEMPLATES, changed, others) if seed < 8 else (0, [])
            count, weak = count + tried, weak + own

    assert found == {}
    assert weak == []
    assert count > 100
    assert {template.name for template in TEMPLATES if not exercised[template.name]} <= UNEXERCISED


def changed(text):
    """A sentence with another number, one at a time."""
    for match in re.finditer(r"(?<![\w.:-])\d+(?:\.\d+)?(?![\w.:-]*[:-]\d)", text):
        yield f"{text[: match.start()]}{1.37 * float(match[0]) + 1:.{1 if '.' in match[0] else 0}f}{text[match.end() :]}"


STRONG = {
    "missed",
    "began again",
    "TaskManagers",
    "forecast",
    "limit",
    "exceeds the limit",
    "failed",
    "answers again",
    "keeps",
    "has left",
    "none is held",
    "completed",
}
"""Their numbers are claimed to the digit; those of the others within what looks and medians blur."""
UNEXERCISED = {"another job"}
"""`tests/jobs/watch/test_watch.py` has other jobs.  It also has what a simulation says, which has no template here."""
