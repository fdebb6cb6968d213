"""Numbers of an inferred scenario whose truth is known, because their counters are made from it here."""

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.options import infer_checkpoint
from sim.jobs.infer.windows import phase_concentration_p_value
from tests.jobs.infer.made_jobs import MadeJob


def configured(**config):
    draft = Draft()
    infer_checkpoint(draft, MadeJob([], config=config))
    return draft.document["checkpoint"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"interval": 30_000}, {"interval": "30 s"}),
        ({"interval": 30_000, "timeout": 90_000}, {"interval": "30 s", "timeout": "90 s"}),
        ({"interval": 30_000, "timeout": 2**63 - 1}, {"interval": "30 s"}),
        ({"interval": 30_000, "timeout": 0}, {"interval": "30 s"}),
        ({"interval": 2**63 - 1}, {"interval": "off"}),
        ({"interval": 30_000, "min_pause": 1500}, {"interval": "30 s", "min-pause": "1.5 s"}),
        ({"interval": 30_000, "min_pause": 0, "max_concurrent": 1}, {"interval": "30 s"}),
        ({"interval": 30_000, "max_concurrent": 2}, {"interval": "30 s", "max-concurrent": 2}),
        (
            {"interval": 30_000, "max_concurrent": 2, "unaligned_checkpoints": True},
            {"interval": "30 s", "barriers": "unaligned"},
        ),
        ({"interval": 30_000, "tolerable_failed_checkpoints": 0}, {"interval": "30 s", "tolerable-failed": 0}),
        ({"interval": 30_000, "tolerable_failed_checkpoints": -1}, {"interval": "30 s", "tolerable-failed": 0}),
        ({"interval": 30_000, "checkpoints_after_tasks_finish": False}, {"interval": "30 s", "finish": "off"}),
        ({"interval": 30_000, "mode": "at_least_once"}, {"interval": "30 s", "barriers": "at-least-once"}),
        (
            {"interval": 30_000, "unaligned_checkpoints": True, "aligned_checkpoint_timeout": 500},
            {"interval": "30 s", "barriers": {"aligned-timeout": "500 ms"}},
        ),
    ],
)
def test_checkpoints_are_configured_as_the_job_says(config, expected):
    """What is not said, and what means never, is left to the defaults."""
    assert {"barriers": "aligned"} | expected == configured(**config)


def test_durations_that_gather_at_a_turn_are_told_from_those_that_do_not():
    """Long ones at one turn of four, long ones dealt out evenly, and all checkpoints at one turn: nothing is told of a rhythm there."""
    turns = [number % 4 / 4 for number in range(24)]

    assert phase_concentration_p_value(turns, [9.0 if turn == 0.25 else 1.0 for turn in turns]) < 0.001
    assert phase_concentration_p_value(turns, [9.0 if number // 4 == 2 else 1.0 for number in range(24)]) > 0.9
    assert (
        1.0
        == phase_concentration_p_value([0.25] * 24, [float(number) for number in range(24)])
        == phase_concentration_p_value(turns, [3.0] * 24)
        == phase_concentration_p_value([], [])
    )
    assert phase_concentration_p_value([0.0, 0.5] * 12, [1.0, 2.0] * 12) < 0.001
