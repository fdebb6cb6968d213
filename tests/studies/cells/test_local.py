"""Work side by side on one machine."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from sim.studies.local import WorkerDiedError, cores, delayed_signals, run_each
from sim.studies.progress import ENDING


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


# A parent with workers that sleep; it says their numbers and waits.  Work that starts in another thread is bound by the pipe alone.
PARENT = """\
import os, sys, threading, time
from sim.studies.local import run_each

def sleep(item, progress):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)

def work():
    list(run_each(sleep, [1, 2, 3], jobs=3))

if sys.argv[1] == "main":
    work()
else:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""


def alive(process):
    """Zombies, which wait for whoever adopts them, are not."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("thread", "stopped"), [("main", False), ("another", False), ("main", True)])
def test_workers_of_a_killed_parent_end(thread, stopped):
    """Whoever has forked them: nobody is left to end them.  One that is stopped cannot look at its pipe: the kernel ends it."""
    with subprocess.Popen([sys.executable, "-c", PARENT, thread], stdout=subprocess.PIPE, text=True) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(3)]
        assert [alive(worker) for worker in workers] == [True] * 3
        for worker in workers if stopped else ():
            os.kill(worker, signal.SIGSTOP)
        parent.kill()

    end = time.monotonic() + 5
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.02)
    assert [worker for worker in workers if alive(worker)] == []


@pytest.fixture
def handlers():
    """The handlers of the signals are the old ones afterwards."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_waits_until_the_block_is_over(handlers, number):
    """Else Java, half started, would be left behind, without anybody who knows of it."""
    signals = []
    signal.signal(number, lambda number, _: signals.append(number))

    with delayed_signals():
        os.kill(os.getpid(), number)
        assert signals == []

    assert [number] == signals


def test_a_signal_outlasts_a_block_that_fails(handlers):
    """Java that Ctrl-C has ended is no missing dependency."""
    signal.signal(signal.SIGINT, signal.default_int_handler)

    @delayed_signals()
    def start():
        os.kill(os.getpid(), signal.SIGINT)
        raise RuntimeError("Java is gone")

    with pytest.raises(KeyboardInterrupt):
        start()


def test_a_signal_that_is_ignored_stays_so(handlers):
    """`nohup` means it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with delayed_signals():
        os.kill(os.getpid(), signal.SIGHUP)

    assert signal.SIG_IGN is signal.getsignal(signal.SIGHUP)
