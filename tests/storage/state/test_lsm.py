"""The leveled tree: what a flush and a compaction leave, when they happen, and that no key is ever lost or invented."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sim.model.state import Lsm
from sim.storage.lsm import Density, LsmTree, Table, TreeImage, merged

SECOND = 1_000_000_000
NEVER_FULL = Lsm(memtable_bytes=10**12)


def sizes(tree: LsmTree) -> list[list[int]]:
    """Entries of each table, level by level."""
    return [[table.entries for table in level] for level in tree.levels]


def snapshots(tree: LsmTree, writes: int, count: int, every_ns: int = SECOND) -> list[list[list[int]]]:
    """The tree at each of so many snapshots, with so many writes before each."""
    seen = []
    for i in range(count):
        tree.write(writes, i * every_ns, (i + 1) * every_ns)
        tree.flush((i + 1) * every_ns)
        seen.append(sizes(tree))
    return seen


def test_every_snapshot_adds_a_table_and_the_fourth_is_compacted():
    """1000 keys in the memtable, 4 level-0 files start a compaction that the next snapshot sees."""
    seen = snapshots(LsmTree(NEVER_FULL, 1000, 100), writes=1, count=6)

    assert [[[*seen[0][0]], []], *seen[1:4]] == [
        [[1000], []],
        [[1000, 1], []],
        [[1000, 1, 1], []],
        [[1000, 1, 1, 1], []],
    ]
    assert seen[4:] == [[[1], [1000]], [[1, 1], [1000]]]


def test_a_compaction_takes_its_time():
    """1 MB at 1 MB/s: a snapshot half a second later still holds the old tables."""
    tree = LsmTree(Lsm(memtable_bytes=10**12, compaction_bytes_per_second=1_000_000), 1000, 1000)
    for i in range(4):
        tree.write(1, i, i + 1)
        tree.flush(i + 1)
    tree.write(0, 4, SECOND // 2)

    assert sizes(tree)[0] == [1000, 1, 1, 1]
    tree.write(0, SECOND // 2, SECOND + 3_000_004 + 4)
    assert sizes(tree) == [[], [1000]]


def test_a_full_memtable_does_not_wait_for_a_snapshot():
    """25 writes into a memtable of 10, evenly over 25 ns: flushes after 10 and 20."""
    tree = LsmTree(Lsm(memtable_bytes=1000, level0_files=10**6), 100_000, 100)
    loaded = len(tree.live)
    tree.write(25, 0, 25)

    assert [table.entries for table in tree.live[loaded:]] == [10, 10]
    assert tree.memtable_bytes == 500


def test_managed_memory_bounds_the_memtable():
    """A third for write buffers, flushed at 7/8 of it; never more than the memtable itself."""
    assert Lsm(managed_bytes=64 << 20).memtable_limit_bytes == (64 << 20) * 7 // 24
    assert 64 << 20 == Lsm(managed_bytes=1 << 40).memtable_limit_bytes == Lsm().memtable_limit_bytes


def test_tables_below_level_0_have_the_target_size():
    """1000 keys of 100 B in tables of 30 kB: three full ones and the rest."""
    tree = LsmTree(Lsm(memtable_bytes=25_000, table_bytes=30_000, level0_files=4), 1000, 100)

    assert sizes(tree) == [[], [300, 300, 300, 100]]


def test_a_table_moves_down_without_being_rewritten():
    """Nothing below to merge with: same name, next level, no upload."""
    tree = LsmTree(Lsm(memtable_bytes=10**9, base_bytes=10_000), 1000, 100)
    upper, other, lower = Table(7, 0, 100, 90, 90), Table(8, 500, 600, 90, 90), Table(9, 300, 500, 150, 150)
    tree.stand(TreeImage(((), (upper, other), (lower,)), 5, 10, Density(1000, 1000)), 0)

    assert [[], [other], [upper, lower]] == tree.levels
    assert tree.edits == 6


def test_new_keys_are_in_the_next_table_and_in_what_it_is_merged_into():
    """1000 keys, then 50 new ones before each of 4 snapshots: the tables hold them, and the compaction loses none."""
    tree = LsmTree(NEVER_FULL, 1000, 100, grows=True)
    tree.flush(0)
    for i in range(1, 5):
        tree.write(0, i * SECOND, (i + 1) * SECOND, added=50)
        tree.flush((i + 1) * SECOND)
    tree.write(0, 6 * SECOND, 60 * SECOND)

    assert tree.keys == 1200
    assert sizes(tree) == [[50], [1150]]


def test_updates_before_the_first_key_leave_no_table():
    tree = LsmTree(NEVER_FULL, 0, 100, grows=True)
    tree.write(5, 0, 1)
    tree.flush(1)

    assert sizes(tree) == [[], []]


@given(
    st.integers(0, 400), st.integers(1, 60), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=12)
)
def test_a_growing_tree_holds_every_key(keys, full, writes):
    """Whatever is written and added when: all keys are somewhere, and no level holds more than there are."""
    tree = LsmTree(
        Lsm(memtable_bytes=full, table_bytes=37, base_bytes=50, multiplier=2, level0_files=3), keys, 1, grows=True
    )
    for i, (count, added) in enumerate(writes):
        tree.write(count, i * 1000, (i + 1) * 1000, added)
        tree.flush((i + 1) * 1000)
    tree.flush(10**6)
    tree.write(0, 10**6, 10**15)

    assert keys + sum(added for _, added in writes) == tree.keys
    assert all(table.loaded <= table.entries for table in tree.live)
    assert all(lower.last <= upper.first for level in tree.levels[1:] for lower, upper in pairwise(level))
    assert 2 * tree.edits >= abs(tree.keys - sum(table.loaded for table in tree.live)), (
        "rounding: a key or two per compaction"
    )
    assert all(sum(table.entries for table in level) <= tree.keys + tree.edits for level in tree.levels[1:])


@given(st.integers(1, 400), st.integers(1, 60), st.lists(st.integers(0, 300), max_size=12), st.integers(1, 5))
def test_live_tables_hold_every_key(keys, full, writes, trigger):
    """Whatever is written when: levels below 0 have disjoint tables, none denser than its keys, and all keys are somewhere."""
    tree = LsmTree(Lsm(memtable_bytes=full, table_bytes=37, base_bytes=50, multiplier=2, level0_files=trigger), keys, 1)
    for i, count in enumerate(writes):
        tree.write(count, i * 1000, (i + 1) * 1000)
        tree.flush((i + 1) * 1000)
    tree.flush(10**6)
    tree.write(0, 10**6, 10**15)

    assert all(table.loaded <= table.entries <= table.last - table.first for table in tree.live)
    assert all(lower.last <= upper.first for level in tree.levels[1:] for lower, upper in pairwise(level))
    # rounding: less than a key per compaction
    assert keys - tree.edits <= sum(table.loaded for table in tree.live) <= keys
    assert len(tree.live) == len({table.number for table in tree.live})


def test_a_merge_is_cut_where_tables_are_full():
    """A range is cut in proportion to its entries, in whole keys."""
    pieces = list(merged([Table(1, 0, 100, 50, 50), Table(2, 100, 200, 100, 100)], 60))

    assert [piece[:3] for piece in pieces] == [(0, 110, 60), (110, 170, 60), (170, 200, 30)]


def test_a_merge_of_few_keys_with_many_tables_loses_none():
    """Four keys at a time are rounded into the same ranges, until these have more than they have places for."""
    tree = LsmTree(Lsm(memtable_bytes=100, table_bytes=1000), 800, 100)

    assert sum(entries for level in sizes(tree) for entries in level) == 800


def test_a_flush_holds_each_key_once():
    """1000 writes to 1000 keys: 1000 * (1 - 1/e) of them, to the nearest."""
    tree = LsmTree(NEVER_FULL, 1000, 100)
    tree.flush(0)
    tree.write(1000, 0, 1)
    tree.flush(1)

    assert sizes(tree)[0] == [1000, 632]


def test_a_state_that_just_fits_a_level_lies_there():
    """Levels 1 and 2 hold 10 and 100 entries."""
    assert sizes(LsmTree(Lsm(memtable_bytes=100, base_bytes=1000), 100, 100)) == [[], [], [100]]


def test_a_level_that_a_compaction_overfills_is_compacted_next():
    """Four files of level 0 become 40 entries in level 1, which may hold 10: three of its tables go down."""
    tree = LsmTree(Lsm(base_bytes=1000, table_bytes=1000), 40, 100)
    tree.stand(TreeImage((tuple(Table(n, 0, 40, 40, 0) for n in range(4)), ()), 0, 4, Density(40, 40)), 0)
    tree.write(0, 0, 10 * SECOND)

    assert sizes(tree) == [[], [10], [10, 10, 10]]
