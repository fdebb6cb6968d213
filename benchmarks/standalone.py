"""A Spark standalone cluster on loopback, from nothing but the pip package: one master, two workers, each with one core."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sim.studies.sweeps import spark_masters

__all__ = ["Cluster", "standalone"]

PATIENCE_S = 600.0
"""Limit on the wait for a process that starts: Java takes a second where nothing else runs, and minutes on a busy machine."""
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


@dataclass(frozen=True)
class Cluster:
    url: str
    folder: Path

    def executors(self) -> list[int]:
        """Process ids of the executors' JVMs."""
        return _processes("CoarseGrainedExecutorBackend", self.folder)

    def python_workers(self) -> list[int]:
        """Process ids of the Python workers: children of the daemon that each executor has."""
        daemons = {daemon for executor in self.executors() for daemon in _children(executor)}
        return [worker for daemon in daemons for worker in _children(daemon)]


@contextmanager
def standalone(folder: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """Runs as long as the block.  Logs are in `folder`."""
    import pyspark

    folder.mkdir(parents=True, exist_ok=True)
    spark_masters.prepare_java(folder)
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_NO_DAEMONIZE": "1",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> tuple[Path, subprocess.Popen[bytes]]:
        log = folder / f"{name}.log"
        command = [str(home / "bin" / "spark-class"), *arguments]
        with log.open("wb") as stream:
            started.append(
                subprocess.Popen(
                    command, env=environment, stdout=stream, stderr=stream, cwd=folder, start_new_session=True
                )
            )
        return log, started[-1]

    try:
        ports = ("--port", "0", "--webui-port", "0")
        url = _wait_for(*start("master", _MASTER, "--host", "127.0.0.1", *ports), r"Starting Spark master at (\S+)")
        slot = ("--cores", "1", "--memory", "2g")
        begun = [
            start(f"worker-{i}", _WORKER, "--host", f"127.0.0.{i + 1}", *slot, *ports, url) for i in range(workers)
        ]
        for log, process in begun:
            _wait_for(log, process, r"(Successfully registered with master)")
        yield Cluster(url, folder)
    finally:
        for process in reversed(started):
            _stop(process)


def _processes(word: str, folder: Path) -> list[int]:
    """Ids of the processes that work in the folder and have this word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if word in (path / "cmdline").read_text(errors="replace") and (path / "cwd").readlink().is_relative_to(
                folder.resolve()
            ):
                found.append(int(path.name))
        except OSError:  # it has just ended
            continue
    return found


def _children(process: int) -> list[int]:
    try:
        return [
            int(word)
            for task in Path(f"/proc/{process}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def _wait_for(log: Path, process: subprocess.Popen[bytes], pattern: str) -> str:
    """What the log of a process says.  A process that ends without it fails at once."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        has_ended = process.poll() is not None  # before its log is read for the last time
        if match := re.search(pattern, log.read_text(errors="replace")):
            return match[1]
        if has_ended:
            raise RuntimeError(f"{log}: ended without '{pattern}'")
        time.sleep(0.1)
    raise TimeoutError(f"{log}: no '{pattern}' within {PATIENCE_S:.0f} s")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """With all it has started."""
    for sign, patience_s in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, sign)
            process.wait(patience_s)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
