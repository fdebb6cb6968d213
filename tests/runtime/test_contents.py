"""What a checkpoint holds of each task: its transactions."""

from sim.runtime.context import Uncommitted


def test_the_same_tasks_keep_their_numbers():
    """What is in flight goes on growing: it is the same list."""
    names = (("sink", 0), ("sink", 1))
    kept = Uncommitted(3, (), [])
    assert kept is kept.renumbered(names, list(names))
