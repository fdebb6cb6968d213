"""Numbers of an inferred scenario whose truth is known, because their counters are made from it here."""

from types import SimpleNamespace

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.edges import find_unbalanced
from sim.jobs.infer.options import infer_checkpoint
from sim.jobs.infer.windows import phase_concentration_p_value
from sim.jobs.source.rest_answers import CheckpointConfig
from tests.jobs.infer.test_edges_counted import Job, flow, vertex


def configured(**config):
    draft = Draft()
    infer_checkpoint(
        draft, SimpleNamespace(checkpoint_config=CheckpointConfig(**config), snapshot=SimpleNamespace(source="saved"))
    )
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
    ],
)
def test_checkpoints_are_configured_as_the_job_says(config, expected):
    """What is not said, and what means never, is left to the defaults."""
    assert {"barriers": "aligned"} | expected == configured(**config)


def test_a_writer_whose_readers_read_less_is_blamed_and_not_its_reader():
    """'join' reads all that 'a' writes and nothing of 'b': less than both write for it, and as much as 'a' does."""
    vertices = [vertex("a"), vertex("b"), vertex("join", "a", "b")]
    found = list(
        find_unbalanced(Job(vertices), {"a": flow(written=1000.0), "b": flow(written=400.0), "join": flow(1000.0)})
    )

    assert [edge.phrase for edge in found] == ["'join' reads 1,000 records/s and its inputs write 1,400/s for it alone"]


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
