"""Signals that end a command; workers that end with their parent."""

import os
import signal
import subprocess
import sys
import time

import pytest

from sim.studies.local import delayed_signals
from sim.studies.progress import ENDING

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
