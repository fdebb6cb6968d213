"""Where a checkpoint's time goes."""

from sim.analysis.strategies.path import path


def test_waiting_belongs_to_the_hop_where_it_happens(made, edges):
    """A start delay contains all hops before: only what is added counts."""
    run = made().checkpoint().subtask("source", ack=5, start_delay=5).subtask("map", ack=1005, start_delay=1005)
    way = path(run.subtask("sink", ack=1205, start_delay=1205).tables()["subtasks"], edges)

    assert (1205, "map", 1000, False) == (way.queue_ms, way.queue_vertex, way.queue_vertex_ms, way.queue_at_source)


def test_alignment_before_is_no_waiting_after(made, edges):
    """An aligned barrier leaves when the last one has come (FLIP-76)."""
    run = made().checkpoint().subtask("source", ack=5, start_delay=5).subtask("map", ack=905, start_delay=10, alignment=895)
    way = path(run.subtask("sink", ack=920, start_delay=920).tables()["subtasks"], edges)

    assert (895, "map") == (way.alignment_ms, way.alignment_vertex)
    assert 25 == way.queue_ms


def test_an_unaligned_barrier_does_not_wait_for_the_alignment_before(made, edges):
    """It leaves with the first barrier: what comes later at the next vertex is waiting there."""
    run = (
        made()
        .checkpoint()
        .subtask("source", ack=5, start_delay=5, persisted=1)
        .subtask("map", ack=905, start_delay=10, alignment=895, persisted=1)
    )
    way = path(run.subtask("sink", ack=920, start_delay=910, persisted=1).tables()["subtasks"], edges)

    assert ("sink", 900) == (way.queue_vertex, way.queue_vertex_ms)


def test_the_way_leads_through_the_vertex_that_forwards_last(made):
    """Of two inputs the one whose barrier is late, by its alignment: not the one named first, nor the one whose first barrier is late."""
    edges = [("source", "quick"), ("source", "slow"), ("quick", "sink"), ("slow", "sink")]
    run = made().checkpoint().subtask("source", ack=5, start_delay=5).subtask("quick", ack=105, start_delay=100)
    run.subtask("slow", ack=905, start_delay=10, alignment=895).subtask("sink", ack=1000, start_delay=950, alignment=5)
    way = path(run.tables()["subtasks"], edges)

    assert (900, "slow", 895) == (way.alignment_ms, way.alignment_vertex, way.alignment_vertex_ms)
    assert (55, "sink", 45) == (way.queue_ms, way.queue_vertex, way.queue_vertex_ms)


def test_a_source_that_is_late_is_named(made, edges):
    """Its task thread is what the trigger waits for."""
    run = made().checkpoint().subtask("source", ack=3000, start_delay=3000)
    run.subtask("map", ack=3005, start_delay=3002).subtask("sink", ack=3010, start_delay=3005)
    way = path(run.tables()["subtasks"], edges)

    assert ("source", 3000, True) == (way.queue_vertex, way.queue_vertex_ms, way.queue_at_source)


def test_the_last_to_acknowledge_gives_the_phases(made, edges):
    """Storage of others hides behind it."""
    run = made().checkpoint().subtask("source", ack=80, asynchronous=75).subtask("sink", ack=100, start_delay=20, sync=30, asynchronous=50)
    way = path(run.tables()["subtasks"], edges)

    assert (30, 50) == (way.sync_ms, way.async_ms)
