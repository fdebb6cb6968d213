"""Where a checkpoint's time goes, from the table of critical paths."""

import math

from sim.results.critical_path import PathKind
from sim.results.not_completed import NOWHERE, PARTS, path

AFTER = {PathKind.FINALISATION, PathKind.NOTIFICATION, PathKind.COMMIT}


def test_every_part_of_the_table_is_counted_once():
    """A new kind of wait must say where it belongs; what follows the acknowledgement is in no duration, and no run has parts without times."""
    assert {kind.value for kind in set(PathKind) - AFTER - {PathKind.UNREPORTED}} == set(PARTS)


def test_waiting_is_summed_over_hops_and_named_where_most_of_it_is(made):
    run = made().checkpoint().part("trigger", "", 3).part("behind data", "map", 1000).part("behind data", "sink", 200)
    way = path(run.tables()["path"])

    assert (way.queue_ms, way.queue_vertex, way.queue_vertex_ms, way.queue_at_source) == (1200, "map", 1000, False)
    assert way.messages_ms == 3


def test_a_wait_that_most_checkpoints_do_not_have_has_no_median(made):
    """Medians are over all checkpoints, not over those that waited."""
    run = made()
    for ms in (0, 0, 900):
        run.checkpoint().part("upload", "sink", 10).part("alignment", "sink", ms)

    assert (path(run.tables()["path"]).alignment_ms, path(run.tables()["path"]).alignment_vertex) == (0, "sink")


def test_the_timeout_is_not_the_queue(made):
    """The wait that ends because barriers may overtake is the setting's, not the data's."""
    way = path(
        made().checkpoint().part("until the timeout", "sink", 1000).part("behind data", "sink", 1).tables()["path"]
    )

    assert (way.timeout_ms, way.timeout_vertex, way.queue_ms) == (1000, "sink", 1)


def test_a_source_that_is_late_is_named(made):
    """Its task thread is what the trigger waits for."""
    way = path(made().checkpoint().part("task thread", "source", 3000).part("behind data", "map", 5).tables()["path"])

    assert (way.queue_vertex, way.queue_vertex_ms, way.queue_at_source) == ("source", 3000, True)


def test_of_equal_waits_the_first_vertex_of_the_table_is_named_and_no_source(made):
    """A source counts only if its task thread takes more than all else there."""
    way = path(
        made()
        .checkpoint()
        .part("task thread", "source", 5)
        .part("behind data", "source", 5)
        .part("behind data", "map", 10)
        .tables()["path"]
    )

    assert (way.queue_vertex, way.queue_at_source) == ("source", False)


def test_what_a_source_does_beside_its_queue_does_not_make_it_late(made):
    """Neither its upload nor the queues of others are counted where its own is."""
    run = (
        made()
        .checkpoint()
        .part("task thread", "source", 30)
        .part("behind data", "map", 20)
        .part("behind data", "sink", 20)
    )
    way = path(run.part("upload", "source", 90).tables()["path"])

    assert (way.queue_vertex, way.queue_vertex_ms, way.queue_at_source) == ("source", 30, True)


def test_ten_tenths_are_one(made):
    """The rounding errors of sums are made good."""
    run = made().checkpoint()
    for _ in range(10):
        run.part("behind data", "sink", 0.1)

    assert path(run.tables()["path"]).queue_ms == 1.0


def test_work_and_files_are_told_apart(made):
    """Both are asynchronous; only one is storage's."""
    run = made().checkpoint().part("async queue", "sink", 5).part("async work", "sink", 70).part("upload", "sink", 30)
    way = path(run.part("channel state", "sink", 2).tables()["path"])

    assert (
        way.async_ms,
        way.async_queue_ms,
        way.async_work_ms,
        way.upload_ms,
        way.channel_state_ms,
        way.async_vertex,
    ) == (107, 5, 70, 30, 2, "sink")


def test_what_follows_the_acknowledgement_does_not_count(made):
    run = made().checkpoint().part("sync", "sink", 10).part("finalisation", "", 500, acknowledged=True)

    assert (path(run.tables()["path"]).sync_ms, path(run.tables()["path"]).messages_ms) == (10, 0)


def test_without_completed_checkpoints_nothing_is_measured(made):
    way = path(made().tables()["path"])

    assert math.isnan(way.queue_ms)
    assert repr(NOWHERE) == repr(way)
