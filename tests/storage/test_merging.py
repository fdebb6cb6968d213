"""Small files of a checkpoint in one physical file: fewer files, later deletes."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import simpy

from sim.model.storage import FileMerging
from sim.storage.ledger import FileId
from tests.storage.lab import MB, MS, Lab, dfs

ON = FileMerging(max_file_bytes=4 * MB)


def lab(merging=ON):
    """1 MB takes 10 ms, a request 1 ms: a file of its own is 3 requests."""
    return Lab(replace(dfs(latency_ms=1), merging=merging))


def written(here, *names, size=MB, merge=1, host=0):
    return [
        here.env.run(until=here.env.process(here.storage.write(size, name, host=host, merge=merge))) for name in names
    ]


def physical(here):
    return [stored for stored in here.storage.files if stored.name[0] == "merged"]


def test_what_was_deleted_before_the_end_goes_with_it():
    here = lab()
    (a,) = written(here, "a")

    assert here.took_ms(here.storage.delete([a])) == 0
    assert here.took_ms(here.storage.end_merging(1)) == 2, "close, delete"


def test_the_worst_wasters_go_first():
    """24 MB hold 16, which is within 1.5; with one MB less they do not, and wearing out one file that wastes 3 of its 4 is enough."""
    here = lab(replace(ON, max_space_amplification=Fraction(3, 2)))
    kept = []
    for checkpoint, needed in ((1, 1), (2, 1), (3, 2), (4, 4), (5, 4), (6, 4)):
        files = written(here, *"wxyz", merge=checkpoint)
        kept.append(files[0])
        here.took_ms(here.storage.delete(files[needed:]))
    here.took_ms(here.storage.end_merging(1))

    assert sum(stored.size_bytes for stored in physical(here)) == 24 * MB
    assert [here.storage.may_reuse(file) for file in kept] == [True] * 6
    here.took_ms(here.storage.delete([kept[5]]))
    here.took_ms(here.storage.end_merging(2))

    assert [here.storage.may_reuse(file) for file in kept] == [False, True, True, True, True, True]


def test_without_a_limit_nothing_is_worn():
    """Below 1: no control of space."""
    here = lab(replace(ON, max_space_amplification=Fraction(0)))
    a, b, c = written(here, "a", "b", "c")
    here.took_ms(here.storage.delete([b, c]))
    here.took_ms(here.storage.end_merging(1))

    assert here.storage.may_reuse(a)


def test_files_of_an_older_job_go_together_too():
    """A new storage begins with the files of the one before it: the physical file still goes with the last one in it."""
    older, here = lab(), lab()
    a, b = written(older, "a", "b")
    older.took_ms(older.storage.end_merging(1))
    here.storage.files.adopt(older.storage.files)

    assert [here.took_ms(here.storage.delete([file])) for file in (b, a)] == [0, 1]
    assert [here.storage.files.exists(stored.id) for stored in physical(here)] == [False]


def test_a_file_that_wastes_no_more_than_allowed_is_referred_to():
    """4 MB with 2 needed, 4 MB with 1 needed, an open one with nothing: too much in all, and only the second one wastes more than half."""
    here = lab(replace(ON, across=True))
    files = written(here, *"abcdefghijk")
    here.took_ms(here.storage.delete([*files[2:4], *files[5:8], *files[8:]]))
    here.took_ms(here.storage.end_merging(1))

    assert [here.storage.may_reuse(files[0]), here.storage.may_reuse(files[4])] == [True, False]


def test_merged_files_are_not_lost_with_the_disk_of_their_task_manager():
    here = lab()
    (file,) = written(here, "a", host=3)
    here.storage.lose_disk(3)

    assert here.storage.files.exists(file)


def interrupted(here, work, at_ms):
    """The process of this work, which hears at that time that nobody waits for it."""

    def waiter():
        with suppress(simpy.Interrupt):
            yield from work

    process = here.env.process(waiter())
    here.env.run(until=at_ms * MS)
    process.interrupt()
    return process


def test_a_writer_that_is_interrupted_while_it_closes_leaves_nothing_behind():
    """Written at 12 ms, closed at 13: interrupted between, the physical file is closed all the same, and deleted with all in it."""
    here = lab(replace(ON, max_file_bytes=MB + 1))
    here.took_ms(here.storage.end_merging(1))
    interrupted(here, here.storage.write(MB, "a", merge=1), at_ms=12.5)
    here.env.run()

    assert [stored.deleted_ns is not None for stored in here.storage.files] == [True, True]


def test_other_files_outlast_a_writer_that_is_interrupted_while_it_closes():
    """The second file fills the physical one; its writer is interrupted while that is closed."""
    here = lab(replace(ON, max_file_bytes=2 * MB))
    (first,) = written(here, "a", size=MB + 1)
    interrupted(here, here.storage.write(MB, "b", merge=1), at_ms=22.5)
    here.env.run()
    second = here.storage.files[FileId(2)]

    assert here.storage.files.exists(first)
    assert [stored.complete for stored in physical(here)] == [True]
    assert second.name == ("b",)
    assert second.deleted_ns is not None
    here.took_ms(here.storage.delete([first]))
    assert [here.storage.files.exists(stored.id) for stored in physical(here)] == [False]
