"""What a stored snapshot depends on: what breaks when something is deleted, copied or moved (FLINK-24149).

Paths and the rules by which metadata names files are `sim.model.directories`'.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator

from sim.model.directories import Directories, inside
from sim.model.stored import StateFile, StoredSnapshot, Verdict


def verdict(snapshot: StoredSnapshot, directories: Directories) -> Verdict:
    paths = [directories.path(file) for file in snapshot.files]
    own = directories.directory(snapshot)
    job = own if snapshot.is_savepoint else directories.job_directory(snapshot.instance)
    owners = tuple(sorted({file.instance for file in snapshot.files}))
    foreign = sum(not inside(path, own) for path in paths)
    return Verdict(
        files_total=len(paths),
        bytes_total=sum(file.size_bytes for file in snapshot.files),
        files_outside_chk_dir=foreign,
        files_outside_job_dir=sum(not inside(path, job) for path in paths),
        owners=owners,
        chain_length=sum(owner < snapshot.instance for owner in owners),
        absolute_paths=sum(directories.reference(path, snapshot).startswith("/") for path in paths),
        self_contained=not foreign,
        relocatable_own_dir=restorable(snapshot, directories, copied=own),
        relocatable_job_dir=None if snapshot.is_savepoint else restorable(snapshot, directories, copied=job),
    )


def restorable(
    snapshot: StoredSnapshot,
    directories: Directories,
    *,
    copied: str | None = None,
    old_readable: bool = False,
    exists: Callable[[StateFile], bool] = lambda _: True,
) -> bool:
    """Whether a job can start from the snapshot where it lies, or from a copy of the directory `copied` elsewhere.

    A copy keeps the name of its directory, what lies beside it is not copied, and old paths are gone unless `old_readable`.
    `exists`: whether a file was still there when the copy was made.
    """
    own = directories.directory(snapshot)
    if copied is None:
        return all(map(exists, snapshot.files))
    if not inside(own, copied):
        return False  # the metadata stays behind
    new_own = _moved(own, copied)
    for file in snapshot.files:
        path = directories.path(file)
        meant = directories.resolved(directories.reference(path, snapshot), new_own, snapshot)
        there = (old_readable and meant == path) or (inside(path, copied) and meant == _moved(path, copied))
        if not (there and exists(file)):
            return False
    return True


def broken_by(snapshots: Iterable[StoredSnapshot], directories: Directories, removed: StoredSnapshot | str) -> tuple[StoredSnapshot, ...]:
    """Which other snapshots can no longer be restored once `removed` is gone.

    A snapshot goes with everything its metadata names, as the command line disposes of savepoints; a directory with all that lies in it.
    """
    return tuple(_broken(snapshots, directories, removed))


def _broken(snapshots: Iterable[StoredSnapshot], directories: Directories, removed: StoredSnapshot | str) -> Iterator[StoredSnapshot]:
    if isinstance(removed, StoredSnapshot):
        gone = {file.key for file in removed.files}
        yield from (snapshot for snapshot in snapshots if snapshot != removed and any(file.key in gone for file in snapshot.files))
        return
    for snapshot in snapshots:
        if not inside(directories.directory(snapshot), removed) and any(inside(directories.path(file), removed) for file in snapshot.files):
            yield snapshot


def _moved(path: str, copied: str) -> str:
    """Where a path inside a copied directory is found afterwards."""
    return posixpath.normpath(f"/elsewhere/{posixpath.basename(copied)}/{posixpath.relpath(path, copied)}")
