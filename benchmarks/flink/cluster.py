"""A real Flink on this machine for as long as a `with` block lasts: one Java process, every socket on loopback.

    with Cluster(task_managers=2) as flink:
        job = flink.submit(PacedJob(parallelism=2), {"execution.checkpointing.interval": "3 s"})
        flink.await_running(job)

The process obeys lines on its standard input and ends with it, so that not even a killed Python leaves one behind.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from benchmarks.flink.classes import classpath, java
from benchmarks.flink.job import PacedJob
from benchmarks.flink.rest import RefusedError, call

__all__ = ["Cluster", "FlinkError"]

START_S = 60.0
STOP_S = 10.0
_PACKAGES = (
    "lang",
    "net",
    "io",
    "nio",
    "lang.reflect",
    "text",
    "time",
    "util",
    "util.concurrent",
    "util.concurrent.atomic",
    "util.concurrent.locks",
)
JAVA_OPTIONS = (
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES),
)
_CLUSTER_OPTIONS = {
    "rest.bind-address": "127.0.0.1",
    "taskmanager.memory.network.min": "32m",
    "taskmanager.memory.network.max": "32m",
    "taskmanager.memory.managed.size": "64m",
    "web.submit.enable": "false",
}
_LOG_FOLDER = "state.changelog.dstl.dfs.base-path"
_ENDED = ("FINISHED", "CANCELED", "FAILED")


class FlinkError(RuntimeError):
    """The cluster did not do what it was asked for; says where its log is."""


class Cluster:
    """A Flink with `task_managers` of `slots` each, set up by options of its own: `fs.paced.bandwidth` (bytes/s of one open file) and
    `fs.paced.close-ms` slow its storage down.  MissingDependencyError where there is no Java or no Flink."""

    url: str
    """The address of its REST interface."""
    log: Path
    """As a standalone job manager writes it, of all components."""

    def __init__(
        self, *, task_managers: int = 1, slots: int = 1, options: dict[str, str] | None = None, nice: int = 0
    ) -> None:
        self._options = {**_CLUSTER_OPTIONS, **(options or {})}
        self._arguments = [f"taskmanagers={task_managers}", f"slots={slots}"]
        self._nice = ["nice", "-n", str(nice)] if nice else []

    def __enter__(self) -> Self:
        jars = classpath()  # before anything is left behind
        self.folder = Path(tempfile.mkdtemp(prefix="ckptsim-flink-"))
        self.log = self.folder / "flink.log"
        temporary = self.folder / "tmp"
        temporary.mkdir()
        # the compiler of the first tier starts in half the time; nothing here computes much
        command = [
            *self._nice,
            str(java()),
            "-Xmx1g",
            "-XX:TieredStopAtLevel=1",
            *JAVA_OPTIONS,
            f"-Dlog.file={self.log}",
            f"-Djava.io.tmpdir={temporary}",
        ]
        # not a job's
        own = {"io.tmp.dirs": str(temporary), "state.changelog.storage": "filesystem", _LOG_FOLDER: self.storage("log")}
        command += ["-cp", jars, "ckptsim.flink.LocalCluster", *self._arguments, *_arguments(own | self._options)]
        with (self.folder / "stderr").open("w") as stderr:
            self._process = subprocess.Popen(  # in a session of its own: Ctrl-C is for us, we stop it
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True
            )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=_forward, args=(self._process.stdout, self._answers), daemon=True)
        self._listener.start()
        try:
            self.url = self._answer("rest")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)  # else the log is kept
        elif error is not None and not isinstance(error, FlinkError):
            error.add_note(f"log of Flink: {self.log}")

    def submit(self, job: PacedJob, options: dict[str, Any] | None = None, *, restore: str | None = None) -> str:
        """Id of the job, which begins from the savepoint or checkpoint `restore`; options are Flink's.  FlinkError: refused."""
        chosen = {"execution.checkpointing.dir": self.storage("checkpoints"), **(options or {})}
        if restore is not None:
            chosen["execution.state-recovery.path"] = restore
        self._send(" ".join(["submit", *_arguments(job.arguments()), *_arguments(chosen)]))
        return self._answer("job")

    def get(self, path: str, *, method: str | None = None, body: dict[str, Any] | None = None) -> Any:
        """Answer of the REST interface.  FlinkError: none, or a refusal."""
        try:
            return call(self.url, path, method=method, body=body)
        except RefusedError as error:
            raise self._failure(str(error)) from None

    def state(self, job: str) -> str:
        return str(self.get(f"/jobs/{job}")["state"])

    def await_running(self, job: str, *, within_s: float = 60) -> None:
        """Return when every subtask runs."""

        def runs() -> bool:
            answer = self.get(f"/jobs/{job}")
            if answer["state"] in _ENDED:
                raise self._failure(f"the job is {answer['state']}")
            # A job whose master still initializes has no vertices yet, and answers nothing about its checkpoints.
            return bool(answer["vertices"]) and all(vertex["status"] == "RUNNING" for vertex in answer["vertices"])

        self._await(runs, within_s, "the job does not run")

    def await_checkpoints(self, job: str, number: int, *, within_s: float) -> None:
        """Return when so many checkpoints of the job are completed."""
        self.await_running(job, within_s=within_s)
        self._await(lambda: self.completed(job) >= number, within_s, f"no {number} checkpoints completed")

    def completed(self, job: str) -> int:
        return int(self.get(f"/jobs/{job}/checkpoints")["counts"]["completed"])

    def stop(self, job: str, *, within_s: float = 120) -> str:
        """Stop with a savepoint; its path."""
        order = {"targetDirectory": self.storage("savepoints"), "drain": False}
        request = self.get(f"/jobs/{job}/stop", method="POST", body=order)["request-id"]
        operation: dict[str, Any] = {}

        def done() -> bool:
            operation.update(self.get(f"/jobs/{job}/savepoints/{request}"))
            return bool(operation["status"]["id"] == "COMPLETED")

        self._await(done, within_s, "the savepoint is not taken")
        savepoint = operation["operation"]
        if "location" not in savepoint:
            raise self._failure(
                f"the savepoint failed: {savepoint.get('failure-cause', {}).get('class', 'no reason given')}"
            )
        self._await(lambda: self.state(job) in _ENDED, within_s, "the job does not stop")
        return str(savepoint["location"])

    def cancel(self, job: str, *, within_s: float = 60) -> None:
        self.get(f"/jobs/{job}?mode=cancel", method="PATCH")
        self._await(lambda: self.state(job) in _ENDED, within_s, "the job does not end")

    def storage(self, folder: str) -> str:
        """Behind the file system that is as slow as `fs.paced.*` says (java/ckptsim/flink/PacedFileSystem.java); by default it is not."""
        return f"paced://{self.folder / folder}"

    def _await(self, happened: Any, within_s: float, otherwise: str) -> None:
        until = time.monotonic() + within_s
        while not happened():
            if time.monotonic() > until:
                raise self._failure(f"{otherwise} within {within_s:.0f} s")
            time.sleep(0.2)

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the missing answer will tell
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _answer(self, expected: str) -> str:
        try:
            word, _, rest = self._answers.get(timeout=START_S).partition(" ")
        except queue.Empty:
            raise self._failure(f"Flink did not answer within {START_S:.0f} s") from None
        if word != expected:
            raise self._failure(f"Flink refused: {rest}" if word == "error" else "Flink ended")
        return rest.strip()

    def _failure(self, what: str) -> FlinkError:
        return FlinkError(f"{what}{self._cause()}; log: {self.log}")

    def _cause(self) -> str:
        """The last line that says why."""
        for file in (self.log, self.folder / "stderr"):
            lines = file.read_text(errors="replace").splitlines() if file.exists() else []
            causes = [
                line.strip() for line in lines if line.startswith(("Caused by:", "Exception in", "Error:", "java."))
            ]
            if causes:
                return f" ({causes[-1][:300]})"
        return ""

    def _end(self) -> None:
        """Ask, then insist."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        for insist in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(STOP_S)
                break
            except subprocess.TimeoutExpired:
                insist()
        self._process.wait()
        self._listener.join()


def _forward(lines: IO[str] | None, to: queue.SimpleQueue[str]) -> None:
    assert lines is not None
    with lines:
        for line in lines:
            to.put(line)
    to.put("")  # the end


def _arguments(options: dict[str, Any]) -> list[str]:
    """As LocalCluster reads them: blanks separate, so those inside are written %20."""
    values = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    return [f"{key}={value.replace(' ', '%20')}" for key, value in values.items()]
