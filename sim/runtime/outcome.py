"""How a job instance comes to its end: finished, failed for good, or rescaled by its scheduler."""

from __future__ import annotations

import simpy


class Outcome:
    """The end of a job instance: finished, failed for good, or rescaled by its scheduler."""

    def __init__(self, env: simpy.Environment) -> None:
        self.status = "RUNNING"
        self.failed = env.event()
        self.finished = env.event()
        self.caught_up = env.event()  # after a failure
        self.rescaled = env.event()
        self.missing: frozenset[int] = frozenset()  # TaskManagers that the job is rescaled without, by their numbers in the scenario

    def fail(self, reason: str) -> None:
        """The job fails; nothing restarts it."""
        self.status = f"FAILED: {reason}"
        if not self.failed.triggered:
            self.failed.succeed()

    def finish(self) -> None:
        """All tasks have finished."""
        self.status = "FINISHED"
        if not self.finished.triggered:
            self.finished.succeed()

    def catch_up(self) -> None:
        """The job has recovered from a failure: all tasks run, and as much waits as usual."""
        if not self.caught_up.triggered:
            self.caught_up.succeed()

    def rescale(self, missing: frozenset[int]) -> None:
        """The job goes on as another instance, on all TaskManagers but these."""
        if not self.rescaled.triggered:
            self.missing = missing
            self.rescaled.succeed()
