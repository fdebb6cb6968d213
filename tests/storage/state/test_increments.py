"""What the next increment may build upon, one thread that compacts several trees, and keys that expire."""

from fractions import Fraction
from math import exp

import pytest

from sim.model.state import Lsm
from sim.storage.lsm import CompactionThread, LsmTree
from sim.storage.state_backends import Cohort, Expiry, ExpiryTurnover, together
from sim.storage.state_files import Handle, Increments

# What the next incremental snapshot may build upon: the last checkpoint that is complete and known to be.


def files(*names):
    return {name: Handle(name, 100, "shared", i) for i, name in enumerate(names)}


def test_there_is_no_base_at_first():
    assert Increments().base == {}


def test_what_is_stored_is_no_base_before_its_notice():
    """Uploaded, acknowledged, perhaps complete: nobody has said so."""
    increments = Increments()
    increments.store(1, files("a"))

    assert increments.base == {}
    increments.notify_complete(1)
    assert files("a") == increments.base


def test_a_failed_checkpoint_is_never_a_base():
    """Its successor builds on the one before."""
    increments = Increments()
    for number, names in ((1, "a"), (2, "ab"), (3, "ac")):
        increments.store(number, files(*names))
    increments.notify_complete(1)
    increments.notify_complete(3)

    assert files("a", "c") == increments.base


def test_an_older_notice_changes_nothing():
    increments = Increments()
    increments.store(1, files("a"))
    increments.store(2, files("b"))
    increments.notify_complete(2)
    increments.notify_complete(1)

    assert files("b") == increments.base


def test_a_savepoint_leaves_the_base_alone():
    """FLINK-23949: it has no files of its own in the list."""
    increments = Increments()
    increments.store(1, files("a"))
    increments.notify_complete(1)
    increments.notify_complete(2)

    assert files("a") == increments.base


def test_a_forgotten_base_is_replaced_by_the_next_one():
    """The next checkpoint uploads everything again; the one after it builds on that."""
    increments = Increments()
    increments.store(1, files("a"))
    increments.notify_complete(1)
    increments.forget()

    assert increments.base == {}
    increments.store(3, files("a"))
    increments.notify_complete(3)
    assert files("a") == increments.base


def test_a_restart_builds_on_what_was_restored():
    increments = Increments()
    increments.store(7, files("a"))
    increments.restart(5, files("b"))

    assert files("b") == increments.base
    increments.restart(5, {})
    assert increments.base == {}


# One thread for several trees: who waits for whom, and that an own thread is the same as being alone at a shared one.


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


# Keys that expire: how many are alive, whatever came before and however often somebody asks.


S = 1_000_000_000
TTL, ENTRY = 100 * S, 1000


def grown(seconds, *, every=1, per_second=10_000, rewritten=0, size_bytes=0):
    """After so many seconds with so many bytes in new keys each, and so many entries rewritten."""
    expiry = Expiry(TTL, size_bytes, ENTRY)
    for at in range(every, seconds + 1, every):
        turnover = expiry.advance(per_second * every, rewritten * every, at * S)
        assert turnover.live_bytes == expiry.live_bytes
    return expiry


@pytest.mark.parametrize(
    ("seconds", "expected"), [(50, 500_000), (100, 1_000_000), (150, 1_000_000), (1000, 1_000_000)]
)
@pytest.mark.parametrize("every", [1, 10, 50])
def test_new_keys_level_off_at_their_rate_times_the_time_to_live(seconds, expected, every):
    """10 kB/s for 100 s are 1 MB: the steady size, however rare the snapshots are."""
    assert expected == pytest.approx(grown(seconds, every=every).live_bytes, rel=0.01)


@pytest.mark.parametrize(("seconds", "expected"), [(25, 750_000), (75, 250_000), (100, 0)])
def test_keys_of_the_beginning_are_of_all_ages(seconds, expected):
    """1 MB that nothing renews is gone after one time to live, evenly."""
    assert expected == pytest.approx(grown(seconds, per_second=0, size_bytes=1_000_000).live_bytes, abs=100)


def test_a_key_that_is_rewritten_stays():
    """1,000 keys, 50 rewritten per second: one is missed for 100 s with probability exp(-5), and goes.  Unwritten, all would go."""
    expiry = Expiry(TTL, 0, ENTRY)
    expiry.stand((Cohort(0, 0, 1_000_000),), 0)
    for at in range(1, 105):
        expiry.advance(0, 50, at * S)

    assert 1_000_000 * (1 - exp(-5)) == pytest.approx(expiry.live_bytes, abs=3000)


def test_what_expires_and_what_lives_is_what_there_was():
    """To the byte, with growth and rewrites in steps of odd lengths."""
    expiry, live_bytes, now_ns = Expiry(TTL, 123_457, ENTRY), 123_457, 0
    for step in (1, 999, 12_345_678_901, 3, 170 * S, 31 * S):
        now_ns += step
        turnover = expiry.advance(1 + step // 77, step % 13, now_ns)
        assert live_bytes + 1 + step // 77 == turnover.live_bytes + turnover.expired_bytes
        live_bytes = turnover.live_bytes


def test_a_restored_key_keeps_the_time_it_was_written():
    """Half of the keys expired while nobody ran."""
    before = grown(100)
    after = Expiry(TTL, 0, ENTRY)
    after.stand(together([(before.ages, Fraction(1))]), 150 * S)

    assert ExpiryTurnover(500_000, 500_000) == after.advance(0, 0, 150 * S)


def test_a_rescaled_task_has_the_shares_of_its_key_groups():
    """Half of one subtask and a quarter of another, in the order of their ages."""
    first, second = (Cohort(0, 10, 100),), (Cohort(5, 6, 40), Cohort(20, 30, 80))

    expected = (Cohort(0, 10, 50), Cohort(5, 6, 10), Cohort(20, 30, 20))
    assert expected == together([(first, Fraction(1, 2)), (second, Fraction(1, 4))])
