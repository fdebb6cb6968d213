"""Which files an incremental snapshot need not write again (RocksIncrementalSnapshotStrategy).

The base is the last checkpoint that is complete and of whose completion this task has heard.  What was uploaded for a checkpoint that
failed, or whose notice has not come yet, is uploaded again.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.state.files import Handle


class Increments:
    """The stored files of one subtask that later snapshots may refer to."""

    def __init__(self) -> None:
        self._uploaded: dict[int, Mapping[str, Handle]] = {}  # checkpoint -> its files by name
        self._base = 0  # number of the checkpoint built upon; 0: none

    @property
    def base(self) -> Mapping[str, Handle]:
        """The files that may be referred to, by name."""
        return self._uploaded.get(self._base, {})

    def store(self, number: int, files: Mapping[str, Handle]) -> None:
        """A checkpoint's files are all durable, reused ones included."""
        self._uploaded[number] = files

    def notify_complete(self, number: int) -> None:
        """`number` may be a savepoint, of which no files are kept: it leaves the base alone (FLINK-23949)."""
        if number > self._base and number in self._uploaded:
            self._uploaded = {checkpoint: files for checkpoint, files in self._uploaded.items() if checkpoint >= number}
            self._base = number

    def forget(self) -> None:
        """Forget the base until the next checkpoint is complete, as a savepoint did before FLINK-23949."""
        self.restart(0, {})

    def restart(self, number: int, files: Mapping[str, Handle]) -> None:
        """Begin from restored files: they are the base, or there is none."""
        self._uploaded = {number: files} if files else {}
        self._base = number if files else 0
