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
