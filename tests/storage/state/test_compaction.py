"""One thread for several trees: who waits for whom, and that an own thread is the same as being alone at a shared one."""

from sim.model.state import Lsm
from sim.storage.lsm import CompactionThread, LsmTree

SECOND = 1_000_000_000
MB_PER_SECOND = Lsm(memtable_bytes=10**12, compaction_bytes_per_second=1_000_000)


def trees(count, thread):
    """Each has 1 MB in four tables of level 0 at 4 ns, so a second of compaction is due."""
    made = [LsmTree(MB_PER_SECOND, 1000, 1000, thread) for _ in range(count)]
    for i in range(4):
        for tree in made:
            tree.write(1, i, i + 1)
            tree.flush(i + 1)
    return made


def compacted(made, at_ns):
    """Which of them have nothing left in level 0."""
    for tree in made:
        tree.write(0, at_ns, at_ns)
    return [not tree.levels[0] for tree in made]


def test_trees_take_turns():
    """1.003 MB each at 1 MB/s: the third is done after three seconds; with threads of their own all are after one."""
    shared, own, each_ns = trees(3, CompactionThread()), trees(3, None), 1003 * SECOND // 1000

    assert [compacted(shared, n * each_ns + 4) for n in (1, 2, 3)] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert compacted(own, each_ns + 4) == [True, True, True]


def test_the_next_begins_when_the_last_one_ended_not_when_somebody_looks():
    """Nobody says anything for ten seconds: by then all are done, as if somebody had looked all the time."""
    shared = trees(3, CompactionThread())

    assert compacted(shared[:1], 10 * SECOND) + [not tree.levels[0] for tree in shared[1:]] == [True, True, True]


def test_a_tree_that_is_gone_holds_nobody_up():
    """The first one leaves in the middle of its compaction, the second before it has begun: the third begins at once."""
    thread = CompactionThread()
    first, second, third = trees(3, thread)
    thread.advance(SECOND // 2)
    second.leave()
    first.leave()

    assert compacted([third], SECOND) == [False]
    assert compacted([third], 16 * SECOND // 10) == [True]
    assert [len(tree.levels[0]) for tree in (first, second)] == [4, 4]
