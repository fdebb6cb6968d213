"""CPU time of processes that come and go."""

import subprocess
import sys
import time

from benchmarks.process_tree import Meter

# More than is asked for below: what a process used since it was last looked at is missed.
BURN = "import time; begin = time.process_time()\nwhile time.process_time() < begin + 1.0: pass\n"
GRANDCHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); input()"


def test_processes_that_have_ended_count():
    """And those that our own have started."""
    with Meter() as meter:
        before = meter.seconds()
        child = subprocess.Popen([sys.executable, "-c", f"# pyspark.daemon\n{BURN}\ninput()"], stdin=subprocess.PIPE)
        other = subprocess.Popen([sys.executable, "-c", GRANDCHILD], stdin=subprocess.PIPE)
        end = time.monotonic() + 60
        while (
            (spent := meter.seconds() - before)["Python workers"] < 0.3 or spent[""] < 0.3
        ) and time.monotonic() < end:
            time.sleep(0.05)
        child.communicate(b"\n")
        other.communicate(b"\n")
        spent = meter.seconds() - before

    assert spent["Python workers"] >= 0.3
    assert spent[""] >= 0.3
