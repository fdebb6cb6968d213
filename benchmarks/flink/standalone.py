"""A real Flink of several processes, one JobManager and some TaskManagers on loopback, in which causes of slow checkpoints can be planted.

with Standalone(task_managers=2) as flink:
job = flink.submit(PacedJob(parallelism=2), {"execution.checkpointing.interval": "3 s"})
flink.plant(0, bandwidth=1_000_000)  # files of tm-0 are slow from now on
flink.plant(0)  # and no longer
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.flink.classes import classpath, java
from benchmarks.flink.cluster import JAVA_OPTIONS, START_S, STOP_S, FlinkError
from benchmarks.flink.job import PacedJob
from benchmarks.flink.rest import RefusedError, call

__all__ = ["Standalone", "free_port"]

_OPTIONS = {
    "jobmanager.rpc.address": "127.0.0.1",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "jobmanager.memory.process.size": "1g",
    "taskmanager.cpu.cores": "1.0",
    "taskmanager.memory.task.heap.size": "256m",
    "taskmanager.memory.task.off-heap.size": "0b",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.network.min": "32m",
    "taskmanager.memory.network.max": "32m",
    "taskmanager.memory.managed.size": "32m",
    "taskmanager.memory.jvm-metaspace.size": "192m",
    "taskmanager.memory.jvm-overhead.min": "192m",
    "taskmanager.memory.jvm-overhead.max": "192m",
    "web.checkpoints.history": "100",
    "heartbeat.timeout": "20 s",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "20",
    "restart-strategy.fixed-delay.delay": "1 s",
}


class Standalone:
    """A cluster of processes.  `heap`: of each TaskManager; `collector`: of its garbage."""

    url: str
    """The address of its REST interface."""

    def __init__(
        self,
        *,
        task_managers: int = 2,
        slots: int = 1,
        options: dict[str, str] | None = None,
        heap: str = "384m",
        collector: str = "-XX:+UseSerialGC",
        nice: int = 0,
    ) -> None:
        self._options = {**_OPTIONS, "taskmanager.numberOfTaskSlots": str(slots), **(options or {})}
        self._count, self._heap, self._collector, self._nice = task_managers, heap, collector, nice

    def __enter__(self) -> Self:
        self._jars = classpath()
        self.folder = Path(tempfile.mkdtemp(prefix="ckptsim-planted-"))
        (self.folder / "tmp").mkdir()
        self.rest_port, rpc_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.rest_port}"
        options = self._options | {
            "rest.port": str(self.rest_port),
            "jobmanager.rpc.port": str(rpc_port),
            "io.tmp.dirs": str(self.folder / "tmp"),
            "execution.checkpointing.dir": self.storage("checkpoints"),
        }
        (self.folder / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in options.items()))
        configured = ["--configDir", str(self.folder)]
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._start(
                "jobmanager",
                "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
                configured,
                ["-Xmx512m"],
            )
            self.task_managers = [self._task_manager(index, configured) for index in range(self._count)]
            self._await(lambda: self.get("/overview")["taskmanagers"] == self._count, START_S, "no cluster")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)  # else the logs are kept

    # ------------------------------------------------------------------------------------------ jobs

    def submit(self, job: PacedJob, options: dict[str, Any] | None = None) -> str:
        """Id of the job, whose tasks run.  FlinkError: refused, or it does not run."""
        chosen = {**job.arguments(), **(options or {}), "rest.address": "127.0.0.1", "rest.port": self.rest_port}
        client = subprocess.run(
            self._command(
                "client",
                "ckptsim.flink.Submit",
                [f"{key}={str(value).replace(' ', '%20')}" for key, value in chosen.items()],
                ["-Xmx256m"],
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.search(r"job ([0-9a-f]{32})", client.stdout)
        if found is None:
            raise FlinkError(f"the job is refused: {(client.stderr or client.stdout)[-800:]}")

        def runs() -> bool:
            about = self.get(f"/jobs/{found[1]}")
            return bool(about["vertices"]) and all(vertex["status"] == "RUNNING" for vertex in about["vertices"])

        self._await(runs, START_S, "the job does not run")
        return found[1]

    def get(self, path: str, *, body: dict[str, Any] | None = None) -> Any:
        """Answer of the REST interface; FlinkError: none."""
        try:
            return call(self.url, path, body=body)
        except RefusedError as error:
            raise FlinkError(f"{error}; logs: {self.folder}") from None

    def checkpoints(self, job: str) -> list[dict[str, Any]]:
        """The checkpoints that Flink lists, oldest first."""
        return sorted(self.get(f"/jobs/{job}/checkpoints")["history"], key=lambda point: int(point["id"]))

    def await_ended(self, job: str, number: int, *, within_s: float) -> None:
        """Return when so many checkpoints have ended."""

        def ended() -> bool:
            counts = self.get(f"/jobs/{job}/checkpoints")["counts"]
            return bool(counts["completed"] + counts["failed"] >= number)

        self._await(ended, within_s, f"no {number} checkpoints")

    def places(self, job: str) -> dict[tuple[str, int], str]:
        """The TaskManager of each subtask, by the name of its vertex and its index."""
        found = {}
        for vertex in self.get(f"/jobs/{job}")["vertices"]:
            for row in self.get(f"/jobs/{job}/vertices/{vertex['id']}")["subtasks"]:
                found[vertex["name"], int(row["subtask"])] = str(row["taskmanager-id"])
        return found

    def savepoint(self, job: str) -> str:
        """Take a savepoint of the canonical format; its folder."""
        order = {"target-directory": self.storage("savepoints"), "cancel-job": False, "formatType": "CANONICAL"}
        request = self.get(f"/jobs/{job}/savepoints", body=order)["request-id"]
        status: dict[str, Any] = {}

        def done() -> bool:
            status.update(self.get(f"/jobs/{job}/savepoints/{request}"))
            return bool(status["status"]["id"] == "COMPLETED")

        self._await(done, 120, "the savepoint is not taken")
        return str(status["operation"].get("location", ""))

    def storage(self, folder: str) -> str:
        return f"paced://{self.folder / folder}"

    # ------------------------------------------------------------------------------------------ what is planted

    def plant(self, task_manager: int, **faults: object) -> None:
        """The faults of a TaskManager from now on, in place of those it had (java/ckptsim/flink/Planted.java)."""
        file = self._faults(task_manager)
        fresh = file.with_suffix(".new")
        fresh.write_text("".join(f"{key}={value}\n" for key, value in faults.items()))
        fresh.rename(file)

    def pause(self, task_manager: int, seconds: float) -> None:
        """Let the process of a TaskManager stand still for so long."""
        process = self.task_managers[task_manager]
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)

    def kill(self, task_manager: int) -> None:
        self.task_managers[task_manager].kill()

    # ------------------------------------------------------------------------------------------ processes

    def _task_manager(self, index: int, configured: list[str]) -> subprocess.Popen[bytes]:
        options = [
            f"-Xmx{self._heap}",
            f"-Xms{self._heap}",
            self._collector,
            "-XX:MaxDirectMemorySize=256m",
            f"-Dckptsim.planted={self._faults(index)}",
        ]
        name = f"tm-{index}"
        return self._start(
            name, "ckptsim.flink.Planted", [*configured, "-D", f"taskmanager.resource-id={name}"], options
        )

    def _faults(self, index: int) -> Path:
        return self.folder / f"tm-{index}.faults"

    def _start(self, name: str, main: str, arguments: list[str], options: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.out").open("w") as out:
            process = subprocess.Popen(
                self._command(name, main, arguments, options),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={**os.environ, "FLINK_CONF_DIR": str(self.folder)},
            )
        self._processes.append(process)
        return process

    def _command(self, name: str, main: str, arguments: list[str], options: list[str]) -> list[str]:
        nice = ["nice", "-n", str(self._nice)] if self._nice else []
        own = [
            f"-Dlog.file={self.folder / name}.log",
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",
            "-XX:TieredStopAtLevel=1",
        ]
        return [*nice, str(java()), *JAVA_OPTIONS, *own, *options, "-cp", self._jars, main, *arguments]

    def _await(self, happened: Any, within_s: float, otherwise: str) -> None:
        until = time.monotonic() + within_s
        while True:
            try:
                if happened():
                    return
            except FlinkError:
                if time.monotonic() > until:
                    raise
            if time.monotonic() > until:
                raise FlinkError(f"{otherwise} within {within_s:.0f} s; logs: {self.folder}")
            time.sleep(0.2)

    def _end(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    """A port of the loopback interface that nothing listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
