"""The leveled tree: what a flush and a compaction leave, when they happen, and that no key is ever lost or invented."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.state import Lsm
from sim.storage.lsm import Density, LsmTree, Table, TreeImage, distinct, merged

SECOND = 1_000_000_000
NEVER_FULL = Lsm(memtable_bytes=10**12)


def sizes(tree):
    """Entries of each table, level by level."""
    return [[table.entries for table in level] for level in tree.levels]


def snapshots(tree, writes, count, every_ns=SECOND):
    """The tree at each of so many snapshots, with so many writes before each."""
    seen = []
    for i in range(count):
        tree.write(writes, i * every_ns, (i + 1) * every_ns)
        tree.flush((i + 1) * every_ns)
        seen.append(sizes(tree))
    return seen


def test_a_loaded_state_waits_in_the_memtable():
    """As much as the memtable holds is in no file before the first flush."""
    tree = LsmTree(Lsm(memtable_bytes=1000), 13, 100)

    assert sizes(tree) == [[10], []]
    assert tree.memtable_bytes == 300


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


def flushed(tables):
    """A tree of 1 MB, compacted at 1 MB/s, after so many snapshots with one write each."""
    tree = LsmTree(Lsm(memtable_bytes=10**12, compaction_bytes_per_second=1_000_000), 1000, 1000)
    for i in range(tables):
        tree.write(1, i, i + 1)
        tree.flush(i + 1)
    return tree


def test_a_compaction_takes_its_time():
    """1 MB at 1 MB/s: a snapshot half a second later still holds the old tables."""
    tree = flushed(4)
    tree.write(0, 4, SECOND // 2)

    assert sizes(tree)[0] == [1000, 1, 1, 1]
    tree.write(0, SECOND // 2, SECOND + 3_000_004 + 4)
    assert sizes(tree) == [[], [1000]]


def test_what_is_flushed_meanwhile_stays_above():
    """Only the tables that were there when a compaction began are merged."""
    tree = flushed(5)
    tree.write(0, 5, 2 * SECOND)

    assert sizes(tree) == [[1], [1000]]


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


def test_a_state_larger_than_level_1_has_long_been_there():
    """1000 keys of 100 B where level 1 takes 30 kB and level 2 90 kB: full tables in level 3, nothing above, nothing in memory."""
    tree = LsmTree(Lsm(memtable_bytes=25_000, base_bytes=30_000, multiplier=3, table_bytes=40_000), 1000, 100)

    assert sizes(tree) == [[], [], [], [400, 400, 200]]
    assert tree.memtable_bytes == 0


def test_a_level_smaller_than_an_entry_has_room_for_one():
    tree = LsmTree(Lsm(memtable_bytes=100, base_bytes=99, multiplier=10, table_bytes=1000), keys=50, entry_bytes=100)
    assert sizes(tree) == [[], [], [], [10, 10, 10, 10, 10]]


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


def test_an_update_of_a_new_key_is_no_new_key():
    """200 keys, as many new ones and 400 updates of any of these 400: 200 and 1 - (1 - 1/400)^400 of 400, together no more than 400."""
    tree = LsmTree(Lsm(memtable_bytes=10**12, level0_files=2), 200, 100, grows=True)
    tree.flush(0)
    tree.write(400, 0, 1, added=200)
    tree.flush(1)

    assert sizes(tree) == [[200, 400], []]
    tree.write(0, 1, 60 * SECOND)
    assert sizes(tree) == [[], [400]]


def test_a_tree_may_begin_empty():
    """10 new keys fill a memtable: 25 of them are two tables, and 5 in memory."""
    tree = LsmTree(Lsm(memtable_bytes=1000, level0_files=100), 0, 100, grows=True)
    tree.write(0, 0, 25, added=25)

    assert sizes(tree) == [[10, 10], []]
    assert (tree.keys, tree.memtable_bytes) == (25, 500)


def test_updates_before_the_first_key_leave_no_table():
    tree = LsmTree(NEVER_FULL, 0, 100, grows=True)
    tree.write(5, 0, 1)
    tree.flush(1)

    assert sizes(tree) == [[], []]


def test_a_restored_tree_has_as_many_keys_as_the_snapshot():
    tree = LsmTree(NEVER_FULL, 1000, 100, grows=True)
    tree.flush(0)
    image = tree.image
    tree.write(0, 0, 1, added=100)
    tree.stand(image, 1)

    assert tree.keys == 1000


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


def test_without_writes_or_keys_nothing_is_distinct():
    assert [distinct(0, 5), distinct(5, 0), distinct(5, 1)] == [0, 0, 1]


@pytest.mark.parametrize(("writes", "keys"), [(0, 10), (1, 10), (10, 10), (750, 10_081), (10**6, 1000), (5, 1)])
def test_distinct_keys_are_the_expectation(writes, keys):
    """keys * (1 - (1 - 1/keys)^writes), to the nearest entry."""
    exact = keys * (1 - (1 - Fraction(1, keys)) ** min(writes, 20_000))

    assert abs(distinct(writes, keys) - exact) <= Fraction(51, 100)


def test_a_merge_counts_common_keys_once():
    """Two tables with half of 1000 keys each, drawn independently: 750; loaded ones are different keys: 1000."""
    drawn = [Table(i, 0, 1000, 500, 0) for i in range(2)]
    loaded = [Table(i, 0, 1000, 500, 500) for i in range(2)]

    assert [(piece.entries, piece.loaded) for piece in merged(drawn, 10**6)] == [(750, 0)]
    assert [(piece.entries, piece.loaded) for piece in merged(loaded, 10**6)] == [(1000, 1000)]


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


def test_a_memtable_is_flushed_at_the_moment_it_is_full():
    """20 writes from 10 to 20 s, 10 fill it: at 15 and at 20 s."""

    class Recording(LsmTree):
        def flush(self, now_ns):
            times.append(now_ns)
            super().flush(now_ns)

    tree, times = Recording(Lsm(memtable_bytes=1000), 1, 100), []
    tree.flush(0)
    times.clear()
    tree.write(20, 10 * SECOND, 20 * SECOND)

    assert times == [15 * SECOND, 20 * SECOND]


def test_a_table_that_meets_no_other_goes_down_as_it_is():
    """Level 1 may hold 10 entries and holds 20: the first table goes, in no time, and both levels are counted anew."""
    above, below = (Table(0, 0, 10, 10, 10), Table(1, 10, 20, 10, 10)), Table(2, 20, 40, 20, 20)
    tree = LsmTree(Lsm(base_bytes=1000), 40, 100)
    tree.stand(TreeImage(((), above, (below,)), 5, 3, Density(40, 40)), 0)

    assert [[], [above[1]], [above[0], below]] == tree.levels
    assert tree._entries == [0, 10, 30]
    assert tree.edits == 6


def standing(*levels):
    """A tree with these tables below level 0, 1 kB per level-1 target, ten times that below; nothing is compacted."""
    tree = LsmTree(Lsm(memtable_bytes=1000, base_bytes=1000, multiplier=10), 300, 100)
    tree.leave()
    tree.levels = [[], *levels, []]
    tree._entries = [0] * len(tree.levels)
    tree._count(*range(len(tree.levels)))
    return tree


@pytest.mark.parametrize(("first", "second", "fullest"), [(10, 0, None), (11, 0, 1), (20, 200, 1), (20, 201, 2)])
def test_the_fullest_level_goes_first(first, second, fullest):
    """More than its target; of equals the upper one."""
    tree = standing([Table(1, 0, 300, first, 0)], [Table(2, 0, 300, second, 0)])

    assert fullest == tree._fullest()


def test_tables_of_a_level_take_turns():
    tree = standing([Table(number, 100 * number, 100 * number + 100, 50, 0) for number in range(3)])

    assert [tree._picked(1)[0] for _ in range(4)] == [0, 1, 2, 0]


def test_a_state_that_just_fits_a_level_lies_there():
    """Levels 1 and 2 hold 10 and 100 entries."""
    assert sizes(LsmTree(Lsm(memtable_bytes=100, base_bytes=1000), 100, 100)) == [[], [], [100]]


def test_an_entry_larger_than_the_memtable_is_flushed_alone():
    assert sizes(LsmTree(Lsm(memtable_bytes=50), 1, 100)) == [[1], []]


def test_a_level_that_a_compaction_overfills_is_compacted_next():
    """Four files of level 0 become 40 entries in level 1, which may hold 10: three of its tables go down."""
    tree = LsmTree(Lsm(base_bytes=1000, table_bytes=1000), 40, 100)
    tree.stand(TreeImage((tuple(Table(n, 0, 40, 40, 0) for n in range(4)), ()), 0, 4, Density(40, 40)), 0)
    tree.write(0, 0, 10 * SECOND)

    assert sizes(tree) == [[], [10], [10, 10, 10]]


def test_tables_side_by_side_have_no_keys_in_common():
    pieces = merged((Table(0, 0, 10, 5, 0), Table(1, 10, 20, 5, 0)), 100)

    assert [piece.entries for piece in pieces] == [10]


def test_a_flush_finds_the_compactions_that_are_over_by_then():
    tree = flushed(4)
    tree.write(1, 4, 5)
    tree.flush(2 * SECOND)

    assert sizes(tree) == [[1], [1000]]
    assert tree.edits == 7, "its beginning, five flushes and a compaction"


def test_loaded_keys_are_shared_out_and_none_is_added():
    """One loaded key over three ranges."""
    assert sum(piece.loaded for piece in merged((Table(0, 0, 3, 3, 1), Table(1, 1, 2, 1, 0)), 1)) == 1
