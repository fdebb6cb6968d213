"""The answer in words: planted causes by name, what is not known said, 80 columns kept."""

import pytest

from sim.jobs.history.explanation import answer, answer_text
from sim.jobs.history.history import MissingCheckpointError, ThreadShares
from sim.jobs.source.rest_answers import CheckpointConfig
from tests.jobs.history.conftest import acknowledged, history, pending, point


def squeezed(text):
    """Without its line breaks, and words that they broke."""
    return " ".join(text.split()).replace("- ", "-")


def test_one_under_way():
    src = [acknowledged(0, 50, 20, async_ms=10)]
    found = history(point(2, 3000, src, [acknowledged(0, 400, 100), pending(1)], "IN_PROGRESS"))
    text = answer_text(answer(found))

    assert "Checkpoint 2 (aligned) has been under way for 3 s" in text
    assert "sum to now" in text
    assert "Not acknowledged by 1 of 3 subtasks: sink[1]." in text


@pytest.mark.parametrize(
    ("count", "latest_ms", "said"),
    [
        (95, 30_000, "95 of 96 subtasks had acknowledged, the last 10 s after the trigger. GET "),
        (95, -1, "95 of 96 subtasks had acknowledged. GET "),
        (0, -1, "None of its 96 subtasks had acknowledged, not even one of a source, which waits for no barrier."),
        (96, -1, "Statistics of its subtasks are missing."),
    ],
)
def test_without_statistics_the_count_of_acknowledgements_is_told(count, latest_ms, said):
    told = {"num_subtasks": 96, "num_acknowledged_subtasks": count, "latest_ack_timestamp": latest_ms}
    one = point(2, 600_000, [], [], "FAILED", **told).model_copy(update={"tasks": {}})

    assert said in " ".join(answer_text(answer(history(one))).split())


def bare(number, took_ms=100, status="COMPLETED", **details):
    """A checkpoint without statistics of its subtasks, as a list of Flink's REST API has it."""
    return point(number, took_ms, [], [], status, **details).model_copy(update={"tasks": {}})


def test_the_counts_of_acknowledgements_of_failed_checkpoints_are_compared():
    failed = [bare(n, status="FAILED", num_subtasks=36, num_acknowledged_subtasks=4 * (n < 5)) for n in range(2, 6)]
    text = squeezed(answer_text(answer(history(*failed))))

    assert "They were acknowledged by 4 of 36 subtasks in 3, 0 of 36 subtasks in 1. That it is 4 in 3 speaks" in text


@pytest.mark.parametrize(("grown", "is_told"), [(2_000, True), (1_999, False), (-1, False)])
def test_state_that_grows_by_more_than_is_written_is_told(grown, is_told):
    points = [bare(n, state_size=6000 + grown * n, checkpointed_size=1000) for n in range(2, 8)]
    text = squeezed(answer_text(answer(history(*points))))

    assert (
        "State grows with each checkpoint, from 10 kB to 20 kB: by 2 kB, where a checkpoint writes 1 kB" in text
    ) == is_told


def test_back_pressure_is_followed_to_its_source():
    """The thread behind that is full is named, not the one that waits for it."""
    threads = {
        ("src", 0): ThreadShares(0.1, 0.9),
        ("sink", 0): ThreadShares(0.2, 0.0),
        ("sink", 1): ThreadShares(0.97, 0.0),
    }
    src, sink = [acknowledged(0, 950, 900, async_ms=10)], [acknowledged(0, 990, 950), acknowledged(1, 1000, 950)]
    text = answer_text(answer(history(point(2, 1000, src, sink), point(3, 1000, src, [*sink]), threads=threads), 2))

    assert "src[0]" in text
    assert "is back-pressured 90 %" not in text  # nobody was quicker: the coordinator's part
    late = [acknowledged(0, 50, 20), acknowledged(1, 1000, 900)]
    behind = answer_text(answer(history(point(2, 1000, [acknowledged(0, 50, 10)], late), threads=threads), 2))
    assert "sink[1] is busy 97 % of its time" in squeezed(behind)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (
            1,
            "does not keep its statistics any more (it keeps the last ones, web.checkpoints.history): there are 5 to 6",
        ),
        (9, "no checkpoint 9: there are 5 to 6"),
    ],
)
def test_one_that_is_not_there(number, message):
    points = [point(number, 100, [acknowledged(0, 50, 20)], [acknowledged(0, 100, 50)]) for number in (5, 6)]
    with pytest.raises(MissingCheckpointError) as error:
        answer(history(*points), number)
    assert message in str(error.value)


def test_a_job_without_checkpoints():
    with pytest.raises(MissingCheckpointError, match="has had no checkpoint yet"):
        answer(history())
    with pytest.raises(
        MissingCheckpointError, match=r"takes no checkpoints: execution\.checkpointing\.interval is not set"
    ):
        answer(history(config=CheckpointConfig()))
    with pytest.raises(MissingCheckpointError, match="has had 7 checkpoints, and the statistics of none are kept"):
        answer(history(counted=7), 3)


def test_bytes_that_explain_an_upload_and_bytes_that_do_not():
    """The same time for a file of the usual size is something else than bytes."""

    def explained(size):
        usual = [
            point(n, 200, [acknowledged(0, 30, 10)], [acknowledged(0, 200, 20, 0, 0, 170, size=100_000)])
            for n in (2, 3, 4)
        ]
        slow = point(5, 2000, [acknowledged(0, 30, 10)], [acknowledged(0, 2000, 20, 0, 0, 1970, size=size)])
        return squeezed(answer_text(answer(history(*usual, slow), 5)))

    assert "in its other 3 checkpoints 170 ms for 100 kB (median): bytes do not explain it" in explained(100_000)
    assert "in its other 3 checkpoints 170 ms for 100 kB (median)." in explained(900_000)
