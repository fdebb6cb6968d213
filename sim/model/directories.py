"""Where the files of snapshots lie, and how their metadata names them.

Paths as Flink lays them out (`<root>/<job>/{chk-<n>, shared}`, FLINK-8531) and writes them into metadata: relative only for files in the
snapshot's own directory, and only if no entropy is injected (FsCheckpointStreamFactory#createCheckpointStateOutputStream).  The two other
policies are FLINK-24149's proposals: everything relative to the metadata, or to the directory of the job.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from sim.model.catalogs.option import Flink, Kind, option
from sim.model.stored import StateFile, StoredSnapshot

PathPolicy = Literal["absolute", "relative-to-metadata", "relative-to-job"]
"""How metadata names files.  absolute: as Flink does, relative only inside the snapshot's own directory; relative-to-metadata: all of them;
relative-to-job: all inside the job's directory, absolute beyond it."""


@dataclass(frozen=True, slots=True)
class Directories:
    """The layout of a checkpoint storage, the same for all jobs that share it."""

    paths: PathPolicy = option(Kind.WORD, "absolute", "absolute: Flink's way, relative only inside a snapshot's own directory.")
    root: str = "/checkpoints"  # execution.checkpointing.dir
    savepoints: str = "/savepoints"  # execution.checkpointing.savepoint-dir
    entropy: bool = option(  # of state files
        Kind.ON_OFF, False, "A random component at the front of each path (s3.entropy.key).", keyword=True
    )
    create_subdir: bool = option(
        Kind.ON_OFF, True, "false: all jobs share one directory.",
        flink=Flink("execution.checkpointing.create-subdir", {"state.checkpoints.create-subdir": "1.19"}),
    )  # fmt: skip

    def job_directory(self, instance: int) -> str:
        return f"{self.root}/job-{instance}" if self.create_subdir else self.root

    def directory(self, snapshot: StoredSnapshot) -> str:
        """The directory of its metadata; entropy is taken out of that path."""
        return self._own(snapshot.instance, snapshot.checkpoint, savepoint=snapshot.is_savepoint)

    def path(self, file: StateFile) -> str:
        shared = file.scope == "shared"
        own = "" if shared else self._own(file.instance, file.checkpoint, savepoint=file.scope == "savepoint")
        folder = f"{self.job_directory(file.instance)}/shared" if shared else own
        entropy = f"/{blake2b(repr(file.key).encode(), digest_size=2).hexdigest()}" if self.entropy else ""
        return f"{entropy}{folder}/{file.instance}-{file.number}"

    def reference(self, path: str, snapshot: StoredSnapshot) -> str:
        """A file as the snapshot's metadata names it: absolute, or relative to the metadata or the job's directory (see `_base`)."""
        own = self.directory(snapshot)
        if self.paths == "relative-to-metadata":
            return posixpath.relpath(path, own)
        base = self._base(own, snapshot)
        return posixpath.relpath(path, base) if inside(path, base) else path

    def resolved(self, reference: str, directory: str, snapshot: StoredSnapshot) -> str:
        """What a reference means to a reader that found the metadata in `directory`."""
        base = directory if self.paths == "relative-to-metadata" else self._base(directory, snapshot)
        return posixpath.normpath(posixpath.join(base, reference))

    def _base(self, directory: str, snapshot: StoredSnapshot) -> str:
        """A job's directory is the one above its checkpoints; savepoints lie in none."""
        return posixpath.dirname(directory) if self.paths == "relative-to-job" and not snapshot.is_savepoint else directory

    def _own(self, instance: int, checkpoint: int, *, savepoint: bool) -> str:
        return f"{self.savepoints}/savepoint-{instance}-{checkpoint}" if savepoint else f"{self.job_directory(instance)}/chk-{checkpoint}"


def inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
