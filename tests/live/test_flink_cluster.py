"""A real Flink lives as long as its block, whatever happens inside, and says what went wrong."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from benchmarks.flink.cluster import Cluster, FlinkError
from benchmarks.flink.job import PacedJob
from tests.places import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]


HOLD = """
import time
from benchmarks.flink.cluster import Cluster
with Cluster() as flink:
    print(flink._process.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def logs_stay_here(tmp_path, monkeypatch):
    """Those of failed blocks are kept, and a killed Python cannot remove any."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # asked again; undone afterwards


def is_gone(pid):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
            return True  # ended; nobody has asked for its exit code
        time.sleep(0.2)
    return False


def test_a_failing_block_leaves_no_process_but_its_log():
    """The error says where the log is."""
    with pytest.raises(ZeroDivisionError) as failed, Cluster() as flink:
        _ = 1 / 0

    assert flink._process.poll() is not None
    assert flink.log.exists()
    assert str(flink.log) in "".join(failed.value.__notes__)


def test_what_flink_refuses_is_told_with_its_reason():
    """A job that does not exist, and one that cannot be built; the cluster goes on."""
    with Cluster() as flink:
        with pytest.raises(FlinkError, match="no such shape: ring"):
            flink.submit(PacedJob(shape="ring"))
        with pytest.raises(FlinkError, match="log: "):
            flink.state("0" * 32)
        job = flink.submit(PacedJob(parallelism=1, sink=10))
        flink.await_running(job)
        flink.cancel(job)

        assert flink.state(job) == "CANCELED"
    assert not flink.folder.exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_its_python(how):
    """Ctrl-C ends the block; after SIGKILL nobody is left to end it, and Flink notices by itself."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    java = int(holder.stdout.readline())
    holder.send_signal(how)
    holder.wait(30)
    holder.stdout.close()

    assert is_gone(java)
