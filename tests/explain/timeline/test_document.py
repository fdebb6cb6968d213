"""The window of a timeline, and the text of its file."""

import json
from types import SimpleNamespace

import pytest

from sim.explain.timeline import Timeline, WindowError, document, samples_in
from sim.model.units import parse_duration

RUN_NS = parse_duration("60 s")


@pytest.mark.parametrize(
    ("window", "step_ns", "begin_ns", "end_ns"),
    [
        ((0, None), 60_000_000, 0, RUN_NS),
        ((0, parse_duration("2 h")), 60_000_000, 0, RUN_NS),
        ((parse_duration("59.9 s"), None), 1_000_000, parse_duration("59.9 s"), RUN_NS),
    ],
)
def test_a_window_ends_with_the_run_and_has_a_thousand_looks_of_a_millisecond_or_more(
    window, step_ns, begin_ns, end_ns
):
    samples = samples_in(RUN_NS, *window)

    assert (step_ns, begin_ns, end_ns) == (samples.step_ns, samples.begin_ns, samples.end_ns)


def test_a_window_that_shows_nothing_is_refused():
    with pytest.raises(WindowError, match="the window ends at 1 min: nothing lies in it"):
        samples_in(RUN_NS, RUN_NS, None)


def test_a_file_says_what_it_shows_and_what_it_leaves_out():
    samples = samples_in(RUN_NS, 0, None)

    written = json.loads(
        document("aligned", SimpleNamespace(name="tiny", question="?"), samples, Timeline(0, RUN_NS, 7))
    )

    assert written["otherData"] == {"run": "tiny, aligned", "question": "?", "step_ns": 60_000_000, "left_out": 7}
