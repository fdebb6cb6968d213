"""What a stored snapshot depends on: where its files lie, how its metadata names them, what breaks when something is deleted or moved.

Paths as Flink lays them out (`<root>/<job>/{chk-<n>, shared}`, FLINK-8531) and writes them into metadata: relative only for files in the
snapshot's own directory, and only if no entropy is injected (FsCheckpointStreamFactory#createCheckpointStateOutputStream).  The two other
policies are FLINK-24149's proposals: everything relative to the metadata, or to the directory of the job.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from sim.model.stored import PathPolicy, StateFile, StoredSnapshot

__all__ = ["Layout", "Verdict", "broken_by", "restorable", "verdict"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where files lie and how metadata names them."""

    paths: PathPolicy = "absolute"
    root: str = "/checkpoints"  # execution.checkpointing.dir
    savepoints: str = "/savepoints"  # execution.checkpointing.savepoint-dir
    create_subdir: bool = True  # False: all jobs share one directory (execution.checkpointing.create-subdir)
    entropy: bool = False  # state files get a random component at the front of their path (s3.entropy.key)

    def job_directory(self, instance: int) -> str:
        return f"{self.root}/job-{instance}" if self.create_subdir else self.root

    def directory(self, snapshot: StoredSnapshot) -> str:
        """Of its metadata; entropy is taken out of that path."""
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
        return posixpath.relpath(path, base) if _inside(path, base) else path

    def resolved(self, reference: str, directory: str, snapshot: StoredSnapshot) -> str:
        """What a reference means to somebody who found the metadata in `directory`."""
        base = directory if self.paths == "relative-to-metadata" else self._base(directory, snapshot)
        return posixpath.normpath(posixpath.join(base, reference))

    def _base(self, directory: str, snapshot: StoredSnapshot) -> str:
        """A job's directory is the one above its checkpoints; savepoints lie in none."""
        return posixpath.dirname(directory) if self.paths == "relative-to-job" and not snapshot.is_savepoint else directory

    def _own(self, instance: int, checkpoint: int, *, savepoint: bool) -> str:
        return f"{self.savepoints}/savepoint-{instance}-{checkpoint}" if savepoint else f"{self.job_directory(instance)}/chk-{checkpoint}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one snapshot depends on."""

    files_total: int  # that its metadata names
    bytes_total: int
    files_outside_chk_dir: int
    files_outside_job_dir: int  # a savepoint: outside its own directory
    owners: tuple[int, ...]  # job instances that wrote one of the files
    chain_length: int  # owners older than the snapshot's own job
    absolute_paths: int
    self_contained: bool  # every file lies in its own directory
    relocatable_own_dir: bool  # restorable from a copy of its own directory alone
    relocatable_job_dir: bool | None  # ... of its job's directory alone; None: a savepoint does not lie in one


def verdict(snapshot: StoredSnapshot, layout: Layout) -> Verdict:
    paths = [layout.path(file) for file in snapshot.files]
    own = layout.directory(snapshot)
    job = own if snapshot.is_savepoint else layout.job_directory(snapshot.instance)
    owners = tuple(sorted({file.instance for file in snapshot.files}))
    outside = sum(not _inside(path, own) for path in paths)
    return Verdict(
        files_total=len(paths),
        bytes_total=sum(file.size_bytes for file in snapshot.files),
        files_outside_chk_dir=outside,
        files_outside_job_dir=sum(not _inside(path, job) for path in paths),
        owners=owners,
        chain_length=sum(owner < snapshot.instance for owner in owners),
        absolute_paths=sum(layout.reference(path, snapshot).startswith("/") for path in paths),
        self_contained=not outside,
        relocatable_own_dir=restorable(snapshot, layout, copied=own),
        relocatable_job_dir=None if snapshot.is_savepoint else restorable(snapshot, layout, copied=job),
    )


def restorable(
    snapshot: StoredSnapshot,
    layout: Layout,
    *,
    copied: str | None = None,
    old_readable: bool = False,
    exists: Callable[[StateFile], bool] = lambda _: True,
) -> bool:
    """Whether a job can start from the snapshot where it lies, or from a copy of the directory `copied` elsewhere.

    A copy keeps the name of its directory, what lies beside it is not copied, and old paths are gone unless `old_readable`.
    `exists`: whether a file was still there when the copy was made.
    """
    own = layout.directory(snapshot)
    if copied is None:
        return all(map(exists, snapshot.files))
    if not _inside(own, copied):
        return False  # the metadata stays behind
    new_own = _moved(own, copied)
    for file in snapshot.files:
        path = layout.path(file)
        meant = layout.resolved(layout.reference(path, snapshot), new_own, snapshot)
        there = (old_readable and meant == path) or (_inside(path, copied) and meant == _moved(path, copied))
        if not (there and exists(file)):
            return False
    return True


def broken_by(snapshots: Iterable[StoredSnapshot], layout: Layout, removed: StoredSnapshot | str) -> tuple[StoredSnapshot, ...]:
    """Which other snapshots can no longer be restored once a snapshot was disposed of (everything its metadata names, as the savepoint
    disposal of the command line does), or a directory removed with all that lies in it."""
    return tuple(_broken(snapshots, layout, removed))


def _broken(snapshots: Iterable[StoredSnapshot], layout: Layout, removed: StoredSnapshot | str) -> Iterator[StoredSnapshot]:
    if isinstance(removed, StoredSnapshot):
        gone = {file.key for file in removed.files}
        yield from (one for one in snapshots if one != removed and any(file.key in gone for file in one.files))
        return
    for one in snapshots:
        if not _inside(layout.directory(one), removed) and any(_inside(layout.path(file), removed) for file in one.files):
            yield one


def _inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _moved(path: str, copied: str) -> str:
    """Where a path inside a copied directory is found afterwards."""
    return posixpath.normpath(f"/elsewhere/{posixpath.basename(copied)}/{posixpath.relpath(path, copied)}")
