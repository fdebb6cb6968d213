"""Work side by side on one machine."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from sim.studies.local import WorkerDiedError, cores, run_each


def square(item, progress):
    progress(item * 10)
    return item * item


def fail_at_two(item, progress):
    if item == 2:
        raise OSError(28, "No space left on device")
    return item


def die(item, progress):
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(item, progress):
    time.sleep(60 if item else 0)
    return item


@pytest.mark.parametrize("jobs", [1, 2, 5, None])
def test_every_item_once(jobs):
    """With its index, in any order; what was watched is complete at the end."""
    seen = []

    outcomes = dict(run_each(square, [3, 1, 2], jobs=jobs, watch=lambda finished, ns: seen.append((finished, ns))))

    assert outcomes == {0: 9, 1: 1, 2: 4}
    assert seen[-1] == (3, 60)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_ends_all(jobs):
    """It is raised where the outcomes are taken."""
    with pytest.raises(OSError, match="No space left"):
        list(run_each(fail_at_two, [1, 2, 3], jobs=jobs))


def burn(seconds, progress):
    """Returns the process that it ran in."""
    progress(7)
    end_s = time.process_time() + seconds
    while time.process_time() < end_s:
        pass
    return os.getpid()


@pytest.mark.skipif(cores() == 1, reason="nothing can be side by side")
def test_short_items_stay_in_this_process_and_long_ones_leave_it(monkeypatch):
    """Workers take longer to begin than a short item to end.  The longest so far says what the others may take."""
    monkeypatch.setattr("sim.studies.local.SHORT_S", 0.05)
    seen = []

    places = dict(
        run_each(burn, [0.0, 0.0, 0.03, 0.0, 0.0], jobs=None, watch=lambda finished, ns: seen.append((finished, ns)))
    )

    assert [places[i] == os.getpid() for i in range(5)] == [True, True, True, False, False]
    assert seen[-1] == (5, 35)
    assert sorted(seen) == seen


def test_a_killed_worker_is_told():
    """In words that help, not as a broken pool."""
    with pytest.raises(WorkerDiedError, match="too little memory"):
        list(run_each(die, [1, 2], jobs=2))


def die_at_two(item, progress):
    return die(item, progress) if item == 2 else item


def test_a_killed_worker_may_be_survived():
    """The item that does it has the outcome of the dead, all others their own."""
    outcomes = dict(run_each(die_at_two, [1, 2, 3, 4, 5], jobs=2, died=lambda item: -item))

    assert outcomes == {0: 1, 1: -2, 2: 3, 3: 4, 4: 5}


def test_an_interrupt_leaves_no_worker_behind():
    """What was taken before is kept; running work is stopped at once."""
    before, outcomes, begun = set(multiprocessing.active_children()), [], time.monotonic()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        outcomes.extend(outcome for _, outcome in run_each(sleep, [0, 1], jobs=2))

    assert time.monotonic() - begun < 20
    assert set() == {worker for worker in multiprocessing.active_children() if worker.is_alive()} - before
    assert outcomes in ([], [0])
