"""A simulated checkpoint draws one checkpoint of the history, for all its subtasks."""

from sim.model.randomness import Residual, Residuals, drawn_ns

RESIDUALS = Residuals(
    4, (Residual("map", "sync", ((0, 1, 2, 3), (10, 11, 12, 13))), Residual("sink", "async", ((20, 21, 22, 23),)))
)


def row(checkpoint, seed=1):
    return drawn_ns(RESIDUALS, "sync", "map", 0, checkpoint, seed)


def test_all_subtasks_and_parts_take_the_same_checkpoint():
    for checkpoint in range(1, 50):
        drawn = row(checkpoint)

        assert 10 + drawn == drawn_ns(RESIDUALS, "sync", "map", 1, checkpoint, 1)
        assert 20 + drawn == drawn_ns(RESIDUALS, "async", "sink", 0, checkpoint, 1)


def test_further_subtasks_take_those_of_the_history_in_turn():
    assert [row(7), 10 + row(7), row(7)] == [drawn_ns(RESIDUALS, "sync", "map", subtask, 7, 1) for subtask in (2, 3, 4)]


def test_each_checkpoint_of_the_history_is_drawn_once_before_any_is_drawn_again():
    drawn = [row(checkpoint) for checkpoint in range(4000)]

    assert all({0, 1, 2, 3} == set(drawn[begin : begin + 4]) for begin in range(0, 4000, 4))
    assert all(900 < drawn[::4].count(value) * 4 < 1100 for value in range(4)), "in any order"


def test_another_seed_draws_others_and_the_same_seed_the_same():
    first, again, other = ([row(checkpoint, seed) for checkpoint in range(30)] for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_nothing_is_drawn_where_the_history_has_nothing():
    assert [drawn_ns(RESIDUALS, "async", "map", 0, 1, 1), drawn_ns(Residuals(), "sync", "map", 0, 1, 1)] == [0, 0]
